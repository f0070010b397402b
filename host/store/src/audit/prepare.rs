//! Bounding a row before it is queued, on the thread of whoever hands it over.
//!
//! Bounds: 16 KiB of details, 512 bytes for every other text; request ids, run ids and tool names
//! come from strangers. What is longer is replaced by its beginning or by its length and digest,
//! never refused: a long name must not keep a call out of the log.
//!
//! Threat: control, bidirectional and invisible characters that rewrite the operator's screen
//! (SE-03). Details keep their value, as JSON escapes; other texts are stored in escaped form.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolgate_base::{display, hidden};

use super::row::AuditRow;

/// The most bytes of `details`.
pub(crate) const MAX_DETAILS: usize = 16 * 1024;
/// The most bytes of any other text.
const MAX_TEXT: usize = 512;
/// How much of a text that is too long is kept.
const KEPT_TEXT: usize = 400;
/// Members up to this size stay whole while larger ones are replaced.
const SMALL_MEMBER: usize = 256;

/// A row that is ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) run_id: Option<String>,
    pub(crate) thread_id: Option<String>,
    pub(crate) persona_id: Option<String>,
    pub(crate) action: String,
    pub(crate) tool: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) details: String,
}

impl Prepared {
    /// Applies the bounds.
    pub(crate) fn new(row: AuditRow) -> Self {
        Self {
            run_id: row.run_id.map(bounded),
            thread_id: row.thread_id.map(bounded),
            persona_id: row.persona_id.map(bounded),
            action: bounded(row.action),
            tool: row.tool.map(bounded),
            request_id: row.request_id.map(bounded),
            details: bounded_details(row.details),
        }
    }
}

fn bounded(text: String) -> String {
    let text = if is_plain(&text) { text } else { display::escape(&text) };
    if text.len() <= MAX_TEXT {
        return text;
    }
    let kept: String = text
        .char_indices()
        .take_while(|(at, character)| at + character.len_utf8() <= KEPT_TEXT)
        .map(|(_, character)| character)
        .collect();
    format!("{kept}… ({} bytes, {})", text.len(), digest(text.as_bytes()))
}

fn bounded_details(details: Value) -> String {
    let text = details_text(&details);
    if text.len() <= MAX_DETAILS {
        return text;
    }
    let shortened = match details {
        Value::Object(members) => shorten(members),
        other => omitted(&other),
    };
    let text = details_text(&shortened);
    if text.len() <= MAX_DETAILS {
        return text;
    }
    // So many members that even their stand-ins are too long: only what names the row is kept.
    let mut rest = Map::new();
    for key in ["event", "server"] {
        if let Some(value) = shortened.get(key)
            && value.to_string().len() <= SMALL_MEMBER
        {
            rest.insert(key.to_owned(), value.clone());
        }
    }
    rest.insert("omitted".to_owned(), omitted(&shortened));
    details_text(&Value::Object(rest))
}

/// Replaces the largest members until the rest fits.
fn shorten(mut members: Map<String, Value>) -> Value {
    let mut sizes: Vec<(usize, String)> =
        members.iter().map(|(key, value)| (value.to_string().len(), key.clone())).collect();
    sizes.sort_by(|left, right| right.cmp(left));
    let mut total: usize = sizes.iter().map(|(size, key)| size + key.len() + 4).sum();
    for (size, key) in sizes {
        // Escapes may lengthen the text, so the target keeps a margin.
        if total <= MAX_DETAILS / 2 || size <= SMALL_MEMBER {
            break;
        }
        if let Some(value) = members.get_mut(&key) {
            let replacement = omitted(value);
            total = total.saturating_sub(size) + replacement.to_string().len();
            *value = replacement;
        }
    }
    Value::Object(members)
}

fn omitted(value: &Value) -> Value {
    let text = value.to_string();
    json!({ "omitted_bytes": text.len(), "digest": digest(text.as_bytes()) })
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// JSON in which every character that could act on a screen is an escape. Outside of strings JSON
/// is ASCII, so that replacing such a character never changes the value.
fn details_text(details: &Value) -> String {
    // A value that was made in memory always has a text; the other way to it is many times slower.
    let text = serde_json::to_string(details).unwrap_or_else(|_| details.to_string());
    if is_plain(&text) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    let mut units = [0u16; 2];
    for character in text.chars() {
        if character.is_control() || hidden::is_hidden(character) {
            for unit in character.encode_utf16(&mut units) {
                // Writing to a `String` cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

#[cfg(test)]
mod tests;
