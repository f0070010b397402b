//! The body of a response: one JSON text, or a stream of events until the reply.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use tokio::time::timeout;
use toolgate_wire::door::Recovered;
use toolgate_wire::sse::{SseDecoder, SseItem};

use super::Core;
use super::post::chain;
use super::session::Session;
use crate::error::{RequestError, quote};
use crate::hub::Asked;
use crate::pending::Shared;

/// How long a stream may go on after the reply before its connection is given up; most servers
/// end it at once, and then the connection is used again.
const DRAIN: Duration = Duration::from_millis(500);

/// What a body is, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    Events,
    Nothing,
    Other,
}

/// The type in any letter case and with any parameters (HT-19).
pub(super) fn kind(response: &Response) -> Kind {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let Some(value) = header(CONTENT_TYPE) else {
        return Kind::Nothing;
    };
    if response.status().as_u16() == 204 || header(CONTENT_LENGTH) == Some("0") {
        return Kind::Nothing;
    }
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/json" => Kind::Json,
        "text/event-stream" => Kind::Events,
        _ => Kind::Other,
    }
}

impl Core {
    /// Reads a 2xx response to a request until its reply is with the hub or cannot come.
    pub(super) async fn receive(
        self: &Arc<Self>,
        response: Response,
        id: u64,
        session: &Session,
        shared: &Shared,
    ) -> Result<(), RequestError> {
        match kind(&response) {
            Kind::Json => self.receive_json(response, id, shared).await,
            Kind::Events => self.receive_events(response, id, session, shared).await,
            Kind::Nothing => {
                Err(self.lost(format!("HTTP {} without a reply in it", response.status().as_u16())))
            }
            Kind::Other => {
                let header = response.headers().get(CONTENT_TYPE);
                let name = header.and_then(|value| value.to_str().ok()).unwrap_or("unreadable");
                Err(RequestError::BadReply {
                    server: self.hub.server.clone(),
                    detail: format!(
                        "its content type is `{}`, neither application/json nor text/event-stream; is the url an MCP endpoint?",
                        quote(name, 80)
                    ),
                })
            }
        }
    }

    async fn receive_json(
        self: &Arc<Self>,
        mut response: Response,
        id: u64,
        shared: &Shared,
    ) -> Result<(), RequestError> {
        let max = self.hub.limits.max_message;
        let mut body = Vec::new();
        loop {
            let chunk = response.chunk().await.map_err(|error| self.lost(chain(&error.without_url())))?;
            let Some(chunk) = chunk else { break };
            shared.touch();
            if body.len() + chunk.len() > max {
                self.hub.too_large(&Recovered::default(), Asked::Body(id));
                return Ok(());
            }
            body.extend_from_slice(&chunk);
        }
        let answers = self.hub.inbound(&body, Asked::Body(id));
        self.send_answers(answers);
        Ok(())
    }

    async fn receive_events(
        self: &Arc<Self>,
        response: Response,
        id: u64,
        session: &Session,
        shared: &Shared,
    ) -> Result<(), RequestError> {
        let mut mark = Mark::default();
        let mut ended = self.read_events(response, Some((id, shared)), &mut mark).await;
        // A legacy server may end the stream early and go on with it when asked (HT-21).
        while self.hub.pending.waits(id) && session.version.is_some() && mark.last_event_id.is_some() {
            let Some(next) = self.resume(session, &mark).await? else {
                break;
            };
            ended = self.read_events(next, Some((id, shared)), &mut mark).await;
        }
        if self.hub.pending.waits(id) {
            return Err(self.lost(ended));
        }
        Ok(())
    }

    /// Reads events until the stream ends, or until the request `reader` reads for is answered
    /// (HT-06). Returns how the stream ended.
    pub(super) async fn read_events(
        self: &Arc<Self>,
        mut response: Response,
        reader: Option<(u64, &Shared)>,
        mark: &mut Mark,
    ) -> String {
        let limit = self.hub.limits.max_message;
        let mut decoder = SseDecoder::new(limit);
        // What was too long to be read may have been the reply.
        let mut dropped = false;
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) if dropped => {
                    return format!(
                        "an event of more than {limit} bytes (limit `max_message`) was dropped, and the event \
                         stream ended without another reply"
                    );
                }
                Ok(None) => return "the event stream ended before the reply".to_owned(),
                Err(error) => return chain(&error.without_url()),
            };
            if let Some((_, shared)) = reader {
                shared.touch();
            }
            for item in decoder.push(&chunk) {
                dropped |= matches!(item, SseItem::TooLong { .. });
                self.event(item, reader.map_or(Asked::Nobody, |(id, _)| Asked::Event(id)));
            }
            mark.note(&decoder);
            if let Some((id, _)) = reader
                && !self.hub.pending.waits(id)
            {
                tokio::spawn(timeout(DRAIN, drain(response)));
                return String::new();
            }
        }
    }

    pub(super) fn event(self: &Arc<Self>, item: SseItem, asked: Asked) {
        match item {
            SseItem::TooLong { recovered } => self.hub.too_large(&recovered, asked),
            SseItem::Event(event) if !event.is_message() || !is_message(&event.data) => {
                // HT-05: other events, and other data, are somebody else's business.
                let kind = event.event.as_deref().unwrap_or("message");
                tracing::debug!(server = self.hub.server, kind = quote(kind, 40), "an event was ignored");
            }
            SseItem::Event(event) if event.lossy => self.hub.not_utf8(&event.data, asked),
            SseItem::Event(event) => {
                let answers = self.hub.inbound(event.data.as_bytes(), asked);
                self.send_answers(answers);
            }
        }
    }

    fn lost(&self, detail: String) -> RequestError {
        RequestError::MayHaveRun { server: self.hub.server.clone(), detail }
    }
}

/// Where a stream stood, for its resumption.
#[derive(Debug, Default)]
pub(super) struct Mark {
    pub(super) last_event_id: Option<String>,
    pub(super) retry: Option<Duration>,
}

impl Mark {
    fn note(&mut self, decoder: &SseDecoder) {
        if let Some(id) = decoder.last_event_id() {
            self.last_event_id = Some(id.to_owned());
        }
        if let Some(retry) = decoder.retry_ms() {
            self.retry = Some(Duration::from_millis(retry));
        }
    }
}

fn is_message(data: &str) -> bool {
    data.trim_start().starts_with(['{', '['])
}

async fn drain(mut response: Response) {
    while let Ok(Some(_)) = response.chunk().await {}
}
