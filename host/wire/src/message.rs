//! The three shapes of a JSON-RPC message. Payloads stay the text the peer wrote.
//!
//! Contract: [`Message::parse`] takes text that passed the door and only sorts it: ids keep type and value, `params`,
//! `result` and `error.data` are copied as raw text, unread. [`Message::to_text`] writes one line. Members of the
//! envelope that JSON-RPC does not know are dropped; members inside payloads never are (field report PR-03).
//!
//! Bounds: one pass over the text and one copy of the payload. Depth is the door's business.

mod error_object;
mod parse;

use serde_json::value::RawValue;

pub use error_object::ErrorObject;
pub use parse::ParseError;

use crate::{Id, json};

/// One JSON-RPC 2.0 message.
#[derive(Debug, Clone)]
pub enum Message {
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// Is one.
    Response(Response),
}

/// A call that wants an answer.
#[derive(Debug, Clone)]
pub struct Request {
    /// The sender's id.
    pub id: Id,
    /// The method's name.
    pub method: String,
    /// A JSON object, or nothing.
    pub params: Option<Box<RawValue>>,
}

/// A call that wants no answer.
#[derive(Debug, Clone)]
pub struct Notification {
    /// The method's name.
    pub method: String,
    /// A JSON object, or nothing.
    pub params: Option<Box<RawValue>>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// The id of the request it answers; `None` only on an error about a message whose id could not be read.
    pub id: Option<Id>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It was answered. Any JSON value.
    Result(Box<RawValue>),
    /// It failed.
    Error(ErrorObject),
}

impl Message {
    /// Sorts one message. A batch is refused here: see [`Message::parse_batch`].
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::message(text)
    }

    /// Splits a batch (revision 2025-03-26 only) into messages, each with its own fate; a single message counts as a
    /// batch of one. An empty batch is an error (JSON-RPC 2.0, 6).
    pub fn parse_batch(text: &str) -> Result<Vec<Result<Self, ParseError>>, ParseError> {
        parse::batch(text)
    }

    /// The message as one line without its line ending, ready for either transport.
    pub fn to_text(&self) -> String {
        match self {
            Self::Request(request) => request.to_text(),
            Self::Notification(notification) => notification.to_text(),
            Self::Response(response) => response.to_text(),
        }
    }

    /// The id it carries, if it carries one.
    pub fn id(&self) -> Option<&Id> {
        match self {
            Self::Request(request) => Some(&request.id),
            Self::Notification(_) => None,
            Self::Response(response) => response.id.as_ref(),
        }
    }

    /// The method it names, if it names one.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request(request) => Some(&request.method),
            Self::Notification(notification) => Some(&notification.method),
            Self::Response(_) => None,
        }
    }
}

impl Request {
    /// A request of our own.
    pub fn new(id: Id, method: impl Into<String>, params: Option<Box<RawValue>>) -> Self {
        Self { id, method: method.into(), params }
    }

    /// As [`Message::to_text`].
    pub fn to_text(&self) -> String {
        call_text(Some(&self.id), &self.method, self.params.as_deref())
    }
}

impl Notification {
    /// A notification of our own.
    pub fn new(method: impl Into<String>, params: Option<Box<RawValue>>) -> Self {
        Self { method: method.into(), params }
    }

    /// As [`Message::to_text`].
    pub fn to_text(&self) -> String {
        call_text(None, &self.method, self.params.as_deref())
    }
}

impl Response {
    /// An answer that carries a result.
    pub fn result(id: Id, result: Box<RawValue>) -> Self {
        Self { id: Some(id), outcome: Outcome::Result(result) }
    }

    /// An answer that carries an error; without an id where none could be read.
    pub fn error(id: Option<Id>, error: ErrorObject) -> Self {
        Self { id, outcome: Outcome::Error(error) }
    }

    /// As [`Message::to_text`].
    pub fn to_text(&self) -> String {
        let id = self.id.as_ref().map_or_else(|| "null".to_owned(), Id::to_json);
        match &self.outcome {
            Outcome::Result(result) => {
                let mut text = String::with_capacity(result.get().len() + id.len() + 48);
                text.push_str(r#"{"jsonrpc":"2.0","id":"#);
                text.push_str(&id);
                text.push_str(r#","result":"#);
                push_line(&mut text, result.get());
                text.push('}');
                text
            }
            Outcome::Error(error) => {
                let mut text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#);
                push_line(&mut text, &error.to_json());
                text.push('}');
                text
            }
        }
    }
}

impl From<Request> for Message {
    fn from(request: Request) -> Self {
        Self::Request(request)
    }
}

impl From<Notification> for Message {
    fn from(notification: Notification) -> Self {
        Self::Notification(notification)
    }
}

impl From<Response> for Message {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}

fn call_text(id: Option<&Id>, method: &str, params: Option<&RawValue>) -> String {
    let mut text = String::with_capacity(params.map_or(0, |params| params.get().len()) + method.len() + 80);
    text.push_str(r#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        text.push_str(r#""id":"#);
        text.push_str(&id.to_json());
        text.push(',');
    }
    text.push_str(r#""method":"#);
    text.push_str(&json::quote(method));
    if let Some(params) = params {
        text.push_str(r#","params":"#);
        push_line(&mut text, params.get());
    }
    text.push('}');
    text
}

/// Appends JSON without its line breaks. Inside strings a raw line break is no JSON, so every one stands between
/// tokens, where a space means the same.
fn push_line(text: &mut String, json: &str) {
    let mut rest = json;
    while let Some((before, after)) =
        memchr::memchr2(b'\n', b'\r', rest.as_bytes()).and_then(|at| rest.split_at_checked(at))
    {
        text.push_str(before);
        text.push(' ');
        // The break is one byte.
        rest = after.get(1..).unwrap_or_default();
    }
    text.push_str(rest);
}

#[cfg(test)]
mod tests;
