//! `plugin update --dry-run`: the same documents, asked of the release in force and of the one that would
//! take its place.
//!
//! Contract: nothing is installed and nothing is reached. Both releases run as rehearsals, so that a release
//! which nobody has accepted learns no secret, sends nothing and changes nothing; the new one runs with the
//! decisions and settings that are in force.

use serde_json::{Value, json};
use toolgate_config::plugins_layer::{Installed, PluginsLayer};
use toolgate_config::{Config, Updates};
use toolgate_gateway::assemble::{PluginFiles, Use, uses};
use toolgate_gateway::indexes::Found;
use toolgate_gateway::install::InstallError;
use toolgate_plugins::{Admission, Difference, Outcome, Power, Recorded, compare, rehearse, widening};
use toolgate_signing::{Digest, VerifiedRelease};

use super::documents::{self, difference, pretty};
use super::fetch::{self, Newer};
use super::refusal::refused;
use crate::args::PluginUpdate;
use crate::context;
use crate::exit::Failure;
use crate::output;

/// One plugin, compared.
struct Compared {
    name: String,
    from: String,
    to: String,
    wider: Vec<Power>,
    asked: Vec<Asked>,
}

/// The documents of one use of it.
struct Asked {
    /// The server whose adapter it is.
    server: Option<String>,
    /// How many documents at least one of the two was asked about.
    documents: usize,
    differences: Vec<Difference>,
    /// Faults of the new release.
    faults: Vec<String>,
}

/// Runs the verb.
pub(super) async fn dry_run(config: &Config, args: &PluginUpdate) -> Result<(), Failure> {
    if config.plugins.update == Updates::Never && args.from.is_none() {
        return Err(super::install::no_updates());
    }
    let directory = args.documents.as_deref().unwrap_or_else(|| std::path::Path::new("documents"));
    let documents = documents::read(directory)?;
    let layer = PluginsLayer::of(&config.data_dir);
    let installed = layer.installed().map_err(context::config_failure)?;
    let names = match &args.name {
        Some(name) => vec![name.clone()],
        None => installed.iter().map(|one| one.name.clone()).collect(),
    };
    if names.is_empty() {
        return Err(Failure::usage("no plugin is installed, so there is nothing to compare")
            .hint("for a plugin of plugins.load, give its name and --from"));
    }
    let (mut rows, mut texts, mut unlike) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let old = installed.iter().find(|one| one.name == name);
        match newer(config, args, &name, old).await? {
            Err(why) => {
                texts.push(format!("{name}: {why}"));
                rows.push(json!({ "name": name, "state": "not compared", "reason": why }));
            }
            Ok(found) => {
                let compared = tokio::task::block_in_place(|| compared(config, &name, &found, &documents))?;
                unlike.extend(compared.verdict());
                texts.push(compared.text());
                rows.push(compared.json());
            }
        }
    }
    if args.json {
        output::json(&json!({ "plugins": rows }))?;
    } else {
        texts.iter().try_for_each(|text| output::line(text))?;
    }
    if unlike.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("{}; nothing was changed", unlike.join("; ")))
        .hint("if that is what you want, run it without --dry-run"))
}

/// The release that an update would take, or why it would take none.
async fn newer(
    config: &Config,
    args: &PluginUpdate,
    name: &str,
    installed: Option<&Installed>,
) -> Result<Result<Found, String>, Failure> {
    let min_age = if args.any_age { std::time::Duration::ZERO } else { config.plugins.min_age };
    match (args.from.as_deref(), installed) {
        (Some(from), None) => fetch::found(config, from).await.map(Ok),
        (from, Some(old)) => {
            let place = from.unwrap_or(&old.source);
            Ok(match fetch::newer(config, place, old, min_age).await? {
                // A place that is no index has one release, which may be the one that is here.
                Newer::Found(found) if Digest::of(&found.files.release) == old.release => {
                    Err(format!("{} is what is there", old.version))
                }
                Newer::Found(found) => Ok(*found),
                Newer::Unchanged => Err(format!("{} is the newest there", old.version)),
                Newer::Waits(reason) => Err(reason),
            })
        }
        (None, None) => Err(Failure::usage(InstallError::NotInstalled(name.to_owned()))
            .hint("for a plugin of the bundle or of plugins.load, say with --from what to compare it with")),
    }
}

