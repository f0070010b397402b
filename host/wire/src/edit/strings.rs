//! Rewriting chosen strings of a document; every other byte stays as it is.
//!
//! Threat: a filter that takes something out of keys can make two keys of one object equal, and two readers could then
//! pick different members. Such an outcome is an error.

use std::borrow::Cow;

use super::EditError;
use crate::door::{self, DoorErrorKind};
use crate::{Limits, json};

/// The document with every string, keys included, replaced for which `change` gives another text. Strings it leaves
/// alone keep their escapes.
///
/// Errors: [`EditError::Malformed`] where a string does not end, [`EditError::KeysMeet`] where two keys of one object
/// have become equal.
pub fn map_strings(document: &str, change: &dyn Fn(&str) -> Option<String>) -> Result<String, EditError> {
    map_keys_and_values(document, change, change)
}

/// As [`map_strings`], with one change for keys and one for values.
pub fn map_keys_and_values(
    document: &str,
    change_key: &dyn Fn(&str) -> Option<String>,
    change_value: &dyn Fn(&str) -> Option<String>,
) -> Result<String, EditError> {
    let bytes = document.as_bytes();
    let malformed = |offset| EditError::Malformed { offset };
    let mut out = String::with_capacity(document.len());
    let (mut copied, mut at, mut keys_changed) = (0, 0, false);
    while let Some(open) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'"')) {
        let start = at + open;
        let end = json::string_end(bytes, start).ok_or_else(|| malformed(start))?;
        let inner = document.get(start + 1..end - 1).ok_or_else(|| malformed(start))?;
        let text: Cow<'_, str> = if inner.contains('\\') {
            json::unescape(inner).collect::<String>().into()
        } else {
            inner.into()
        };
        let is_key = bytes.get(json::skip_blank(bytes, end)) == Some(&b':');
        if let Some(changed) = if is_key { change_key(&text) } else { change_value(&text) } {
            out.push_str(document.get(copied..start).ok_or_else(|| malformed(copied))?);
            out.push_str(&json::quote(&changed));
            copied = end;
            keys_changed |= is_key;
        }
        at = end;
    }
    out.push_str(document.get(copied..).ok_or_else(|| malformed(copied))?);
    if keys_changed {
        check_keys(&out)?;
    }
    Ok(out)
}

fn check_keys(document: &str) -> Result<(), EditError> {
    // Size and depth are not this function's business: they are what they were.
    let limits = Limits { max_message: document.len(), max_depth: usize::MAX };
    match door::scan(document.as_bytes(), &limits) {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.kind {
            DoorErrorKind::DuplicateKey(_) => EditError::KeysMeet(error.pointer),
            _ => EditError::Malformed { offset: error.offset },
        }),
    }
}

#[cfg(test)]
mod tests;
