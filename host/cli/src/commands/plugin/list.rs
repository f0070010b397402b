//! `plugin list`: what is in force, and what was refused.

use serde_json::{Value, json};
use toolgate_config::Config;
use toolgate_gateway::assemble;
use toolgate_gateway::updates::{WaitingUpdate, waiting};

use super::refusal::refused;
use super::{checked_entry, described};
use crate::exit::Failure;
use crate::json::text;
use crate::output;

/// Each plugin with its state; one that is refused does not hide the others (WA-09).
pub(super) fn list(config: &Config, as_json: bool) -> Result<(), Failure> {
    let wanted = assemble::wanted(config).map_err(|refusal| refused(&refusal))?;
    let waits = waiting(config);
    let mut rows = Vec::new();
    let mut worst = None;
    for plugin in &wanted {
        let checked = checked_entry(config, plugin);
        let mut row = match &checked {
            Ok(release) => described(release),
            Err(refusal) => {
                json!({ "name": plugin.files.plugin, "state": "refused", "reason": refusal.to_string() })
            }
        };
        if let (Some(note), Some(row)) =
            (waits.iter().find(|note| plugin.name.as_ref() == Some(&note.plugin)), row.as_object_mut())
        {
            row.insert("waiting".to_owned(), described_update(note));
        }
        rows.push(row);
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
        waits.iter().try_for_each(print_update)?;
    }
    worst.map_or(Ok(()), |refusal| Err(refused(&refusal)))
}

/// A newer release that was not taken by itself, for a program.
fn described_update(note: &WaitingUpdate) -> Value {
    json!({
        "offered": note.offered,
        "wider": note.wider,
        "reason": note.reason,
        "index": note.index,
        "since": note.since,
        "next": note.next(),
    })
}

/// The same for a person: what it is, what it may do more, and what to do.
fn print_update(note: &WaitingUpdate) -> Result<(), Failure> {
    output::line(&format!("{} (since {})", note.told(), note.since))?;
    note.wider.iter().try_for_each(|power| output::line(&format!("  + {power}")))?;
    output::line(&format!("  next: {}", note.next()))
}
