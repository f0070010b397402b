//! `toolgate plugin …`: what is in force, and whether it is what was signed.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_config::Config;
use toolgate_gateway::assemble::{self, PluginFiles, Refusal};
use toolgate_gateway::bundle;
use toolgate_plugins::{Admission, DecisionSet, LoadErrorKind};
use toolgate_signing::VerifiedRelease;

use crate::args::Plugin;
use crate::context;
use crate::exit::{Code, Failure};
use crate::json::{at, text};
use crate::output;

/// Runs one verb.
pub(crate) fn run(explicit: Option<&Path>, command: &Plugin) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    match command {
        Plugin::List(args) => list(&config, args.json),
        Plugin::Inspect(args) => inspect(&config, &args.plugin, args.json),
        Plugin::Verify(args) => verify(&config, &args.plugin, args.json),
    }
}

/// Each plugin with its state; one that is refused does not hide the others (WA-09).
fn list(config: &Config, as_json: bool) -> Result<(), Failure> {
    let wanted = assemble::wanted(config).map_err(|refusal| refused(&refusal))?;
    let mut rows = Vec::new();
    let mut worst = None;
    for plugin in &wanted {
        let checked = checked(config, &plugin.files, &plugin.admission);
        rows.push(match &checked {
            Ok(release) => described(release),
            Err(refusal) => {
                json!({ "name": plugin.files.plugin, "state": "refused", "reason": refusal.to_string() })
            }
        });
        worst = worst.or(checked.err());
    }
    if as_json {
        output::json(&json!({ "plugins": rows }))?;
    } else {
        let cells: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let keys = ["name", "version", "kind", "state", "component", "reason"];
                keys.iter().map(|key| text(row, key).to_owned()).collect()
            })
            .collect();
        output::table(&["NAME", "VERSION", "KIND", "STATE", "COMPONENT", "REASON"], &cells)?;
    }
    worst.map_or(Ok(()), |refusal| Err(refused(&refusal)))
}

fn described(release: &VerifiedRelease) -> Value {
    let stated = release.release();
    json!({
        "name": stated.name,
        "version": stated.version.to_string(),
        "kind": stated.kind.as_str(),
        "state": "verified",
        "component": release.component().to_string(),
    })
}

/// The files of a name in the bundle or in `plugins.load`, or of a directory.
fn files(config: &Config, plugin: &str) -> Result<PluginFiles, Failure> {
    if let Some(files) = bundle::find(plugin) {
        return Ok(files);
    }
    let wanted = assemble::wanted(config).map_err(|refusal| refused(&refusal))?;
    if let Some(found) = wanted.into_iter().find(|wanted| wanted.files.plugin == plugin) {
        return Ok(found.files);
    }
    if Path::new(plugin).is_dir() {
        return PluginFiles::read(Path::new(plugin)).map_err(|refusal| refused(&refusal));
    }
    Err(Failure::usage(format!("{plugin} is neither a plugin of this configuration nor a directory"))
        .hint("see `toolgate plugin list`, or give the directory of component.wasm and release.dsse.json"))
}

/// Everything a load checks, compilation included, without putting the plugin in force. An adapter
/// that only misses the settings of a server is what was signed.
fn checked(config: &Config, files: &PluginFiles, admission: &Admission) -> Result<VerifiedRelease, Refusal> {
    let release = files.verify(&config.plugins.trust)?;
    let host = context::plugin_host(config)
        .map_err(|error| Refusal::Entry { plugin: files.plugin.clone(), reason: error.message })?;
    match host.load(&files.component, &release, admission) {
        Ok(_) => Ok(release),
        Err(error) if matches!(error.kind, LoadErrorKind::NotConfigured(_)) => Ok(release),
        Err(source) => Err(Refusal::Unloadable { source: Box::new(source) }),
    }
}

fn verify(config: &Config, plugin: &str, as_json: bool) -> Result<(), Failure> {
    let files = files(config, plugin)?;
    let admission = Admission { decisions: DecisionSet::ALL, ..Admission::default() };
    let release = checked(config, &files, &admission).map_err(|refusal| refused(&refusal))?;
    let signers: Vec<String> = release.signers().iter().map(ToString::to_string).collect();
    if as_json {
        let mut row = described(&release);
        if let Some(row) = row.as_object_mut() {
            row.insert("signers".to_owned(), json!(signers));
        }
        return output::json(&row);
    }
    let stated = release.release();
    output::line(&format!("{} {} is what was signed", stated.name, stated.version))?;
    output::line(&format!("  component {}", release.component()))?;
    signers.iter().try_for_each(|signer| output::line(&format!("  signed by {signer}")))
}

fn inspect(config: &Config, plugin: &str, as_json: bool) -> Result<(), Failure> {
    let files = files(config, plugin)?;
    let release = files.verify(&config.plugins.trust).map_err(|refusal| refused(&refusal))?;
    let stated = serde_json::to_value(release.release()).map_err(Failure::failed)?;
    if as_json {
        return output::json(&stated);
    }
    let list = |key: &str| {
        let items = at(&stated, key).as_array().into_iter().flatten().filter_map(Value::as_str);
        items.fold(String::new(), |list, item| list + "\n    " + item)
    };
    output::line(&format!(
        "{} {} ({})",
        text(&stated, "name"),
        text(&stated, "version"),
        text(&stated, "kind")
    ))?;
    output::line(&format!("  component {}", release.component()))?;
    output::line(&format!("  it may call, inside the host:{}", list("imports")))?;
    output::line(&format!("  the host may call of it:{}", list("exports")))?;
    output::line(&format!("  it may decide:{}", list("decisions")))?;
    output::line(&format!("  beyond its own memory it asks for: {}", at(&stated, "capabilities")))
}

fn refused(refusal: &Refusal) -> Failure {
    let code = if refusal.is_integrity() { Code::Integrity } else { Code::Usage };
    Failure::new(code, refusal)
}

/// How many plugins the configuration wants, all of them verified and loadable.
pub(crate) fn all_verified(config: &Config) -> Result<usize, Failure> {
    let wanted = assemble::wanted(config).map_err(|refusal| refused(&refusal))?;
    for plugin in &wanted {
        checked(config, &plugin.files, &plugin.admission).map_err(|refusal| refused(&refusal))?;
    }
    Ok(wanted.len())
}
