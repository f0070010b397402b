//! The question in the client that the call came from, and what its answer means.
//!
//! Contract: an explicit yes grants this one call where a yes was offered, an explicit no rejects it, and
//! everything else (cancel, an error, silence, an answer without the field) leaves the ask open for the operator.

use serde_json::json;
use serde_json::value::RawValue;
use toolgate_wire::{Outcome, edit};

use super::show::Card;

/// The method of the question in both eras.
pub(super) const METHOD: &str = "elicitation/create";
const ALLOW: &str = "allow once";
const DENY: &str = "deny";
const LEAVE: &str = "leave it open";

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

/// What a person can answer in a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Yes, once, or no.
    YesOrNo,
    /// No, or leave it to the operator, who can read all of it.
    NoOrLater,
}

impl Offer {
    fn choices(self) -> [&'static str; 2] {
        match self {
            Self::YesOrNo => [ALLOW, DENY],
            Self::NoOrLater => [LEAVE, DENY],
        }
    }
}

impl Said {
    /// What it means where this was offered: a yes that nobody offered is none.
    pub(super) fn within(self, offer: Offer) -> Self {
        match (self, offer) {
            (Self::Allow, Offer::NoOrLater) => Self::Nothing,
            (said, _) => said,
        }
    }
}

/// The parameters of the question. One closed field, so that a client shows one prompt.
pub(super) fn form(card: &Card) -> serde_json::Value {
    json!({
        "mode": "form",
        "message": card.message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "description": "whether this one call may go on",
                    "enum": card.offer.choices(),
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
pub(super) fn raw_form(card: &Card) -> Option<Box<RawValue>> {
    edit::raw(form(card).to_string()).ok()
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
            (r#"{"action":"accept","content":{"decision":"leave it open"}}"#, Said::Nothing),
        ] {
            assert_eq!(said(answer), meant, "{answer}");
            assert_eq!(said(answer).within(Offer::YesOrNo), meant, "{answer}");
            let later = if meant == Said::Allow { Said::Nothing } else { meant };
            assert_eq!(said(answer).within(Offer::NoOrLater), later, "{answer}");
        }
    }
}
