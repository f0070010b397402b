//! Sorting a message into its shape.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{ErrorObject, Message, Notification, Outcome, Request, Response};
use crate::{ErrorObject as Answer, Id, codes, edit};

/// Why JSON is no message. The sender is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not a JSON object, a member twice, or a member of a wrong type.
    #[error("the message is no JSON-RPC object: {0}")]
    NotAnObject(String),
    /// `jsonrpc` is not `"2.0"`.
    #[error("the message does not say \"jsonrpc\":\"2.0\"")]
    Version,
    /// `id` is `null` or no integer or string.
    #[error("the request id is neither an integer nor a string")]
    BadId,
    /// A result without an id answers nothing.
    #[error("the response carries no id")]
    NoId,
    /// `params` is no object.
    #[error("params is not an object")]
    BadParams,
    /// `error` has no integer `code` and string `message`.
    #[error("error is not an object with an integer code and a string message")]
    BadError,
    /// Neither `method` nor exactly one of `result` and `error`.
    #[error("the message is neither a call nor exactly one of result and error")]
    Shapeless,
    /// A batch without messages.
    #[error("the batch is empty")]
    EmptyBatch,
}

impl ParseError {
    /// The error to answer a client with: everything here is an invalid request (JSON-RPC 2.0, 5.1).
    pub fn to_error_object(&self) -> Answer {
        Answer::new(codes::INVALID_REQUEST, self.to_string())
    }
}

#[derive(Deserialize)]
#[serde(expecting = "a JSON object")]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

pub(super) fn message(text: &str) -> Result<Message, ParseError> {
    // A derived struct would also read an array, member by member.
    if !text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{') {
        return Err(ParseError::NotAnObject("it starts with no brace".to_owned()));
    }
    let envelope: Envelope<'_> =
        serde_json::from_str(text).map_err(|error| ParseError::NotAnObject(error.to_string()))?;
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return Err(ParseError::Version);
    }
    match envelope.method {
        Some(_) if envelope.result.is_some() || envelope.error.is_some() => Err(ParseError::Shapeless),
        Some(method) => call(envelope.id, method.into_owned(), envelope.params),
        None => response(envelope.id, envelope.result, envelope.error),
    }
}

pub(super) fn batch(text: &str) -> Result<Vec<Result<Message, ParseError>>, ParseError> {
    if !text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('[') {
        return Ok(vec![message(text)]);
    }
    let elements = edit::elements(text).map_err(|error| ParseError::NotAnObject(error.to_string()))?;
    if elements.is_empty() {
        return Err(ParseError::EmptyBatch);
    }
    Ok(elements.into_iter().map(message).collect())
}

fn call(id: Option<&RawValue>, method: String, params: Option<&RawValue>) -> Result<Message, ParseError> {
    let params = match params {
        Some(params) if params.get().starts_with('{') => Some(params.to_owned()),
        // Some clients write out the absence of parameters.
        Some(params) if params.get() == "null" => None,
        None => None,
        Some(_) => return Err(ParseError::BadParams),
    };
    Ok(match id {
        Some(id) => {
            let id = Id::from_json(id.get()).ok_or(ParseError::BadId)?;
            Message::Request(Request { id, method, params })
        }
        None => Message::Notification(Notification { method, params }),
    })
}

fn response(
    id: Option<&RawValue>,
    result: Option<&RawValue>,
    error: Option<&RawValue>,
) -> Result<Message, ParseError> {
    let id = match id {
        Some(id) if id.get() != "null" => Some(Id::from_json(id.get()).ok_or(ParseError::BadId)?),
        _ => None,
    };
    // Some servers write both members, one of them null.
    let result_stands = result.is_some_and(|result| result.get() != "null");
    let outcome = match (result, error) {
        (Some(result), None) => Outcome::Result(result.to_owned()),
        (Some(result), Some(error)) if error.get() == "null" => Outcome::Result(result.to_owned()),
        (_, Some(error)) if !result_stands => {
            Outcome::Error(ErrorObject::from_json(error.get()).ok_or(ParseError::BadError)?)
        }
        _ => return Err(ParseError::Shapeless),
    };
    if id.is_none() && matches!(outcome, Outcome::Result(_)) {
        return Err(ParseError::NoId);
    }
    Ok(Message::Response(Response { id, outcome }))
}
