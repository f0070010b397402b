//! What to do about a plugin that is refused, and about files of an author's that cannot be used.

use std::path::Path;

use toolgate_gateway::assemble::Refusal;
use toolgate_plugins::{ManifestError, Whose};
use toolgate_signing::VerifyError;

use crate::exit::{Code, Failure};

/// The exit code says whether what was signed is at stake.
pub(super) fn refused(refusal: &Refusal) -> Failure {
    let code = if refusal.is_integrity() { Code::Integrity } else { Code::Usage };
    let failure = Failure::new(code, refusal);
    match next_step(refusal) {
        Some(step) => failure.hint(step),
        None => failure,
    }
}

/// What to do about it, where the refusal itself does not say so.
fn next_step(refusal: &Refusal) -> Option<&'static str> {
    match refusal {
        Refusal::Unverified { source, .. } => of_signature(source),
        Refusal::Mismatch { .. } => {
            Some("correct the entry in plugins.load, or put the release that it names into that directory")
        }
        Refusal::NotAsAccepted { .. } => Some(
            "what lies in the data directory was changed after it was accepted: find out by whom, then `toolgate plugin remove` it and install it again",
        ),
        Refusal::DenialsUnreadable { .. } => {
            Some("restore the file from a copy; without it nobody can tell what was denied")
        }
        Refusal::RevocationsUnreadable { .. } => {
            Some("`toolgate plugin search` asks the index again; until then nobody can tell what it revoked")
        }
        Refusal::Unloadable { source } => Some(match source.kind.whose() {
            Whose::OperatorDenied => {
                "correct `settings`, `decisions` or `grants` of its entry; `toolgate plugin inspect` says what it asks for"
            }
            Whose::PluginTooOld => "take a release of it that was made for this version of Toolgate",
            Whose::PluginMisbehaved => "tell its author; no setting of yours makes it load",
            Whose::HostBug => "report it, with the output of `toolgate version`",
        }),
        Refusal::Unreadable { .. } => Some(
            "a plugin's directory holds component.wasm and release.dsse.json; `toolgate plugin sign` writes the second",
        ),
        // These say it themselves, or name the line to correct.
        _ => None,
    }
}

fn of_signature(fault: &VerifyError) -> Option<&'static str> {
    match fault {
        VerifyError::NoRule { .. } => None,
        VerifyError::Component { .. } => Some(
            "these bytes are not those that were signed: get component.wasm and release.dsse.json again from its author; if you are the author and built it anew, sign it again",
        ),
        _ => Some(
            "use nothing of it: get both files again from its author, and compare the author's key with `toolgate plugin trust list`",
        ),
    }
}

/// A manifest, or what it names, that cannot be used.
pub(super) fn of_manifest(error: &ManifestError, directory: &Path) -> Failure {
    let failure = Failure::usage(error);
    match error {
        ManifestError::Io { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
            failure.hint(missing(path, directory))
        }
        ManifestError::Io { .. } => failure.hint("make it readable for you, and try again"),
        ManifestError::TooLarge { .. } => failure.hint("plugin.toml names the files; name smaller ones"),
        ManifestError::Syntax { .. } => {
            failure.hint("`toolgate plugin new policy acme/example` writes a manifest to compare with")
        }
        ManifestError::Format { .. } => {
            failure.hint("write `manifest = 1`, or take the Toolgate that the project was made with")
        }
        ManifestError::Outside(_) => failure.hint("copy the file into the plugin's directory"),
        ManifestError::TooManySources => failure,
        ManifestError::Component(_) => {
            failure.hint(format!("build it again: toolgate plugin build {}", directory.display()))
        }
    }
}

fn missing(path: &Path, directory: &Path) -> String {
    let shown = directory.display();
    match path.file_name().and_then(|name| name.to_str()) {
        Some("plugin.toml") => format!(
            "{shown} is no plugin's project; give the directory of one, or make one with `toolgate plugin new policy|installer|adapter NAME`"
        ),
        Some("component.wasm") => format!("build it first: toolgate plugin build {shown}"),
        _ => "correct plugin.toml, which names it".to_owned(),
    }
}
