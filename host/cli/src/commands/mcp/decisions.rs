//! `mcp decisions` and `mcp forget`: what was decided beforehand, and how it is taken back.
//!
//! A decision that is taken back leaves nothing decided: labels, policies and toolgate.yaml say again what they
//! said before. To take back an ask or a denial widens and needs proof of the operator.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_config::{Config, Permit};
use toolgate_labels::{Label, Pattern};
use toolgate_store::{Standing, StandingDecision};

use crate::args::{McpDecisions, McpForget};
use crate::exit::Failure;
use crate::{context, operator, output};

/// What the patterns of standing decisions begin with.
const PREFIX: &str = "mcp.call:";

/// Lists them.
pub(crate) fn list(explicit: Option<&Path>, args: &McpDecisions) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let store = context::store(&config, "cli")?;
    let all = store.standing().map_err(context::store_failure)?;
    let wanted: Vec<&StandingDecision> = all
        .iter()
        .filter(|row| args.persona.as_ref().is_none_or(|persona| row.persona == *persona))
        .filter(|row| args.server.as_deref().is_none_or(|server| server_of(row) == server))
        .collect();
    if args.json {
        let rows: Vec<Value> = wanted
            .iter()
            .map(|row| {
                json!({
                    "persona": row.persona, "what": what_of(row), "pattern": row.pattern,
                    "decision": row.decision, "read_only": row.read_only, "decided_by": row.decided_by,
                    "decided_at_ms": row.decided_at_ms, "effects": effects(&config, &all, row),
                })
            })
            .collect();
        return output::json(&json!({ "decisions": rows }));
    }
    if wanted.is_empty() {
        let of_server = args.server.as_ref().map(|server| format!(" about server '{server}'"));
        let of_persona = args.persona.as_ref().map(|persona| format!(" for persona '{persona}'"));
        return output::line(&format!(
            "nothing is decided beforehand{}{}, in {}; `toolgate mcp allow|ask|deny` does that",
            of_server.unwrap_or_default(),
            of_persona.unwrap_or_default(),
            config.data_dir.display()
        ));
    }
    let rows: Vec<Vec<String>> = wanted
        .iter()
        .map(|row| {
            let scope = if row.read_only { " (tools that only read)" } else { "" };
            vec![
                row.persona.clone(),
                format!("{}{scope}", what_of(row)),
                row.decision.as_str().to_owned(),
                when(row.decided_at_ms),
                row.decided_by.clone(),
                effects(&config, &all, row).join("; "),
            ]
        })
        .collect();
    output::table(&["PERSONA", "ABOUT", "DECISION", "WHEN", "BY", "EFFECT"], &rows)
}

/// Takes one back.
pub(crate) async fn forget(explicit: Option<&Path>, args: &McpForget) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let store = context::store(&config, "cli")?;
    // The server and the persona may be gone from the configuration by now.
    let pattern = format!("{PREFIX}{}", args.what);
    let row = store.standing_of(&args.persona, &pattern).map_err(context::store_failure)?;
    let Some(row) = row else {
        return Err(Failure::failed(format!(
            "nothing is decided about '{}' for persona '{}'",
            args.what, args.persona
        ))
        .hint("see `toolgate mcp decisions`"));
    };
    let by = if row.decision == Standing::Allow {
        format!("uid {}", crate::sys::user())
    } else {
        let told = format!(
            "This takes back `{} {}` for persona '{}': from now on labels, policies and toolgate.yaml say what \
             becomes of it.",
            row.decision.as_str(),
            what_of(&row),
            row.persona
        );
        operator::prove(&config, &told)?.approver()
    };
    store.forget_standing(&row, &by).await.map_err(context::store_failure)?;
    if args.json {
        return output::json(&json!({ "forgotten": row, "by": by }));
    }
    output::line(&format!(
        "took back {}: {}, for persona {}; nothing is decided about it any more",
        row.decision.as_str(),
        what_of(&row),
        row.persona
    ))
}

fn what_of(row: &StandingDecision) -> &str {
    row.pattern.strip_prefix(PREFIX).unwrap_or(&row.pattern)
}

fn server_of(row: &StandingDecision) -> &str {
    what_of(row).split('/').next().unwrap_or_default()
}

/// What a decision outranks, and what outranks it: deny over ask over allow, whoever says it.
fn effects(config: &Config, all: &[StandingDecision], row: &StandingDecision) -> Vec<String> {
    let server = server_of(row);
    let Some(entry) = config.servers.get(server) else {
        return vec![format!("none: there is no server '{server}' any more")];
    };
    let mut effects = Vec::new();
    let persona = config.personas.get(&row.persona);
    match persona {
        None => effects.push(format!("none: there is no persona '{}' any more", row.persona)),
        Some(persona) if persona.lane_of(server).is_none() => {
            effects.push(format!("none: server '{server}' is not bound to persona '{}'", row.persona));
        }
        Some(_) => {}
    }
    for other in all.iter().filter(|other| other.persona == row.persona && rank(other) > rank(row)) {
        if covers(&other.pattern, &row.pattern) && (!other.read_only || row.read_only) {
            effects.push(format!("outranked by `{} {}`", other.decision.as_str(), what_of(other)));
        }
    }
    let permit = config.permissions.of(server);
    let capabilities = persona.and_then(|persona| persona.capabilities.as_ref());
    if row.decision == Standing::Allow {
        if entry.trust.host_escape {
            effects.push("none: the server has trust.host_escape".to_owned());
        }
        if let Some(permit) = permit.filter(|permit| *permit != Permit::Allow) {
            effects.push(format!("outranked by permissions.mcp: {}", permit.as_str()));
        }
        if let Some(label) = super::decide::overruled(config, row) {
            effects.push(format!("outranked by require_approval \"{label}\""));
        }
        return effects;
    }
    let labels = capabilities.into_iter().flat_map(|labels| &labels.allow).map(ToString::to_string);
    for label in labels.filter(|label| covers(label, &row.pattern) || covers(&row.pattern, label)) {
        effects.push(format!("outranks the label \"{label}\""));
    }
    if !entry.trust.auto_approve_tools.is_empty() {
        effects.push("outranks trust.auto_approve_tools".to_owned());
    }
    if permit == Some(Permit::Allow) {
        effects.push("outranks permissions.mcp: allow".to_owned());
    }
    effects
}

fn rank(row: &StandingDecision) -> u8 {
    match row.decision {
        Standing::Deny => 2,
        Standing::Ask => 1,
        Standing::Allow => 0,
    }
}

/// Whether one pattern covers another that is itself a label.
fn covers(pattern: &str, other: &str) -> bool {
    match (pattern.parse::<Pattern>(), other.parse::<Label>()) {
        (Ok(pattern), Ok(label)) => pattern.covers(&label),
        _ => false,
    }
}

/// A time as people write it, in UTC.
fn when(ms: i64) -> String {
    toolgate_base::clock::utc_text(u64::try_from(ms).unwrap_or(0))
}
