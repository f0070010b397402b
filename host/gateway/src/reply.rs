//! What Toolgate itself says to a client: results and errors that cannot be mistaken for a server's.
//!
//! On `tools/call` a denial, an open ask, a passed deadline or a failed upstream is a *result* with
//! `isError: true`, a text that a model can act on, and `_meta["toolgate/error"]` with a stable code.
//! Everything else is a JSON-RPC error with a code outside the reserved ranges, and the same code and
//! details under `toolgate/error` in its data.
//!
//! Threat: a reason, a name or a note was written by an operator, a client, a server or an agent with a shell
//! (who can freeze), and a model or a terminal reads it here. So every text is escaped in this one place; what is
//! within it keeps to one line where it is put in ([`crate::decide`]).

use serde_json::json;
use serde_json::value::RawValue;
use toolgate_base::display::escape_multiline;
use toolgate_store::Deed;
use toolgate_wire::{ErrorObject, Outcome, codes};

/// Why a call did not reach its server, or did not come back. The text form is part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// A policy said no, or none said yes.
    Denied,
    /// The session did not declare the server.
    NotDeclared,
    /// A person has to answer first.
    Asked,
    /// Nobody answered in time.
    Unanswered,
    /// Too many asks of this caller are open.
    TooManyAsks,
    /// The server could not be reached.
    ServerUnavailable,
    /// The server wants a sign-in, or another credential.
    Authentication,
    /// The deadline passed; the call may have run.
    TimedOut,
    /// The call was sent and the connection ended; it may have run and is not sent again.
    MayHaveRun,
    /// The adapter refused the arguments, or failed.
    Adapter,
    /// The result was refused by a policy.
    ResultDenied,
    /// The server broke the protocol, or a limit.
    BadServer,
    /// The audit log could not be written, so nothing was sent.
    Audit,
    /// The caller cancelled.
    Cancelled,
    /// The server limits requests and asks to come back later.
    RateLimited,
    /// The server does not tell of this resource.
    NotHonored,
    /// Too many tasks of the server run or wait.
    TooManyTasks,
    /// The server works on it as a task, and nobody waits for that any longer.
    TaskRunning,
    /// A fault of Toolgate's own.
    Internal,
}

impl ErrorCode {
    /// The stable text of the code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::NotDeclared => "not_declared",
            Self::Asked => "approval_required",
            Self::Unanswered => "approval_timed_out",
            Self::TooManyAsks => "too_many_asks",
            Self::ServerUnavailable => "server_unavailable",
            Self::Authentication => "authentication_required",
            Self::TimedOut => "timed_out",
            Self::MayHaveRun => "may_have_run",
            Self::Adapter => "adapter_refused",
            Self::ResultDenied => "result_denied",
            Self::BadServer => "server_misbehaved",
            Self::Audit => "audit_unavailable",
            Self::Cancelled => "cancelled",
            Self::RateLimited => "rate_limited",
            Self::NotHonored => "not_honored",
            Self::TooManyTasks => "too_many_tasks",
            Self::TaskRunning => "task_running",
            Self::Internal => "internal",
        }
    }

    /// The code of a JSON-RPC error that says the same.
    fn number(self) -> i64 {
        match self {
            Self::Denied | Self::NotDeclared | Self::ResultDenied | Self::Unanswered => codes::DENIED,
            Self::Asked | Self::TooManyAsks => codes::ASK_PENDING,
            Self::TooManyTasks
            | Self::ServerUnavailable
            | Self::MayHaveRun
            | Self::RateLimited
            | Self::NotHonored => codes::UPSTREAM_UNAVAILABLE,
            Self::Authentication => codes::AUTHENTICATION_NEEDED,
            Self::TimedOut | Self::TaskRunning => codes::TIMED_OUT,
            Self::Adapter => codes::PLUGIN_FAULT,
            Self::BadServer => codes::UPSTREAM_INVALID,
            Self::Audit => codes::AUDIT_UNAVAILABLE,
            Self::Cancelled => codes::CANCELLED,
            Self::Internal => codes::INTERNAL_ERROR,
        }
    }
}

