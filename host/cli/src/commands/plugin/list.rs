//! `plugin list`: what is in force, and what was refused.

use serde_json::json;
use toolgate_config::Config;
use toolgate_gateway::assemble;

use super::refusal::refused;
use super::{checked, described};
use crate::exit::Failure;
use crate::json::text;
use crate::output;

/// Each plugin with its state; one that is refused does not hide the others (WA-09).
pub(super) fn list(config: &Config, as_json: bool) -> Result<(), Failure> {
    let wanted = assemble::wanted(config).map_err(|refusal| refused(&refusal))?;
    let mut rows = Vec::new();
    let mut worst = None;
    for plugin in &wanted {
        let checked = checked(config, &plugin.files, &plugin.admission, plugin.from_index(), &plugin.places);
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
