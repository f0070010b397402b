//! The `error` member, with everything in it kept.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{edit, json};

/// A JSON-RPC error object. Members beside the three known ones are kept, in order.
#[derive(Debug, Clone)]
pub struct ErrorObject {
    /// What kind of error; see [`crate::codes`].
    pub code: i64,
    /// One sentence for a person.
    pub message: String,
    /// Anything the sender added.
    pub data: Option<Box<RawValue>>,
    /// Members JSON-RPC does not know, as `(key, value)`.
    pub other: Vec<(String, Box<RawValue>)>,
}

impl ErrorObject {
    /// An error of our own, without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, other: Vec::new() }
    }

    /// The same error with data.
    #[must_use]
    pub fn with_data(mut self, data: Box<RawValue>) -> Self {
        self.data = Some(data);
        self
    }

    /// Reads an error object; `None` where `code` is no integer of 64 bits or `message` no string.
    pub fn from_raw(raw: &RawValue) -> Option<Self> {
        Self::from_json(raw.get())
    }

    /// As [`ErrorObject::from_raw`], from the text of a JSON value.
    pub fn from_json(text: &str) -> Option<Self> {
        let (mut code, mut message, mut data, mut other) = (None, None, None, Vec::new());
        for (key, value) in edit::members(text).ok()? {
            match key.as_str() {
                "code" => code = Some(integer(value)?),
                "message" => message = Some(json::string(value)?),
                "data" => data = Some(edit::raw(value.to_owned()).ok()?),
                _ => other.push((key, edit::raw(value.to_owned()).ok()?)),
            }
        }
        Some(Self { code: code?, message: message?, data, other })
    }

    /// The error as a raw value.
    pub fn to_raw(&self) -> Box<RawValue> {
        // The text is JSON by construction; should that ever fail, `null` is at least no false success.
        RawValue::from_string(self.to_json()).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }

    /// The error as JSON text.
    pub fn to_json(&self) -> String {
        let mut text = format!(r#"{{"code":{},"message":{}"#, self.code, json::quote(&self.message));
        if let Some(data) = &self.data {
            text.push_str(r#","data":"#);
            text.push_str(data.get());
        }
        for (key, value) in &self.other {
            text.push(',');
            text.push_str(&json::quote(key));
            text.push(':');
            text.push_str(value.get());
        }
        text.push('}');
        text
    }
}

impl std::fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}

impl Serialize for ErrorObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_raw().serialize(serializer)
    }
}

/// An integer, also where its sender wrote it with a fraction of zeros.
fn integer(raw: &str) -> Option<i64> {
    let (whole, zeros) = raw.split_once('.').unwrap_or((raw, ""));
    if zeros.bytes().any(|b| b != b'0') {
        return None;
    }
    whole.parse().ok()
}
