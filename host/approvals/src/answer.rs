//! An answer: an envelope around what a person decided about one ask.
//!
//! The payload is `{"ask", "call", "decision": "grant" | "deny", "approver"}`, closed; `call` repeats the
//! digest that the request named, which binds caller, server, definition, arguments, plugins and expiry.
//! The envelope is DSSE with the type [`ANSWER_TYPE`], as everything else that is signed here.

use serde::Deserialize;
use toolgate_signing::{PublicKey, Threshold, VerifyError, verify_payload};
use toolgate_store::Ask;

/// The payload type of an answer.
pub const ANSWER_TYPE: &str = "application/vnd.toolgate.approval+json";

/// The longest name of an approver, bytes.
const MAX_APPROVER: usize = 256;

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Whether the call may go on, once.
    pub grant: bool,
    /// Who, and by which key that was proven.
    pub by: String,
}

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// It is not signed by a key of the operator's.
    #[error(transparent)]
    Signature(#[from] VerifyError),
    /// What was signed is no answer.
    #[error("what was signed is no answer: {0}")]
    Payload(String),
    /// It is an answer to something else.
    #[error("it answers ask {0}, and was given for {1}")]
    Ask(String, String),
    /// The ask is the same, and the call is not.
    #[error("it names another call than the one that is asked about")]
    Call,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    ask: String,
    call: String,
    decision: Decision,
    approver: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Grant,
    Deny,
}

/// Reads an answer to `ask`, which one of `keys` has to have signed.
///
/// # Errors
/// [`AnswerError`]; the ask then stays as it is.
pub fn read_answer(envelope: &[u8], ask: &Ask, keys: &[PublicKey]) -> Result<Said, AnswerError> {
    let threshold = Threshold { keys: keys.to_vec(), minimum: 1 };
    let signed = verify_payload("the answer", envelope, ANSWER_TYPE, &threshold)?;
    let payload: Payload =
        serde_json::from_slice(&signed.payload).map_err(|error| AnswerError::Payload(error.to_string()))?;
    if payload.ask != ask.id {
        return Err(AnswerError::Ask(payload.ask, ask.id.clone()));
    }
    if payload.call != ask.call_digest() {
        return Err(AnswerError::Call);
    }
    let approver = payload.approver.trim();
    let shown = approver.chars().all(|character| !character.is_control());
    if approver.is_empty() || approver.len() > MAX_APPROVER || !shown {
        return Err(AnswerError::Payload(format!(
            "`approver` has to be a name of 1 to {MAX_APPROVER} bytes without control characters"
        )));
    }
    let key = signed.signers.first().map_or_else(String::new, |key| key.as_str().to_owned());
    Ok(Said { grant: matches!(payload.decision, Decision::Grant), by: format!("{approver} (key {key})") })
}

#[cfg(test)]
mod tests;
