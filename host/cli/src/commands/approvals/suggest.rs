//! `approvals suggest`: the labels that would have answered the asks of the past.
//!
//! It prints and changes nothing. Only what people granted is suggested; a tool that was denied once is
//! named as that and not suggested, and neither is one of a server with `trust.host_escape`.

use std::collections::BTreeMap;

use serde_json::json;
use toolgate_config::Config;
use toolgate_store::{AskState, Store};

use crate::args::ApprovalsSuggest;
use crate::exit::Failure;
use crate::{context, output};

/// How often one thing was asked about, by answer.
#[derive(Default)]
struct Count {
    granted: usize,
    denied: usize,
    host_escape: bool,
}

/// Prints the suggestions.
pub(super) fn suggest(config: &Config, store: &Store, args: &ApprovalsSuggest) -> Result<(), Failure> {
    let since = super::super::duration(&args.since)?;
    let from = super::now_ms().saturating_sub(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    let mut counts: BTreeMap<(String, String), Count> = BTreeMap::new();
    for ask in store.asks(None).map_err(context::store_failure)? {
        if ask.created_at_ms < from {
            continue;
        }
        let label = format!("mcp.{}:{}/{}", ask.about.action, ask.about.server, ask.about.tool);
        let count = counts.entry((ask.about.persona.clone(), label)).or_default();
        count.host_escape |= ask.about.host_escape;
        match ask.state {
            AskState::Granted | AskState::Spent => count.granted += 1,
            AskState::Denied => count.denied += 1,
            AskState::Pending | AskState::Expired => {}
        }
    }
    let fits = |label: &str, count: &Count| {
        count.granted > 0 && count.denied == 0 && !count.host_escape && is_label(label)
    };
    if args.json {
        let rows: Vec<_> = counts
            .iter()
            .map(|((persona, label), count)| {
                json!({
                    "persona": persona, "label": label, "granted": count.granted, "denied": count.denied,
                    "suggested": fits(label, count),
                })
            })
            .collect();
        return output::json(&json!({ "suggestions": rows }));
    }
    let mut none = true;
    for persona in config.personas.keys() {
        let of_persona: Vec<_> =
            counts.iter().filter(|((who, label), count)| who == persona && fits(label, count)).collect();
        if of_persona.is_empty() {
            continue;
        }
        none = false;
        output::line(&format!("personas.{persona}.capabilities.allow:"))?;
        for ((_, label), count) in of_persona {
            output::line(&format!("  - \"{label}\"    # granted {} times", count.granted))?;
        }
    }
    if none {
        return output::line("nothing was granted in that time that a label could have answered");
    }
    Ok(())
}

fn is_label(label: &str) -> bool {
    label.parse::<toolgate_labels::Pattern>().is_ok()
}
