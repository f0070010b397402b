//! Editing JSON as text: what is not named stays byte for byte what it was.
//!
//! Contract: texts that go in have passed the door (or live in a `RawValue`); pointers are RFC 6901. A changed text is
//! valid JSON if the old one was, because every new value is checked before it is spliced in. On text that is no JSON
//! the functions answer with [`EditError::Malformed`] or `None`; they never panic.
//!
//! Bounds: reading and editing walk the text at most once whatever the number of edits; [`get`] allocates nothing.
//! Pointers have at most [`MAX_TOKENS`] tokens, which bounds recursion. An insertion may make a text deeper or longer
//! than the door allows: whoever inserts foreign values scans the outcome.

mod plan;
mod pointer;
mod strings;

use serde_json::value::RawValue;

use crate::json::{self, Children};
use pointer::{Tokens, token_is_key};
pub use strings::{map_keys_and_values, map_strings};

/// Most reference tokens in a pointer. Twice the door's depth, so that every place behind the door can be named.
pub const MAX_TOKENS: usize = 128;

/// Why a text could not be edited. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not the JSON it was taken for.
    #[error("the text is no JSON at byte {offset}")]
    Malformed {
        /// Bytes from the start of the container that was being walked.
        offset: usize,
    },
    /// The text given to [`raw`] is no JSON.
    #[error("the text is no JSON at line {line}, column {column}")]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted in bytes from 1.
        column: usize,
    },
    /// The pointer is no RFC 6901 pointer or has too many tokens.
    #[error("{0:?} is no JSON pointer of at most 128 tokens")]
    BadPointer(String),
    /// The pointer names nothing, or its parent does not exist.
    #[error("the pointer {0:?} names nothing in this document")]
    Missing(String),
    /// The pointer's parent is a scalar, or an array where the token is no index of it.
    #[error("the pointer {0:?} leads into a value that has no such place")]
    NotThere(String),
    /// Two edits of one call name the same place, or one lies inside the other.
    #[error("two edits overlap at {0:?}")]
    Overlap(String),
    /// The whole document cannot be removed.
    #[error("the whole document cannot be removed")]
    Root,
    /// Rewriting keys has made two keys of one object equal; the pointer names the second one.
    #[error("two keys have become equal at {0:?}")]
    KeysMeet(String),
    /// The new value is no JSON.
    #[error("the new value for {0:?} is no JSON")]
    BadValue(String),
}

/// The value a pointer names, as written; `""` is the whole document without blanks around it. Where an object holds
/// a key twice (which the door refuses) the first one counts.
pub fn get<'a>(json: &'a str, pointer: &str) -> Option<&'a str> {
    let mut value = trim(json);
    for token in Tokens::of(pointer)? {
        let mut children = Children::of(value)?;
        let found = if children.is_object() {
            children.find_map(|child| match child {
                Ok(child) if child.key.is_some_and(|key| token_is_key(token, key)) => Some(child.value),
                _ => None,
            })?
        } else {
            children.nth(pointer::index(token)?)?.ok()?.value
        };
        value = value.get(found)?;
    }
    Some(value)
}

/// Replaces the value a pointer names, or inserts it as the last member of its parent, which must exist. In an array
/// the token is an index to replace, or `-` or the length to append.
pub fn set(json: &str, pointer: &str, value: &str) -> Result<String, EditError> {
    set_all(json, &[(pointer, Some(value))])
}

/// As [`set`], and makes an object of every missing parent.
pub fn ensure(json: &str, pointer: &str, value: &str) -> Result<String, EditError> {
    plan::apply(json, &[(pointer, Some(value))], plan::Manner::Ensure)
}

/// Several edits at once: `Some` as in [`set`], `None` removes. All pointers count in the document as it was, so that
/// removing `/0` does not shift `/1`. Removing what is not there is an error, because a redaction that names nothing
/// has redacted nothing; see [`drop_all`].
pub fn set_all(json: &str, edits: &[(&str, Option<&str>)]) -> Result<String, EditError> {
    plan::apply(json, edits, plan::Manner::Strict)
}

/// Removes what the pointers name; those that name nothing are passed over.
pub fn drop_all(json: &str, pointers: &[&str]) -> Result<String, EditError> {
    let edits: Vec<_> = pointers.iter().map(|pointer| (*pointer, None)).collect();
    plan::apply(json, &edits, plan::Manner::Lenient)
}

/// The members of an object, in order: unescaped key, raw value.
pub fn members(json: &str) -> Result<Vec<(String, &str)>, EditError> {
    let children =
        Children::of(json).filter(Children::is_object).ok_or(EditError::Malformed { offset: 0 })?;
    let mut members = Vec::new();
    for child in children {
        let child = child.map_err(malformed)?;
        let key = child.key.unwrap_or_default();
        let key = if key.contains('\\') { json::unescape(key).collect() } else { key.to_owned() };
        members.push((key, json.get(child.value).ok_or(EditError::Malformed { offset: 0 })?));
    }
    Ok(members)
}

/// The elements of an array, in order, raw.
pub fn elements(json: &str) -> Result<Vec<&str>, EditError> {
    let children =
        Children::of(json).filter(|it| !it.is_object()).ok_or(EditError::Malformed { offset: 0 })?;
    let mut elements = Vec::new();
    for child in children {
        let child = child.map_err(malformed)?;
        elements.push(json.get(child.value).ok_or(EditError::Malformed { offset: 0 })?);
    }
    Ok(elements)
}

/// The value of a JSON string, unescaped; `None` for any other value. Lone surrogates come out as U+FFFD.
pub fn string(json: &str) -> Option<String> {
    json::string(json)
}

/// `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    json::quote(text)
}

/// JSON text as a raw value, checked.
pub fn raw(text: String) -> Result<Box<RawValue>, EditError> {
    RawValue::from_string(text)
        .map_err(|error| EditError::NotJson { line: error.line(), column: error.column() })
}

fn trim(json: &str) -> &str {
    json.trim_matches([' ', '\t', '\n', '\r'])
}

fn malformed(error: json::Malformed) -> EditError {
    EditError::Malformed { offset: error.offset }
}

#[cfg(test)]
mod tests;
