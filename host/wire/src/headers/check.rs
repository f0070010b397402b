//! Comparing headers with the body they claim to repeat.

use super::params::{ParamKind, integer};
use super::{METHOD, NAME, PROTOCOL_VERSION, SchemaHeaderError, annotations, decode_value, name_pointer};
use crate::{ErrorObject, codes, edit};

const META_VERSION: &str = "/_meta/io.modelcontextprotocol~1protocolVersion";

/// A header that is absent, unreadable, or says something else than the body. The client, or something between, is at
/// fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("header {header} {fault}; headers must repeat what the body says")]
pub struct HeaderMismatch {
    /// The header's name.
    pub header: String,
    /// What is wrong with it.
    pub fault: HeaderFault,
}

/// What is wrong with a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// The body has the value, the headers do not.
    #[error("is missing")]
    Missing,
    /// The header is there, the body has no such value.
    #[error("stands for a value the body does not have")]
    Unexpected,
    /// It claims to be base64 of UTF-8 and is not.
    #[error("is not decodable")]
    Undecodable,
    /// The two differ.
    #[error("differs from the body")]
    Different,
    /// It is there more than once, so that two readers could read two values.
    #[error("is there more than once")]
    Repeated,
}

impl HeaderMismatch {
    /// -32020; over HTTP with status 400 (protocol.md 1.2).
    pub fn to_error_object(&self) -> ErrorObject {
        ErrorObject::new(codes::HEADER_MISMATCH, self.to_string())
    }

    fn new(header: &str, fault: HeaderFault) -> Self {
        Self { header: header.to_owned(), fault }
    }
}

/// Checks the standard headers of a modern request: revision, method, and name where the method has one. `get` looks a
/// header up by its lower-case name; a header that occurs twice must be refused before.
pub fn check(
    method: &str,
    params: Option<&str>,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<(), HeaderMismatch> {
    let body = |pointer| params.and_then(|params| edit::get(params, pointer)).and_then(edit::string);
    // A body without a revision is refused for that (-32602), not for its headers.
    if let Some(version) = body(META_VERSION) {
        compare(PROTOCOL_VERSION, Some(&version), get(PROTOCOL_VERSION))?;
    }
    compare(METHOD, Some(method), get(METHOD))?;
    if let Some(pointer) = name_pointer(method) {
        let header = get(NAME).map(|raw| decoded(NAME, &raw)).transpose()?;
        compare(NAME, body(pointer).as_deref(), header)?;
    }
    Ok(())
}

/// Checks the `Mcp-Param-*` headers of a `tools/call` against its arguments. Headers the schema does not name are left
/// alone. A schema whose annotations are invalid enforces nothing: its tool is not offered over HTTP.
pub fn check_params(
    input_schema: &str,
    arguments: &str,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<(), HeaderMismatch> {
    let params: Result<_, SchemaHeaderError> = annotations(input_schema);
    for param in params.unwrap_or_default() {
        let header = get(&param.header.to_ascii_lowercase());
        let header = header.map(|raw| decoded(&param.header, &raw)).transpose()?;
        let raw = edit::get(arguments, &param.pointer).filter(|raw| *raw != "null");
        let body = raw.and_then(|raw| param.kind.text(raw));
        if raw.is_some() && body.is_none() {
            // Not of the annotated type: no header can repeat it, and the schema will refuse it.
            continue;
        }
        // Numbers are compared as numbers: 42.0 is 42.
        let header = match (param.kind, header) {
            (ParamKind::Integer, Some(text)) => {
                Some(integer(&text).map_or(text, |number| number.to_string()))
            }
            (_, header) => header,
        };
        compare(&param.header, body.as_deref(), header)?;
    }
    Ok(())
}

fn compare(name: &str, body: Option<&str>, header: Option<String>) -> Result<(), HeaderMismatch> {
    match (body, header) {
        (Some(body), Some(header)) if body == header => Ok(()),
        (None, None) => Ok(()),
        (Some(_), Some(_)) => Err(HeaderMismatch::new(name, HeaderFault::Different)),
        (Some(_), None) => Err(HeaderMismatch::new(name, HeaderFault::Missing)),
        (None, Some(_)) => Err(HeaderMismatch::new(name, HeaderFault::Unexpected)),
    }
}

fn decoded(name: &str, raw: &str) -> Result<String, HeaderMismatch> {
    decode_value(raw).ok_or_else(|| HeaderMismatch::new(name, HeaderFault::Undecodable))
}
