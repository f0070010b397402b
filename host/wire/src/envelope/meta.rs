//! `params._meta` of a request.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_PROTOCOL_VERSION};
use crate::{ErrorObject, codes, edit};

const META: &str = "/_meta";
const PROTOCOL_VERSION: &str = "/_meta/io.modelcontextprotocol~1protocolVersion";
const CLIENT_CAPABILITIES: &str = "/_meta/io.modelcontextprotocol~1clientCapabilities";
const CLIENT_INFO: &str = "/_meta/io.modelcontextprotocol~1clientInfo";
const LOG_LEVEL: &str = "/_meta/io.modelcontextprotocol~1logLevel";
const PROGRESS_TOKEN: &str = "/_meta/progressToken";

/// What a modern request says about its sender.
#[derive(Debug, Clone)]
pub struct ModernMeta {
    /// The revision the request is written in; not checked against the known ones here.
    pub protocol_version: String,
    /// What the client can do for the server, a JSON object.
    pub client_capabilities: Box<RawValue>,
    /// Who the client says it is, a JSON object. Display only.
    pub client_info: Option<Box<RawValue>>,
    /// The least severe log message it wants to see.
    pub log_level: Option<String>,
}

/// A modern `_meta` that breaks the revision's rules. The client is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// A required key is absent.
    #[error("params._meta lacks {0:?}, which every request of this revision carries")]
    Missing(&'static str),
    /// A key holds a value of the wrong type.
    #[error("params._meta has {key:?}, which is not {expected}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

impl EnvelopeError {
    /// -32602; over HTTP with status 400 (protocol.md 1.2).
    pub fn to_error_object(&self) -> ErrorObject {
        ErrorObject::new(codes::INVALID_PARAMS, self.to_string())
    }
}

/// Reads the modern envelope. `None`: `_meta` has no protocol version, so the message is a legacy one.
pub fn modern_meta(params: Option<&RawValue>) -> Result<Option<ModernMeta>, EnvelopeError> {
    let Some(params) = params.map(RawValue::get) else { return Ok(None) };
    // Arguments may be large and stand before `_meta`: they are walked over once.
    let Some(meta) = edit::get(params, META) else { return Ok(None) };
    let get = |pointer: &str| edit::get(meta, within_meta(pointer));
    let Some(version) = get(PROTOCOL_VERSION) else { return Ok(None) };
    let protocol_version = text(version, META_PROTOCOL_VERSION)?;
    let capabilities = get(CLIENT_CAPABILITIES);
    let capabilities = capabilities.ok_or(EnvelopeError::Missing(META_CLIENT_CAPABILITIES))?;
    let client_capabilities = object(capabilities, META_CLIENT_CAPABILITIES)?;
    let client_info = get(CLIENT_INFO).map(|info| object(info, META_CLIENT_INFO)).transpose()?;
    let log_level = get(LOG_LEVEL).map(|level| text(level, META_LOG_LEVEL)).transpose()?;
    Ok(Some(ModernMeta { protocol_version, client_capabilities, client_info, log_level }))
}

/// Puts a modern envelope into parameters. It replaces the one that was there: keys that `meta` does not give are
/// removed, so that nothing of one sender is passed on as another's. Parameters that are no object count as none.
pub fn add_modern_meta(params: Option<&str>, meta: &ModernMeta) -> String {
    let version = edit::quote(&meta.protocol_version);
    let level = meta.log_level.as_deref().map(edit::quote);
    let keys = [
        (PROTOCOL_VERSION, META_PROTOCOL_VERSION, Some(version.as_str())),
        (CLIENT_CAPABILITIES, META_CLIENT_CAPABILITIES, Some(meta.client_capabilities.get())),
        (CLIENT_INFO, META_CLIENT_INFO, meta.client_info.as_deref().map(RawValue::get)),
        (LOG_LEVEL, META_LOG_LEVEL, level.as_deref()),
    ];
    let old = params.unwrap_or("{}");
    if edit::get(old, "/_meta").is_some_and(|meta| meta.starts_with('{')) {
        // Removing what is not there would be an error, so removals are limited to what is.
        let edits: Vec<_> = keys
            .iter()
            .filter(|(pointer, _, value)| value.is_some() || edit::get(old, pointer).is_some())
            .map(|(pointer, _, value)| (*pointer, *value))
            .collect();
        if let Ok(new) = edit::set_all(old, &edits) {
            return new;
        }
    }
    let members: Vec<_> = keys
        .iter()
        .filter_map(|(_, key, value)| value.map(|value| format!("{}:{value}", edit::quote(key))))
        .collect();
    let meta = format!("{{{}}}", members.join(","));
    edit::set(old, "/_meta", &meta).unwrap_or_else(|_| format!(r#"{{"_meta":{meta}}}"#))
}

/// Takes the modern envelope out of parameters, and `_meta` with it where nothing else is in it.
pub fn strip_modern_meta(params: &str) -> Cow<'_, str> {
    drop_from_meta(params, &[PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL])
}

/// The progress token of a request as JSON text: an integer or a string.
pub fn progress_token(params: &str) -> Option<&str> {
    edit::get(params, PROGRESS_TOKEN)
}

/// Sets the progress token, given as JSON text. A token that is no JSON changes nothing.
pub fn set_progress_token(params: Option<&str>, raw: &str) -> String {
    let old = params.unwrap_or("{}");
    let new = edit::ensure(old, PROGRESS_TOKEN, raw).or_else(|_| {
        // `_meta` is there and is no object.
        edit::set(old, "/_meta", &format!(r#"{{"progressToken":{raw}}}"#))
    });
    new.unwrap_or_else(|_| old.to_owned())
}

/// Takes the progress token out, and `_meta` with it where nothing else is in it.
pub fn remove_progress_token(params: &str) -> Cow<'_, str> {
    drop_from_meta(params, &[PROGRESS_TOKEN])
}

fn drop_from_meta<'a>(params: &'a str, pointers: &[&str]) -> Cow<'a, str> {
    let Some(meta) = edit::get(params, META) else { return Cow::Borrowed(params) };
    let inside = pointers.iter().map(|pointer| within_meta(pointer));
    let there: Vec<&str> = inside.filter(|pointer| edit::get(meta, pointer).is_some()).collect();
    if there.is_empty() {
        return Cow::Borrowed(params);
    }
    let Ok(rest) = edit::drop_all(meta, &there) else { return Cow::Borrowed(params) };
    let edited = if edit::members(&rest).is_ok_and(|it| it.is_empty()) {
        edit::drop_all(params, &[META])
    } else {
        edit::set(params, META, &rest)
    };
    edited.map_or(Cow::Borrowed(params), Cow::Owned)
}

/// A pointer into parameters as one into their `_meta`.
fn within_meta(pointer: &str) -> &str {
    pointer.strip_prefix(META).unwrap_or(pointer)
}

fn text(raw: &str, key: &'static str) -> Result<String, EnvelopeError> {
    edit::string(raw).ok_or(EnvelopeError::WrongType { key, expected: "a string" })
}

fn object(raw: &str, key: &'static str) -> Result<Box<RawValue>, EnvelopeError> {
    let wrong = EnvelopeError::WrongType { key, expected: "an object" };
    if !raw.starts_with('{') {
        return Err(wrong);
    }
    edit::raw(raw.to_owned()).map_err(|_| wrong)
}
