//! `approvals suggest`: the labels that would have answered the asks of the past.
//!
//! It prints and changes nothing. Only what people granted is suggested; a tool that was denied once is
//! named as that and not suggested, and neither is one of a server with `trust.host_escape`, nor one whose name
//! is no label of exactly that tool or would say more in toolgate.yaml than itself.

use std::collections::BTreeMap;

use serde_json::json;
use toolgate_base::display::is_label_text;
use toolgate_config::Config;
use toolgate_labels::Label;
use toolgate_store::{Ask, AskState, Store};

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

/// What was asked about.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct What {
    server: String,
    action: String,
    tool: String,
    /// The label of this and nothing else, where it can be written down: a pattern is none.
    label: Option<String>,
}

impl What {
    fn of(ask: &Ask) -> Self {
        let about = &ask.about;
        let label = Label::for_server(&about.action, &about.server, &about.tool).ok();
        Self {
            server: about.server.clone(),
            action: about.action.clone(),
            tool: about.tool.clone(),
            label: label.map(|label| label.to_string()).filter(|label| is_label_text(label)),
        }
    }
}

impl What {
    /// The label to suggest, if there is one.
    fn suggested(&self, count: &Count) -> Option<&str> {
        let fits = count.granted > 0 && count.denied == 0 && !count.host_escape;
        self.label.as_deref().filter(|_| fits)
    }
}

/// Prints the suggestions.
pub(super) fn suggest(config: &Config, store: &Store, args: &ApprovalsSuggest) -> Result<(), Failure> {
    let since = super::super::duration(&args.since)?;
    let from = super::now_ms().saturating_sub(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    let mut counts: BTreeMap<(String, What), Count> = BTreeMap::new();
    for ask in store.asks(None).map_err(context::store_failure)? {
        if ask.created_at_ms < from {
            continue;
        }
        let count = counts.entry((ask.about.persona.clone(), What::of(&ask))).or_default();
        count.host_escape |= ask.about.host_escape;
        match ask.state {
            AskState::Granted | AskState::Spent => count.granted += 1,
            AskState::Denied => count.denied += 1,
            AskState::Pending | AskState::Expired => {}
        }
    }
    if args.json {
        let rows: Vec<_> = counts
            .iter()
            .map(|((persona, what), count)| {
                json!({
                    "persona": persona, "server": what.server, "action": what.action, "tool": what.tool,
                    "label": what.label, "granted": count.granted, "denied": count.denied,
                    "suggested": what.suggested(count).is_some(),
                })
            })
            .collect();
        return output::json(&json!({ "suggestions": rows }));
    }
    let mut none = true;
    for persona in config.personas.keys() {
        let of_persona: Vec<_> = counts
            .iter()
            .filter(|((who, _), _)| who == persona)
            .filter_map(|((_, what), count)| Some((what.suggested(count)?, count)))
            .collect();
        if of_persona.is_empty() {
            continue;
        }
        none = false;
        output::line(&format!("personas.{persona}.capabilities.allow:"))?;
        for (label, count) in of_persona {
            output::line(&format!("  - \"{label}\"    # granted {} times", count.granted))?;
        }
    }
    if none {
        return output::line("nothing was granted in that time that a label could have answered");
    }
    Ok(())
}
