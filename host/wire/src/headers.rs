//! The header rules of streamable HTTP, revision 2026-07-28 (protocol.md 1.3).
//!
//! Contract: headers repeat what the body says so that intermediaries can route on them; whoever acts on the body must
//! refuse a request whose headers say something else. This module computes them from a body and compares them with
//! one. It never trusts a header.
//!
//! Threat: a client names a harmless tool in the header that a proxy reads and another one in the body.
//!
//! Bounds: one walk over the schema, at most [`MAX_SCHEMA_DEPTH`] deep, and one look-up in the arguments for each
//! annotated parameter.

mod check;
mod params;
mod value;

pub use check::{HeaderFault, HeaderMismatch, check, check_params};
pub use params::{ParamHeader, ParamKind, SchemaHeaderError, annotations, param_headers};
pub use value::{decode_value, encode_value};

use crate::edit;

/// Carries the revision; equal to the one in `_meta`.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Carries the body's `method`.
pub const METHOD: &str = "mcp-method";
/// Carries the name, URI or task id the method is about, encoded.
pub const NAME: &str = "mcp-name";
/// Prefix of the headers that carry annotated arguments, encoded.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// The session of a legacy client.
pub const SESSION_ID: &str = "mcp-session-id";
/// The event a legacy client resumes from.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// Deepest nesting of `properties` that is looked into for annotations; the door admits no deeper schema.
pub const MAX_SCHEMA_DEPTH: usize = 64;

/// The value of `Mcp-Name` for a request, not yet encoded; `None` where the method has none or the body lacks it.
pub fn mcp_name(method: &str, params: &str) -> Option<String> {
    edit::string(edit::get(params, name_pointer(method)?)?)
}

/// Which parameter `Mcp-Name` repeats.
fn name_pointer(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("/name"),
        "resources/read" => Some("/uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("/taskId"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