/// Details of a refusal for programs, beside the text for models.
#[derive(Debug, Clone, Default)]
pub struct ErrorDetails {
    /// The server the call was for.
    pub server: Option<String>,
    /// The ask that a person can answer.
    pub ask: Option<String>,
    /// Which plugin or part refused.
    pub by: Option<String>,
}

/// A refusal of `tools/call` as a tool result.
pub(crate) fn refusal(code: ErrorCode, text: &str, details: &ErrorDetails) -> Outcome {
    let text = &escape_multiline(text);
    let body = json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
        "_meta": { "toolgate/error": meta(code, details) },
    });
    match RawValue::from_string(body.to_string()) {
        Ok(raw) => Outcome::Result(raw),
        Err(_) => Outcome::Error(ErrorObject::new(codes::INTERNAL_ERROR, text.as_str())),
    }
}

/// Code and details for programs.
fn meta(code: ErrorCode, details: &ErrorDetails) -> serde_json::Value {
    let mut meta = json!({ "code": code.as_str() });
    if let Some(object) = meta.as_object_mut() {
        let members = [("server", &details.server), ("ask", &details.ask), ("by", &details.by)];
        for (name, value) in members {
            if let Some(value) = value {
                object.insert(name.to_owned(), json!(value));
            }
        }
    }
    meta
}

/// A refusal in the form of its method: of a call a result, of everything else an error with a code of
/// Toolgate's own and the details in its data.
pub(crate) fn refuse(deed: Deed, code: ErrorCode, text: &str, details: &ErrorDetails) -> Outcome {
    if deed == Deed::Call { refusal(code, text, details) } else { error(code, text, details) }
}

/// The same as an error, whatever was asked.
pub(crate) fn error(code: ErrorCode, text: &str, details: &ErrorDetails) -> Outcome {
    let mut error = ErrorObject::new(code.number(), escape_multiline(text));
    let data = json!({ "toolgate/error": meta(code, details) });
    error.data = RawValue::from_string(data.to_string()).ok();
    Outcome::Error(error)
}

/// The error for a name that this caller does not have, whether or not somebody else does (SCP-002).
pub(crate) fn unknown(deed: Deed, name: &str) -> ErrorObject {
    let shown = toolgate_base::display::escape(name);
    let (what, list) = match deed {
        Deed::Call => ("tool", "tools/list"),
        Deed::Prompt => ("prompt", "prompts/list"),
        Deed::Read | Deed::Subscribe => ("resource", "resources/list"),
        Deed::Complete => ("prompt or resource template", "prompts/list or resources/templates/list"),
    };
    ErrorObject::new(
        codes::INVALID_PARAMS,
        format!("unknown {what}: {shown}. Ask for {list} and use a name from it."),
    )
}

/// The error for a method that the server behind does not have.
pub(crate) fn not_offered(text: &str) -> ErrorObject {
    ErrorObject::new(codes::METHOD_NOT_FOUND, escape_multiline(text))
}

/// The error for parameters that are not what the method takes.
pub(crate) fn invalid_params(text: impl Into<String>) -> ErrorObject {
    ErrorObject::new(codes::INVALID_PARAMS, escape_multiline(&text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_result_that_names_its_code_and_its_ask() {
        let details = ErrorDetails { ask: Some("ask_1".into()), ..ErrorDetails::default() };
        let Outcome::Result(raw) = refusal(ErrorCode::Asked, "a person has to answer", &details) else {
            panic!("a refusal of tools/call is a result");
        };
        let value: serde_json::Value = serde_json::from_str(raw.get()).unwrap();
        assert_eq!(value["isError"], true);
        assert_eq!(value["_meta"]["toolgate/error"]["code"], "approval_required");
        assert_eq!(value["_meta"]["toolgate/error"]["ask"], "ask_1");
        assert_eq!(value["content"][0]["text"], "a person has to answer");
    }
}
