//! `mcp allow`, `mcp ask` and `mcp deny`: a standing decision for a persona, in the data directory.
//!
//! What is denied or asked about holds whatever policies are installed; what is allowed they see as they
//! see a label of toolgate.yaml. To allow widens and needs proof of the operator. What toolgate.yaml puts
//! under `require_approval` goes on asking, and that is said.

use std::path::Path;

use serde_json::json;
use toolgate_config::Config;
use toolgate_labels::Label;
use toolgate_store::{Standing, StandingDecision};

use crate::args::McpDecide;
use crate::exit::Failure;
use crate::{context, operator, output};

/// Records the decision; a running gateway follows it within a moment.
pub(crate) async fn decide(
    explicit: Option<&Path>,
    args: &McpDecide,
    decision: Standing,
) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let caller = context::operator(&config, &args.persona)?;
    let pattern = pattern(&config, &args.what)?;
    refuse_for_host_escape(&config, &args.what, decision)?;
    let what = format!(
        "From now on persona '{}' may use {}{} without an ask.",
        args.persona,
        pattern,
        if args.read_only { ", where the tool says that it only reads," } else { "" }
    );
    // The narrower decisions are anybody's.
    let decided_by = match decision {
        Standing::Allow => operator::prove(&config, &what)?.approver(),
        // An ask in place of a denial widens as well.
        Standing::Ask => operator::prove(&config, &format!("From now on {pattern} asks."))?.approver(),
        Standing::Deny => format!("uid {}", crate::sys::user()),
    };
    let proven = decision != Standing::Deny;
    let store = context::store(&config, "cli")?;
    let mut row = StandingDecision {
        persona: caller.persona,
        pattern,
        decision,
        read_only: args.read_only,
        decided_by,
    };
    if !store.set_standing(&row, proven).await.map_err(context::store_failure)? {
        // In place of a denial, or of an ask, for every tool it frees those that do more than read.
        let what =
            format!("From now on {} is denied only where a tool says that it only reads.", row.pattern);
        row.decided_by = operator::prove(&config, &what)?.approver();
        store.set_standing(&row, true).await.map_err(context::store_failure)?;
    }
    let overruled = overruled(&config, &row);
    if args.json {
        return output::json(&json!({ "decision": row, "overruled_by": overruled }));
    }
    let which = if row.read_only { ", tools that say they only read" } else { "" };
    let decided = format!("{}: {}{which}, for persona {}", row.decision.as_str(), row.pattern, row.persona);
    output::line(&decided)?;
    match overruled {
        Some(label) => output::line(&format!(
            "it goes on asking: the label \"{label}\" stands under personas.{}.capabilities.require_approval",
            row.persona
        )),
        None => Ok(()),
    }
}

/// `SERVER` or `SERVER/TOOL`; the tool by its original name.
fn pattern(config: &Config, what: &str) -> Result<String, Failure> {
    let server = what.split_once('/').map_or(what, |(server, _)| server);
    if !config.servers.contains_key(server) {
        return Err(Failure::usage(format!("there is no server '{server}'")).hint("see `toolgate mcp list`"));
    }
    let text = format!("mcp.call:{what}");
    text.parse::<toolgate_labels::Pattern>()
        .map_err(|error| Failure::usage(format!("'{what}' is no SERVER or SERVER/TOOL: {error}")))?;
    Ok(text)
}

/// What can leave its sandbox is approved for a session at most (APR-020, TRU-006).
fn refuse_for_host_escape(config: &Config, what: &str, decision: Standing) -> Result<(), Failure> {
    let server = what.split_once('/').map_or(what, |(server, _)| server);
    let escapes = config.servers.get(server).is_some_and(|server| server.trust.host_escape);
    if decision != Standing::Allow || !escapes {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "server '{server}' has trust.host_escape, so nothing of it is allowed for good"
    ))
    .hint(
        "grant its asks with `toolgate approvals grant ASK --for session`, or name single tools under \
               trust.auto_approve_tools in toolgate.yaml",
    ))
}

/// The label of toolgate.yaml that goes on asking about exactly what was allowed.
fn overruled(config: &Config, row: &StandingDecision) -> Option<String> {
    if row.decision != Standing::Allow {
        return None;
    }
    let label: Label = row.pattern.parse().ok()?;
    let capabilities = config.personas.get(&row.persona)?.capabilities.as_ref()?;
    let covering = capabilities.require_approval.iter().find(|pattern| pattern.covers(&label))?;
    Some(covering.to_string())
}
