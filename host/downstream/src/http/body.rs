//! Reading one request's body, within its bounds, after its sender is known.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use toolgate_wire::{ErrorObject, codes};

use super::answer::{self, Checked, Reply};

/// Reads a body of at most `max` bytes that arrives within `patience`.
pub(super) async fn read(parts: &Parts, body: Incoming, max: usize, patience: Duration) -> Checked<Bytes> {
    if declared_length(parts).is_some_and(|length| length > max as u64) {
        return Err(too_large(max).into());
    }
    let whole = Limited::new(body, max).collect();
    match tokio::time::timeout(patience, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(max).into()),
        Ok(Err(_)) => Err(answer::bad_request("the body broke off").into()),
        Err(_) => {
            let text = format!("the body did not arrive within the limit of {} s", patience.as_secs());
            Err(answer::refuse(StatusCode::REQUEST_TIMEOUT, &text).into())
        }
    }
}

/// A page of another site can send a form or plain text without asking first; it cannot send JSON so.
pub(super) fn check_type(parts: &Parts) -> Checked<()> {
    let Some(value) = parts.headers.get(CONTENT_TYPE) else { return Ok(()) };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let text = "send the message as Content-Type: application/json";
    Err(answer::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into())
}

/// What a client can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    /// One JSON document.
    pub(super) json: bool,
    /// A stream of events.
    pub(super) events: bool,
}

impl Accepts {
    /// Reads Accept without its weights. A client that says nothing is taken to read both, as the
    /// protocol asks of every client.
    pub(super) fn of(parts: &Parts) -> Self {
        let mut accepts = Self { json: false, events: false };
        let mut said = false;
        for value in parts.headers.get_all(ACCEPT) {
            for range in value.to_str().unwrap_or_default().split(',') {
                said = true;
                let range = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
                accepts.json |= matches!(range.as_str(), "*/*" | "application/*" | "application/json");
                accepts.events |= matches!(range.as_str(), "*/*" | "text/*" | "text/event-stream");
            }
        }
        if said { accepts } else { Self { json: true, events: true } }
    }

    /// True if there is no form in which this client could be answered.
    pub(super) fn nothing(self) -> bool {
        !self.json && !self.events
    }
}

fn declared_length(parts: &Parts) -> Option<u64> {
    parts.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(max: usize) -> Reply {
    let text = format!("the body is longer than the limit of {max} bytes for one message");
    answer::error(StatusCode::PAYLOAD_TOO_LARGE, None, ErrorObject::new(codes::TOO_LARGE, text))
}
