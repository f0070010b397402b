//! `toolgate plugin deny` and `retry`: what must not run any more, and what gets another try.

use serde_json::json;
use toolgate_base::{Clock as _, SystemClock, clock};
use toolgate_config::Config;
use toolgate_config::denials::{self, Denial, Denials};
use toolgate_gateway::{assemble, reload};
use toolgate_signing::Digest;
use toolgate_store::{AuditRow, Event};

use crate::args::{PluginDeny, PluginRetry};
use crate::context;
use crate::exit::Failure;
use crate::operator;
use crate::output;

/// `plugin deny [DIGEST]`. Denying needs no proof: it takes away, and must work at once for whoever sees
/// the need. Lifting does.
pub(super) fn deny(config: &Config, args: &PluginDeny) -> Result<(), Failure> {
    let Some(digest) = &args.digest else { return list(config, args.json) };
    let digest: Digest = digest.parse().map_err(|error| Failure::usage(format!("{digest}: {error}")))?;
    if args.lift {
        let _ = operator::prove(config, &format!("let {digest} run again"))?;
        let was = denials::lift(&config.data_dir, &digest).map_err(context::config_failure)?;
        if was {
            super::install::note(config, row(Event::PluginDenialLifted, &digest, ""))?;
        }
        return told(args.json, &digest, if was { "lifted" } else { "not denied" });
    }
    let Some(reason) = args.reason.as_deref().filter(|reason| !reason.trim().is_empty()) else {
        return Err(Failure::usage("say why with --reason: whoever meets the refusal reads it"));
    };
    let denial =
        Denial { digest, reason: reason.trim().to_owned(), at: clock::utc_text(SystemClock.now_ms()) };
    let is_new = denials::deny(&config.data_dir, &denial).map_err(context::config_failure)?;
    super::install::note(config, row(Event::PluginDenied, &digest, reason))?;
    told(args.json, &digest, if is_new { "denied" } else { "denied already" })
}

/// `plugin retry NAME`.
pub(super) fn retry(config: &Config, args: &PluginRetry) -> Result<(), Failure> {
    let uses = assemble::uses(config, &args.name).map_err(|refusal| super::refusal::refused(&refusal))?;
    if uses.is_empty() {
        return Err(Failure::usage(format!(
            "no plugin {} is in this configuration, so nothing was put aside",
            args.name
        ))
        .hint("`toolgate plugin list` shows the names"));
    }
    reload::retry(&config.data_dir, &args.name).map_err(context::config_failure)?;
    output::line(&format!("{} is loaded again by a running gateway within a second", args.name))
}

fn list(config: &Config, as_json: bool) -> Result<(), Failure> {
    let denials = Denials::read(&config.data_dir).map_err(context::config_failure)?;
    let all: Vec<&Denial> = denials.iter().collect();
    if as_json {
        return output::json(&json!({ "denied": all }));
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|denial| vec![denial.digest.to_string(), denial.at.clone(), denial.reason.clone()])
        .collect();
    output::table(&["DIGEST", "SINCE", "REASON"], &rows)
}

fn row(event: Event, digest: &Digest, reason: &str) -> AuditRow {
    AuditRow::new(event).with("digest", digest.to_string()).with("reason", reason)
}

fn told(as_json: bool, digest: &Digest, state: &str) -> Result<(), Failure> {
    if as_json {
        return output::json(&json!({ "digest": digest, "state": state }));
    }
    output::line(&format!("{digest} is {state}"))
}
