//! Every message that comes from a server passes here: the door, then the one it belongs to.
//!
//! The bytes are hostile. What fails the door (duplicate keys, lone surrogates, depth, UTF-8) or
//! is no JSON-RPC fails the request it answers and nothing else (ST-11); what belongs to nobody
//! is logged and dropped. Nothing here waits: what a server asks is
//! answered at once, or goes to the call it belongs to ([`crate::question`]); and one that sends too fast loses notifications, not replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolgate_wire::door::Recovered;
use toolgate_wire::{ErrorObject, Id, Message, Notification, Outcome, Request, Response, codes, door, edit};

use crate::error::{RequestError, quote};
use crate::events::EventQueue;
use crate::listen;
use crate::pending::{Pending, Reply};
use crate::question::{self, Questions, Unplaced};
use crate::server_log::{LogSource, Mask, Sink};
use crate::spec::Limits;

/// What the two transports share of one connection.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) server: String,
    pub(crate) limits: Limits,
    pub(crate) pending: Pending,
    pub(crate) events: Arc<EventQueue>,
    pub(crate) questions: Arc<Questions>,
    modern: AtomicBool,
    log: Sink,
    mask: Mask,
}

/// Which request the place of a message points at, when its id does not.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    /// A pipe or a standing stream.
    Nobody,
    /// The message is the whole response to this request.
    Body(u64),
    /// The message is one event of the response to this request.
    Event(u64),
}

impl Asked {
    /// For an error that names no request.
    fn of_nameless(self) -> Option<u64> {
        match self {
            Self::Nobody => None,
            Self::Body(id) | Self::Event(id) => Some(id),
        }
    }

    /// For bytes that cannot be read. On an event stream they may be anything (HT-05), and the
    /// reply may still follow.
    fn of_broken(self) -> Option<u64> {
        match self {
            Self::Body(id) => Some(id),
            Self::Nobody | Self::Event(_) => None,
        }
    }
}

impl Hub {
    pub(crate) fn new(server: &str, limits: Limits) -> Self {
        Self {
            server: server.to_owned(),
            limits,
            pending: Pending::new(server),
            events: Arc::default(),
            questions: Arc::default(),
            modern: AtomicBool::new(false),
            log: None,
            mask: Mask::default(),
        }
    }

    /// The same, with somebody who keeps what the server logs.
    pub(crate) fn logged(self, log: Sink, mask: Mask) -> Self {
        Self { log, mask, ..self }
    }

    /// A server's words for an error text: without secrets, one line, cut.
    pub(crate) fn quote(&self, text: &str, max: usize) -> String {
        self.mask.quote(text, max)
    }

    /// From now on the server has no right to ask anything (spec 2026-07-28, direction rules).
    pub(crate) fn set_modern(&self, modern: bool) {
        self.modern.store(modern, Ordering::Relaxed);
    }

    /// Takes one JSON text that came at the place `asked`. Returned are the answers to
    /// the server's own requests, each one line.
    pub(crate) fn inbound(&self, bytes: &[u8], asked: Asked) -> Vec<String> {
        let text = match door::scan(bytes, &self.limits.door()) {
            Ok(text) => text,
            Err(error) => {
                self.unusable(bytes, asked, &error.to_string(), Some(bytes));
                return Vec::new();
            }
        };
        // Only revision 2025-03-26 has batches; taking one from any server harms nobody.
        let messages = Message::parse_batch(text).unwrap_or_else(|error| vec![Err(error)]);
        let mut answers = Vec::new();
        for message in messages {
            match message {
                Ok(message) => answers.extend(self.take(message, asked)),
                Err(error) => self.unusable(bytes, asked, &error.to_string(), Some(bytes)),
            }
        }
        answers
    }

    /// A message larger than the limit was skipped; `recovered` is what its top level said.
    pub(crate) fn too_large(&self, recovered: &Recovered, asked: Asked) {
        let id = answered(recovered, asked);
        let error = RequestError::TooLarge { server: self.server.clone(), limit: self.limits.max_message };
        tracing::warn!(server = self.server, id, "{error}");
        if let Some(id) = id {
            self.pending.resolve(id, Reply::Unusable { error, raw: None });
        }
    }

    /// A message that was not UTF-8; `text` is it with U+FFFD in place of the bad bytes.
    pub(crate) fn not_utf8(&self, text: &str, asked: Asked) {
        self.unusable(text.as_bytes(), asked, "it is not UTF-8", None);
    }

    fn take(&self, message: Message, asked: Asked) -> Option<String> {
        match message {
            Message::Response(response) => {
                self.response(response, asked);
                None
            }
            Message::Notification(notification) => {
                self.notification(notification, asked);
                None
            }
            Message::Request(request) => self.question(request, asked),
        }
    }

