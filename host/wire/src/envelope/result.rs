//! The members a modern result has beside what its method defines.

use crate::edit;

/// What `resultType` says (protocol.md 1.1). Absent means complete, as older servers leave it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultKind {
    /// The answer.
    Complete,
    /// Questions first; the request comes again with the answers.
    InputRequired,
    /// An extension's word (`task`), or the raw value where it is no string. Invalid unless the extension was
    /// declared.
    Other(String),
}

/// Adds `resultType: "complete"` where there is none. A result that is no object is given back unchanged.
pub fn complete_result(result: &str) -> String {
    if edit::get(result, "/resultType").is_some() {
        return result.to_owned();
    }
    edit::set(result, "/resultType", r#""complete""#).unwrap_or_else(|_| result.to_owned())
}

/// Takes `resultType`, `ttlMs` and `cacheScope` out of a complete modern result. A result of any other kind, or of an
/// older server, is given back unchanged.
pub fn legacy_result(result: &str) -> String {
    let Some(kind) = edit::get(result, "/resultType") else { return result.to_owned() };
    if edit::string(kind).as_deref() != Some("complete") {
        return result.to_owned();
    }
    edit::drop_all(result, &["/resultType", "/ttlMs", "/cacheScope"]).unwrap_or_else(|_| result.to_owned())
}

/// What kind of result it is.
pub fn result_kind(result: &str) -> ResultKind {
    let Some(raw) = edit::get(result, "/resultType") else { return ResultKind::Complete };
    match edit::string(raw) {
        Some(word) if word == "complete" => ResultKind::Complete,
        Some(word) if word == "input_required" => ResultKind::InputRequired,
        Some(word) => ResultKind::Other(word),
        None => ResultKind::Other(raw.to_owned()),
    }
}
