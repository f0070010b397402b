//! Messages towards a client, and the envelope its era puts around a result.

use std::sync::LazyLock;

use serde_json::json;
use serde_json::value::RawValue;
use toolgate_wire::envelope::{self, Era, ResultKind};
use toolgate_wire::{ErrorObject, Id, Message, Outcome, Response, codes, edit};

use crate::backend::Offers;

/// Where a result of the modern era names the server that made it.
const SERVER_INFO: &str = "/_meta/io.modelcontextprotocol~1serverInfo";

/// Who answers. A client shows it; nothing may depend on it.
pub(crate) fn server_info() -> serde_json::Value {
    json!({ "name": "toolgate", "title": "Toolgate", "version": env!("CARGO_PKG_VERSION") })
}

/// The capabilities that one caller's servers have between them.
pub(crate) fn capabilities(offers: Offers) -> serde_json::Value {
    let mut capabilities = json!({ "tools": { "listChanged": true } });
    if let Some(object) = capabilities.as_object_mut() {
        if offers.prompts {
            object.insert("prompts".to_owned(), json!({ "listChanged": true }));
        }
        if offers.resources {
            let mut resources = json!({ "listChanged": true });
            if let Some(object) = resources.as_object_mut().filter(|_| offers.subscribe) {
                object.insert("subscribe".to_owned(), json!(true));
            }
            object.insert("resources".to_owned(), resources);
        }
        if offers.logging {
            object.insert("logging".to_owned(), json!({}));
        }
        if offers.completions {
            object.insert("completions".to_owned(), json!({}));
        }
        if offers.views {
            object.insert("extensions".to_owned(), json!({ "io.modelcontextprotocol/ui": {} }));
        }
    }
    capabilities
}

/// One response as a line of JSON. An error without an id is about a message that had none to be found.
pub(crate) fn response(id: Option<&Id>, outcome: Outcome) -> String {
    Message::Response(Response { id: id.cloned(), outcome }).to_text()
}

/// One notification as a line of JSON. `params` is JSON text of ours or from the door.
pub(crate) fn notification(method: &str, params: Option<&str>) -> String {
    let method = json!(method);
    match params {
        Some(params) => format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#),
        None => format!(r#"{{"jsonrpc":"2.0","method":{method}}}"#),
    }
}

/// The JSON text of an id.
pub(crate) fn id_text(id: &Id) -> String {
    id.to_json()
}

/// JSON text as a raw value. It cannot fail for text of ours; if it does, that is our fault and said so.
pub(crate) fn raw(text: String) -> Result<Box<RawValue>, ErrorObject> {
    RawValue::from_string(text).map_err(|error| internal(&format!("made an unreadable result: {error}")))
}

/// An error that is Toolgate's own fault.
pub(crate) fn internal(text: &str) -> ErrorObject {
    tracing::error!(text, "internal error");
    ErrorObject::new(codes::INTERNAL_ERROR, format!("internal error in Toolgate: {text}"))
}

/// The error for a method that this era does not have, or that belongs to a capability we do not offer.
pub(crate) fn unknown_method(method: &str) -> ErrorObject {
    let shown: String = toolgate_base::display::escape(method).chars().take(128).collect();
    ErrorObject::new(codes::METHOD_NOT_FOUND, format!("method not found: {shown}"))
}

/// The error for a subscription of the initialize era in a request that belongs to no session.
pub(crate) fn needs_listen(method: &str) -> ErrorObject {
    let text = format!(
        "method not found: {method} belongs to the sessions of revisions before 2026-07-28; what it asks for \
         would end with this one request. Name the resources in subscriptions/listen instead"
    );
    ErrorObject::new(codes::METHOD_NOT_FOUND, text)
}

/// Puts the era's envelope around an outcome: `resultType` and `serverInfo`, or neither.
pub(crate) fn dress(era: Era, outcome: Outcome) -> Outcome {
    let result = match outcome {
        Outcome::Result(result) => result,
        // The code of earlier revisions, which must not be sent to a client of this one.
        Outcome::Error(mut error) => {
            if era == Era::Modern && error.code == codes::LEGACY_RESOURCE_NOT_FOUND {
                error.code = codes::INVALID_PARAMS;
            }
            return Outcome::Error(error);
        }
    };
    let dressed = match era {
        Era::Modern => modern(result.get()),
        Era::Legacy => legacy(result.get()),
    };
    match dressed {
        Ok(result) => Outcome::Result(result),
        Err(error) => Outcome::Error(error),
    }
}

/// Overwrites a `serverInfo` that came from behind: the server this client talks to is Toolgate, and a
/// name that another server claims for itself must not be shown as ours.
fn modern(result: &str) -> Result<Box<RawValue>, ErrorObject> {
    static INFO: LazyLock<String> = LazyLock::new(|| server_info().to_string());
    let complete = envelope::complete_result(result);
    let marked = edit::ensure(&complete, SERVER_INFO, &INFO);
    raw(marked.map_err(|error| internal(&format!("cannot mark a result: {error}")))?)
}

/// A client of the initialize era cannot answer a result that asks for input, and would take it for an
/// empty success. So it becomes an error.
fn legacy(result: &str) -> Result<Box<RawValue>, ErrorObject> {
    match envelope::result_kind(result) {
        ResultKind::Complete => raw(envelope::legacy_result(result)),
        _ => Err(internal("the result is of a kind that this client's protocol version does not have")),
    }
}

#[cfg(test)]
mod tests;
