//! `mcp allow`, `mcp ask` and `mcp deny`: a standing decision for a persona, in the data directory.
//!
//! What is denied or asked about holds whatever policies are installed; what is allowed they see as they
//! see a label of toolgate.yaml. To allow widens and needs proof of the operator. What toolgate.yaml puts
//! under `require_approval` goes on asking, and that is said.
//!
//! A word about something that does not exist decides nothing and looks as if it did, so it is refused: a server
//! that is not configured, and a tool that the approved surface of its server does not have. Of a server that was
//! never reached nobody knows its tools: what narrows is recorded and that is said, and to allow what nobody has
//! seen takes `--anyway`.

use std::path::Path;

use serde_json::json;
use toolgate_config::Config;
use toolgate_labels::Label;
use toolgate_signing::DefinitionKind;
use toolgate_store::{Standing, StandingDecision, Store};

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
    let store = context::store(&config, "cli")?;
    check_tool(&config, &store, args, decision)?;
    refuse_literal_wildcard(&config, &store, &args.what)?;
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
    let mut row = StandingDecision {
        persona: caller.persona,
        pattern,
        decision,
        read_only: args.read_only,
        decided_by,
        decided_at_ms: 0,
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
    let which = match (row.read_only, row.pattern.ends_with("/*")) {
        (true, _) => ", tools that say they only read",
        (false, true) => ", every tool of the server",
        (false, false) => "",
    };
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
        let names = config.servers.keys().map(String::as_str);
        let near = toolgate_config::nearest(server, names).map(|name| format!("did you mean '{name}'? "));
        return Err(Failure::usage(format!("there is no server '{server}', so this would decide nothing"))
            .hint(format!("{}see `toolgate mcp list`", near.unwrap_or_default())));
    }
    let text = format!("mcp.call:{what}");
    text.parse::<toolgate_labels::Pattern>()
        .map_err(|error| Failure::usage(format!("'{what}' is no SERVER or SERVER/TOOL: {error}")))?;
    Ok(text)
}

/// A tool by a name that its server does not have.
fn check_tool(config: &Config, store: &Store, args: &McpDecide, decision: Standing) -> Result<(), Failure> {
    let Some((server, tool)) = args.what.split_once('/') else { return Ok(()) };
    let Some(server) = config.servers.get(server).filter(|_| !args.anyway && tool != "*") else {
        return Ok(());
    };
    let name = &server.name;
    let pins = store.pins_of(&server.identity()).map_err(context::store_failure)?;
    let Some(pins) = pins else {
        let unknown = format!(
            "nothing of server '{name}' was ever approved, so nobody knows whether it has a tool '{tool}'"
        );
        if decision != Standing::Allow {
            output::note(&unknown);
            return Ok(());
        }
        return Err(Failure::usage(unknown).hint(format!(
            "look with `toolgate mcp tools {name}` first, or add --anyway to allow what nobody has seen"
        )));
    };
    let tools: Vec<&str> = pins
        .definitions
        .iter()
        .filter(|pin| pin.kind == DefinitionKind::Tool.as_str())
        .map(|pin| pin.name.as_str())
        .collect();
    if tools.contains(&tool) {
        return Ok(());
    }
    let hint = match toolgate_config::nearest(tool, tools.iter().copied()) {
        Some(near) => format!("did you mean `{name}/{near}`? "),
        None => String::new(),
    };
    Err(Failure::usage(format!(
        "server '{name}' has no approved tool '{tool}', so this would decide nothing now"
    ))
    .hint(format!("{hint}see `toolgate mcp tools {name}`; --anyway records it for a tool that may come")))
}

/// `SERVER/*` is every tool of the server. Where the server has one that is called `*`, whoever copied its name
/// would have said all of them (SE-14), so the whole server is named as that.
fn refuse_literal_wildcard(config: &Config, store: &Store, what: &str) -> Result<(), Failure> {
    let Some(server) = what.strip_suffix("/*").and_then(|server| config.servers.get(server)) else {
        return Ok(());
    };
    let pins = store.pins_of(&server.identity()).map_err(context::store_failure)?;
    let is_tool = pins.is_some_and(|pins| pins.of(DefinitionKind::Tool.as_str(), "*").is_some());
    if !is_tool {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "server '{0}' has a tool that is called `*`, and `{0}/*` would be every tool of it",
        server.name
    ))
    .hint(format!(
        "write `{}` alone for the whole server; that one tool is granted ask by ask, with `toolgate approvals grant`",
        server.name
    )))
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
pub(super) fn overruled(config: &Config, row: &StandingDecision) -> Option<String> {
    if row.decision != Standing::Allow {
        return None;
    }
    let label: Label = row.pattern.parse().ok()?;
    let capabilities = config.personas.get(&row.persona)?.capabilities.as_ref()?;
    let covering = capabilities.require_approval.iter().find(|pattern| pattern.covers(&label))?;
    Some(covering.to_string())
}
