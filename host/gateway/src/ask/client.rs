//! The question in the client that the call came from, and what its answer means.
//!
//! Contract: an explicit yes grants this one call, an explicit no rejects it, and everything else
//! (cancel, an error, silence, an answer without the field) leaves the ask open for the operator.

use serde_json::json;
use serde_json::value::RawValue;
use toolgate_store::Ask;
use toolgate_wire::{Outcome, edit};

use super::show;

/// The method of the question in both eras.
pub(super) const METHOD: &str = "elicitation/create";
const ALLOW: &str = "allow once";
const DENY: &str = "deny";

/// What a person said in a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// Let it pass, once.
    Allow,
    /// Do not.
    Deny,
    /// Neither.
    Nothing,
}

/// The parameters of the question. One closed field, so that a client shows one prompt.
pub(super) fn form(ask: &Ask) -> serde_json::Value {
    json!({
        "mode": "form",
        "message": show::for_person(ask),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "description": "whether this one call may go on",
                    "enum": [ALLOW, DENY],
                },
            },
            "required": ["decision"],
        },
    })
}

/// What an answer says.
pub(super) fn said(result: &str) -> Said {
    let action = edit::get(result, "/action").and_then(edit::string);
    match action.as_deref() {
        Some("decline") => Said::Deny,
        Some("accept") => match edit::get(result, "/content/decision").and_then(edit::string).as_deref() {
            Some(ALLOW) => Said::Allow,
            Some(DENY) => Said::Deny,
            _ => Said::Nothing,
        },
        _ => Said::Nothing,
    }
}

/// What an outcome of a session's question says.
pub(super) fn said_by(outcome: &Outcome) -> Said {
    match outcome {
        Outcome::Result(result) => said(result.get()),
        Outcome::Error(_) => Said::Nothing,
    }
}

/// The parameters as raw JSON.
pub(super) fn raw_form(ask: &Ask) -> Option<Box<RawValue>> {
    edit::raw(form(ask).to_string()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_explicit_yes_is_a_yes() {
        for (answer, meant) in [
            (r#"{"action":"accept","content":{"decision":"allow once"}}"#, Said::Allow),
            (r#"{"action":"accept","content":{"decision":"deny"}}"#, Said::Deny),
            (r#"{"action":"decline"}"#, Said::Deny),
            (r#"{"action":"cancel"}"#, Said::Nothing),
            (r#"{"action":"accept"}"#, Said::Nothing),
            (r#"{"action":"accept","content":{}}"#, Said::Nothing),
            (r#"{"action":"accept","content":{"decision":"allow"}}"#, Said::Nothing),
            (r#"{"action":"decline","content":{"decision":"allow once"}}"#, Said::Deny),
            ("{}", Said::Nothing),
            ("null", Said::Nothing),
        ] {
            assert_eq!(said(answer), meant, "{answer}");
        }
    }
}
