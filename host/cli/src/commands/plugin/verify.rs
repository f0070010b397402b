//! `plugin verify`: whether a plugin is what was signed, and would load.

use serde_json::json;
use toolgate_config::{Config, Places};
use toolgate_gateway::assemble::{PluginFiles, Refusal, Use, uses};
use toolgate_grants::Grants;
use toolgate_plugins::{Admission, DecisionSet};
use toolgate_signing::VerifiedRelease;

use super::rebuild::rebuild;
use super::refusal::refused;
use super::{checked, checked_entry, checked_use, described, files, misses_settings};
use crate::args::plugin::PluginVerify;
use crate::exit::Failure;
use crate::output;

/// What is looked at.
enum What {
    /// A plugin of the configuration, in every place where it is in use.
    InUse(Box<Use>, Vec<Use>),
    /// Files that the configuration says nothing of.
    Files(PluginFiles),
}

/// Signature, digest, imports and exports, and a compilation: as the configuration wants it, or where that
/// says nothing of it, with every decision and capability granted.
pub(super) fn verify(config: &Config, args: &PluginVerify) -> Result<(), Failure> {
    let mut found = uses(config, &args.plugin).map_err(|refusal| refused(&refusal))?.into_iter();
    let what = match found.next() {
        Some(first) => What::InUse(Box::new(first), found.collect()),
        None => What::Files(files(config, &args.plugin)?),
    };
    let release = match verified(config, &what) {
        Ok(release) => release,
        Err(refusal) => {
            if args.json {
                output::json(&json!({
                    "plugin": args.plugin,
                    "state": "refused",
                    "code": refusal.code(),
                    "reason": refusal.to_string(),
                }))?;
            }
            return Err(refused(&refusal));
        }
    };
    if let Some(directory) = &args.rebuild {
        rebuild(&release, directory)?;
    }
    report(&release, args)
}

fn report(release: &VerifiedRelease, args: &PluginVerify) -> Result<(), Failure> {
    let signers: Vec<String> = release.signers().iter().map(ToString::to_string).collect();
    if args.json {
        let mut row = described(release);
        if let Some(row) = row.as_object_mut() {
            row.insert("signers".to_owned(), json!(signers));
            row.insert("rebuilt".to_owned(), json!(args.rebuild.is_some()));
        }
        return output::json(&row);
    }
    let stated = release.release();
    output::line(&format!("{} {} is what was signed", stated.name, stated.version))?;
    output::line(&format!("  component {}", release.component()))?;
    signers.iter().try_for_each(|signer| output::line(&format!("  signed by {signer}")))?;
    match &args.rebuild {
        Some(directory) => output::line(&format!(
            "  the sources in {} give the same bytes, with {}",
            directory.display(),
            stated.toolchain
        )),
        None => Ok(()),
    }
}

fn verified(config: &Config, what: &What) -> Result<VerifiedRelease, Refusal> {
    match what {
        What::InUse(first, others) => {
            for other in others {
                in_force(config, other)?;
            }
            in_force(config, first)
        }
        What::Files(files) => by_itself(config, files),
    }
}

/// As the configuration wants it, settings and grants included; a fault of theirs names its line. In front of
/// a server it is judged with the settings that it has there.
fn in_force(config: &Config, used: &Use) -> Result<VerifiedRelease, Refusal> {
    used.wanted.verify(config)?;
    match used.server {
        Some(_) => checked_use(config, &used.wanted),
        None => checked_entry(config, &used.wanted),
    }
}

/// With every capability granted that the release declares: what is looked for is whether it would load.
fn by_itself(config: &Config, files: &PluginFiles) -> Result<VerifiedRelease, Refusal> {
    let grants = Grants::declared(files.verify(&config.plugins.trust)?.release());
    let admission = |schema| Admission {
        decisions: DecisionSet::ALL,
        grants: grants.clone(),
        schema,
        ..Admission::default()
    };
    let checked = |schema| checked(config, files, &admission(schema), None, &Places::default());
    let done = match checked(files.schema.clone()) {
        // The schema is the signed one, and there are no settings yet that it could judge.
        Err(Refusal::Settings { .. }) => checked(None),
        done => done,
    };
    match done {
        Err(refusal) if misses_settings(&refusal) => files.verify(&config.plugins.trust),
        done => done,
    }
}