/// Asks both releases in every place where the plugin is used.
fn compared(config: &Config, name: &str, found: &Found, documents: &[Recorded]) -> Result<Compared, Failure> {
    let new = found.files.verify(&config.plugins.trust).map_err(|refusal| refused(&refusal))?;
    found.files.check_denied(config, &new, found.origin.place()).map_err(|refusal| refused(&refusal))?;
    if new.release().name != name {
        let text = format!("{} holds {}, not {name}", found.origin.source, new.release().name);
        return Err(Failure::integrity(text));
    }
    let uses = uses(config, name).map_err(|refusal| refused(&refusal))?;
    let Some(first) = uses.first() else {
        return Err(Failure::usage(format!("{name} is not in force, so there is nothing to compare with"))
            .hint("see `toolgate plugin list`"));
    };
    let old = first.wanted.verify(config).map_err(|refusal| refused(&refusal))?;
    let asked = uses.iter().map(|one| {
        let fitting = fitting(one, documents);
        let was = ask(&one.wanted.files, &old, &one.wanted.admission, &fitting, "in force")?;
        let admission = Admission { schema: found.files.schema.clone(), ..one.wanted.admission.clone() };
        let now = ask(&found.files, &new, &admission, &fitting, "new")?;
        Ok(Asked::of(one.server.clone(), &was, &now))
    });
    Ok(Compared {
        name: name.to_owned(),
        from: old.release().version.to_string(),
        to: new.release().version.to_string(),
        wider: widening(old.release(), new.release()),
        asked: asked.collect::<Result<_, Failure>>()?,
    })
}

/// The documents about the server of this use, and those about none.
fn fitting(one: &Use, documents: &[Recorded]) -> Vec<Recorded> {
    let fits = |document: &&Recorded| {
        let about = document.facts().server.as_str();
        one.server.as_deref().is_none_or(|server| about.is_empty() || about == server)
    };
    documents.iter().filter(fits).cloned().collect()
}

fn ask(
    files: &PluginFiles,
    release: &VerifiedRelease,
    admission: &Admission,
    documents: &[Recorded],
    which: &str,
) -> Result<Vec<Outcome>, Failure> {
    rehearse(&files.component, release.release(), admission, documents).map_err(|error| {
        Failure::failed(format!("the {which} release {} cannot be asked: {error}", release.release().version))
    })
}

impl Asked {
    fn of(server: Option<String>, was: &[Outcome], now: &[Outcome]) -> Self {
        let either = was.iter().zip(now).filter(|(was, now)| was.answer.is_some() || now.answer.is_some());
        let faults = now
            .iter()
            .filter_map(|outcome| outcome.fault.as_ref().map(|fault| format!("{}: {fault}", outcome.name)));
        Self { server, documents: either.count(), differences: compare(was, now), faults: faults.collect() }
    }
}

impl Compared {
    /// What the operator has to know before taking it; none where all is as it was.
    fn verdict(&self) -> Option<String> {
        let documents: usize = self.asked.iter().map(|asked| asked.documents).sum();
        let differences: usize = self.asked.iter().map(|asked| asked.differences.len()).sum();
        let faults: usize = self.asked.iter().map(|asked| asked.faults.len()).sum();
        let name = &self.name;
        if documents == 0 {
            return Some(format!("{name} is asked about none of these documents, so nothing was compared"));
        }
        let mut parts = Vec::new();
        if differences > 0 {
            parts.push(format!("answers {differences} of {documents} documents differently"));
        }
        if faults > 0 {
            parts.push(format!("fails on {faults}"));
        }
        if !self.wider.is_empty() {
            parts.push("may do more".to_owned());
        }
        (!parts.is_empty()).then(|| format!("{name} {} {}", self.to, parts.join(", ")))
    }

    fn text(&self) -> String {
        let mut lines = vec![format!("{} {} -> {}", self.name, self.from, self.to)];
        if !self.wider.is_empty() {
            lines.push(format!("  it may do what {} may not:", self.from));
            lines.extend(self.wider.iter().map(|power| format!("    - {}", power.words)));
        }
        for asked in &self.asked {
            let place = asked.server.as_ref().map_or_else(String::new, |server| format!(" for {server}"));
            lines.push(format!(
                "  {} documents{place}, {} answered differently, {} faults",
                asked.documents,
                asked.differences.len(),
                asked.faults.len()
            ));
            for one in &asked.differences {
                lines.push(format!("  DIFFERENT  {}", one.name));
                lines.push(difference(&shown(one.old.as_ref()), &shown(one.new.as_ref())));
            }
            lines.extend(asked.faults.iter().map(|fault| format!("  FAULT  {fault}")));
        }
        lines.join("\n")
    }

    fn json(&self) -> Value {
        let asked = self.asked.iter().map(|asked| {
            let differences = asked
                .differences
                .iter()
                .map(|one| json!({ "document": one.name, "old": one.old, "new": one.new }));
            json!({
                "server": asked.server,
                "documents": asked.documents,
                "differences": differences.collect::<Vec<_>>(),
                "faults": asked.faults,
            })
        });
        json!({
            "name": self.name,
            "state": "compared",
            "from": self.from,
            "to": self.to,
            "wider": self.wider,
            "asked": asked.collect::<Vec<_>>(),
        })
    }
}

/// An answer, or that there was none.
fn shown(answer: Option<&Value>) -> String {
    answer.map_or_else(|| "not asked\n".to_owned(), pretty)
}
