//! `plugin verify`: whether a plugin is what was signed, and would load.

use serde_json::json;
use toolgate_config::{Config, Places};
use toolgate_plugins::{Admission, DecisionSet, Grants};

use toolgate_gateway::assemble::{PluginFiles, Refusal};
use toolgate_signing::VerifiedRelease;

use super::{checked, described, files, refused};
use crate::exit::Failure;
use crate::output;

/// Signature, digest, imports and exports, and a compilation, with every decision and capability granted.
pub(super) fn verify(config: &Config, plugin: &str, as_json: bool) -> Result<(), Failure> {
    let files = files(config, plugin)?;
    let release = match verified(config, &files) {
        Ok(release) => release,
        Err(refusal) => {
            if as_json {
                output::json(&json!({
                    "plugin": plugin,
                    "state": "refused",
                    "code": refusal.code(),
                    "reason": refusal.to_string(),
                }))?;
            }
            return Err(refused(&refusal));
        }
    };
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

/// With every capability granted that the release declares: what is looked for is whether it would load.
fn verified(config: &Config, files: &PluginFiles) -> Result<VerifiedRelease, Refusal> {
    let stated = files.verify(&config.plugins.trust)?;
    let grants = Grants::declared(stated.release());
    let admission = Admission { decisions: DecisionSet::ALL, grants, ..Admission::default() };
    checked(config, files, &admission, None, &Places::default())
}
