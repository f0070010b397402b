//! Request ids, kept by type and value.
//!
//! Contract: an id that came in goes out as the same JSON. Numbers keep their text, because a 64-bit or 30-digit id
//! does not survive a double (field report PR-11).

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json;

/// A JSON-RPC request id: an integer or a string, never `null` (protocol.md 1.1).
///
/// Equality and hash go by type and value: `1` and `"1"` differ, `"a"` and `"\u0061"` do not.
#[derive(Debug, Clone)]
pub enum Id {
    /// An integer, as its JSON text. A fraction of zeros (`1.0`) is the same integer and keeps its text.
    Integer(Box<str>),
    /// A string's value, unescaped.
    Text(Box<str>),
}

impl Id {
    /// An integer id of our own.
    pub fn number(number: u64) -> Self {
        Self::Integer(number.to_string().into())
    }

    /// A string id of our own.
    pub fn text(text: impl Into<Box<str>>) -> Self {
        Self::Text(text.into())
    }

    /// Reads one JSON value; `None` where it is neither an integer nor a string.
    pub fn from_json(raw: &str) -> Option<Self> {
        let raw = raw.trim_matches([' ', '\t', '\n', '\r']);
        if raw.starts_with('"') {
            return Some(Self::Text(json::string(raw)?.into()));
        }
        is_integer(raw).then(|| Self::Integer(raw.into()))
    }

    /// The id as JSON text.
    pub fn to_json(&self) -> String {
        match self {
            Self::Integer(digits) => digits.to_string(),
            Self::Text(text) => json::quote(text),
        }
    }

    /// What equality compares: whether it is a number, and the text without a fraction of zeros or a negative zero.
    fn key(&self) -> (bool, &str) {
        match self {
            Self::Text(text) => (false, text),
            Self::Integer(digits) => {
                let whole = digits.split_once('.').map_or(&**digits, |(whole, _)| whole);
                (true, if whole == "-0" { "0" } else { whole })
            }
        }
    }
}

fn is_integer(raw: &str) -> bool {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    let (whole, zeros) = digits.split_once('.').unwrap_or((digits, "0"));
    let canonical = whole == "0" || !whole.starts_with('0');
    canonical
        && !whole.is_empty()
        && whole.bytes().all(|b| b.is_ascii_digit())
        && !zeros.is_empty()
        && zeros.bytes().all(|b| b == b'0')
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// Writes the id as JSON, so that `1` and `"1"` can be told apart in a log.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self::number(number)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Integer(digits) => RawValue::from_string(digits.to_string())
                .map_err(|_| serde::ser::Error::custom("the id's digits are no JSON number"))?
                .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_json(raw.get()).ok_or_else(|| serde::de::Error::custom("an id is an integer or a string"))
    }
}

#[cfg(test)]
mod tests;