    fn response(&self, response: Response, asked: Asked) {
        let id = match &response.id {
            Some(id) => own_id(id),
            // An error without an id answers what this response body was asked for; on a pipe
            // it can only be told apart when a single request waits.
            None => asked.of_nameless().or_else(|| self.pending.only()),
        };
        let known = id.is_some_and(|id| self.pending.resolve(id, Reply::Outcome(response.outcome)));
        if !known {
            // Usual after a cancel or a deadline.
            tracing::debug!(server = self.server, ?id, "a reply that nobody waits for");
        }
    }

    fn notification(&self, notification: Notification, asked: Asked) {
        if notification.method == "notifications/cancelled" {
            let params = notification.params.as_ref().map(|params| params.get());
            let id = params.and_then(|params| edit::get(params, "/requestId")).and_then(Id::from_json);
            if let Some(id) = id {
                self.questions.withdraw(&id);
            }
            return;
        }
        if notification.method == "notifications/message" {
            if let Some(params) = notification.params {
                if let Some(log) = &self.log {
                    log.line(LogSource::Message, &self.mask.apply(params.get()));
                }
                self.pending.log(asked, params);
            }
            return;
        }
        let token = match notification.method.as_str() {
            "notifications/progress" => "/progressToken",
            listen::ACKNOWLEDGED => "/_meta/io.modelcontextprotocol~1subscriptionId",
            _ => return self.events.notification(&notification),
        };
        let token = notification
            .params
            .as_ref()
            .and_then(|params| edit::get(params.get(), token))
            .and_then(|token| token.parse::<u64>().ok());
        if let (Some(token), Some(params)) = (token, notification.params) {
            self.pending.progress(token, params);
        }
    }

    /// The server asks. `ping` has an answer here; what can belong to a call goes to it, and
    /// everything else is refused at once, so that a server which waits for an answer inside a call
    /// does not wait for ever (SMP-001).
    fn question(&self, request: Request, asked: Asked) -> Option<String> {
        if self.modern.load(Ordering::Relaxed) {
            tracing::warn!(
                server = self.server,
                method = quote(&request.method, 80),
                "a modern server sent a request, which the protocol forbids; ignored"
            );
            return None;
        }
        let id = request.id.clone();
        let outcome = if request.method == "ping" {
            Outcome::Result(edit::raw("{}".to_owned()).ok()?)
        } else if question::METHODS.contains(&request.method.as_str()) {
            match self.hand_on(request, asked) {
                Ok(()) => return None,
                Err(outcome) => outcome,
            }
        } else {
            tracing::info!(
                server = self.server,
                method = quote(&request.method, 80),
                "a request of the server was refused"
            );
            Outcome::Error(ErrorObject::new(
                codes::METHOD_NOT_FOUND,
                "this client does not offer the method; it declared no such capability",
            ))
        };
        Some(Message::Response(Response { id: Some(id), outcome }).to_text())
    }

    /// Hands a question to the call it belongs to; `Err` is what the server hears instead.
    fn hand_on(&self, request: Request, asked: Asked) -> Result<(), Outcome> {
        let method = request.method.clone();
        let why = match self.pending.call_of(asked) {
            Err(why) => why,
            Ok((call, shared)) => match self.questions.begin(request, &shared) {
                Some(question) => {
                    // A call that takes no more drops the question, which answers it.
                    let _ = call.try_send(question);
                    return Ok(());
                }
                None => Unplaced::TooMany,
            },
        };
        tracing::warn!(server = self.server, method, why = why.as_str(), "a question was refused");
        self.events.refused(&method, why);
        let decline = edit::raw(r#"{"action":"decline"}"#.to_owned()).ok();
        Err(match (why, decline) {
            (Unplaced::SeveralCalls, Some(decline)) if method == question::METHODS[0] => {
                Outcome::Result(decline)
            }
            _ => Outcome::Error(ErrorObject::new(
                codes::METHOD_NOT_FOUND,
                format!("refused: {}", why.as_str()),
            )),
        })
    }

    /// `raw` is what a caller may salvage parts of: the bytes as they came.
    fn unusable(&self, bytes: &[u8], asked: Asked, detail: &str, raw: Option<&[u8]>) {
        let id = answered(&door::recover(bytes), asked);
        tracing::warn!(server = self.server, id, detail, "a message was refused");
        let error = RequestError::BadReply { server: self.server.clone(), detail: detail.to_owned() };
        if let Some(id) = id {
            self.pending.resolve(id, Reply::Unusable { error, raw: raw.map(<[u8]>::to_vec) });
        }
    }
}

/// The request that a broken message answers. A call of the server's own answers nothing, whatever
/// its id.
fn answered(recovered: &Recovered, asked: Asked) -> Option<u64> {
    if recovered.is_call {
        return None;
    }
    recovered.id.as_ref().and_then(own_id).or(asked.of_broken())
}

/// Toolgate's own ids are plain integers; a text that looks like one is another id (PR-11).
fn own_id(id: &Id) -> Option<u64> {
    match id {
        Id::Integer(digits) => digits.parse().ok(),
        Id::Text(_) => None,
    }
}

#[cfg(test)]
mod tests;
