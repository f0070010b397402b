//! An ask in words: for the model, and for the person who answers.
//!
//! Threat: reason, names and arguments were written by servers and agents. What a person is shown is
//! escaped and cut, so that no terminal sequence, hidden character or forged line can stand in it.

use toolgate_base::display::show as escape;
use toolgate_plugins::Facts;
use toolgate_store::Ask;

use crate::caller::Caller;
use crate::decide::Verdict;

/// Characters of arguments and reasons that a person is shown.
const MAX_SHOWN: usize = 1_000;
/// The action of a tool call.
const CALL: &str = "call";

/// What a model, and the person behind it, need to know: what happened and both ways to grant.
pub(super) fn for_model(caller: &Caller, ask: &Ask, facts: &Facts, verdict: &Verdict) -> String {
    let (server, tool) = (&ask.about.server, &ask.about.tool);
    let label = format!("mcp.{}:{server}/{tool}", ask.about.action);
    let capabilities = format!("personas.{}.capabilities", caller.persona);
    // A standing decision names a tool or a whole server.
    let allowed = if ask.about.action == CALL { format!("{server}/{tool}") } else { server.clone() };
    let standing = match (&facts.matched_approval, facts.has_capabilities) {
        (Some(matched), _) => format!(
            "take the label \"{matched}\" out of {capabilities}.require_approval and write \"{label}\" under \
             {capabilities}.allow in toolgate.yaml"
        ),
        (None, true) => format!(
            "add the label \"{label}\" (or \"mcp.call:{server}\") to {capabilities}.allow in toolgate.yaml"
        ),
        (None, false) => format!(
            "toolgate mcp allow {allowed} --persona {}, or the label \"{label}\" (or \
             \"mcp.call:{server}\") under {capabilities}.allow in toolgate.yaml; with a capabilities block, \
             what no label covers is denied",
            caller.persona
        ),
    };
    format!(
        "A person has to approve this {what} first: {reason}\n\
         Ask {ask} is open. Nothing was sent to server '{server}'.\n\
         The operator can grant it in one of two ways:\n\
         1. once, for exactly these arguments: toolgate approvals grant {ask}\n\
         2. from now on: {standing}\n\
         Then repeat the same {what}.",
        what = noun(ask),
        reason = verdict.reason,
        ask = ask.id,
    )
}

/// What the person at the client is shown. It says who asks, because a server's own questions come the
/// same way.
pub(super) fn for_person(ask: &Ask) -> String {
    let about = &ask.about;
    format!(
        "Toolgate asks (this is not the server): may the agent {verb} {tool} of server {server}?\n\
         As: {persona}\n\
         Why you are asked: {reason}\n\
         Arguments: {arguments}\n\
         Your answer counts for this one {what} ({id}).",
        verb = verb(ask),
        what = noun(ask),
        tool = shown(&about.tool),
        server = shown(&about.server),
        persona = shown(&about.persona),
        reason = shown(&about.reason),
        arguments = shown(&about.arguments),
        id = ask.id,
    )
}

/// What is done, as `call`.
fn noun(ask: &Ask) -> &'static str {
    match ask.about.action.as_str() {
        CALL => "call",
        "read" => "read",
        "subscribe" => "subscription",
        "complete" => "completion",
        _ => "request",
    }
}

fn verb(ask: &Ask) -> &'static str {
    match ask.about.action.as_str() {
        "read" => "read",
        "subscribe" => "hear of changes of",
        "prompt" => "fetch the prompt",
        "complete" => "complete an argument of",
        _ => "use",
    }
}

fn shown(text: &str) -> String {
    let escaped = escape(text);
    if escaped.chars().count() <= MAX_SHOWN {
        return escaped;
    }
    let cut: String = escaped.chars().take(MAX_SHOWN).collect();
    format!("{cut}… (cut)")
}
