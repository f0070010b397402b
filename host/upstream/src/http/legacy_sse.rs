//! The HTTP+SSE transport of revision 2024-11-05: one standing event stream for everything the server
//! says, and an endpoint, named in the stream's first event, for everything it is told.
//!
//! The end of the stream is the end of the session: every open request ends with it, and whoever holds
//! the connection opens another. Threat: the endpoint is the server's word. It may be relative, and it
//! must have the origin of the stream, or the operator's headers would go to whomever it names (HT-25).
//!
//! Bounds: the endpoint must come within `timeouts.init`, as the whole greeting; events are bounded by
//! `max_message`.

use std::sync::Arc;

use reqwest::header::{ACCEPT, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Response, Url};
use toolgate_wire::sse::{SseDecoder, SseItem};

use super::post::chain;
use super::receive::{Kind, kind};
use super::session::Session;
use super::{Core, HttpLink, address};
use crate::error::{ConnectError, RequestError, quote};
use crate::hub::Asked;
use crate::link::Outgoing;
use crate::pending::Shared;

/// A stream with what was read of it and not yet used.
struct Stream {
    response: Response,
    decoder: SseDecoder,
    waiting: Vec<SseItem>,
}

impl HttpLink {
    /// Opens the stream and waits for the endpoint. From then on this link is one of this transport.
    pub(crate) async fn open_sse(&self) -> Result<(), ConnectError> {
        let core = &self.core;
        let mut headers = core.common_headers(&Session::default());
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let sending = core.client.get(core.url.clone()).headers(headers);
        let response = sending.send().await.map_err(|error| core.send_error(error))?;
        let mut stream = Stream::of(core, response)?;
        let endpoint = stream.endpoint(core).await?;
        if core.endpoint.set(endpoint).is_err() {
            return Err(core.no_stream(200, "its event stream was opened twice, a fault of Toolgate").into());
        }
        tokio::spawn(listen(Arc::clone(core), stream));
        Ok(())
    }
}

/// Reads the stream until it ends or the link does.
async fn listen(core: Arc<Core>, stream: Stream) {
    let reason = tokio::select! {
        () = core.stop.cancelled() => return,
        reason = stream.read(&core) => format!("its event stream ended: {reason}"),
    };
    core.hub.pending.close(&reason);
    core.hub.events.close(&reason);
}

impl Stream {
    fn of(core: &Core, response: Response) -> Result<Self, ConnectError> {
        let status = response.status().as_u16();
        if matches!(status, 401 | 403) {
            let challenge = response.headers().get(WWW_AUTHENTICATE);
            let challenge = challenge.and_then(|value| value.to_str().ok()).map(str::to_owned);
            return Err(ConnectError::Authentication { server: core.hub.server.clone(), status, challenge });
        }
        if !response.status().is_success() || kind(&response) != Kind::Events {
            return Err(core.no_stream(status, "a GET gives no text/event-stream").into());
        }
        let decoder = SseDecoder::new(core.hub.limits.max_message);
        Ok(Self { response, decoder, waiting: Vec::new() })
    }

    /// The URL that the first event of that name gives.
    async fn endpoint(&mut self, core: &Core) -> Result<Url, ConnectError> {
        loop {
            let chunk = self.response.chunk().await;
            let chunk = chunk.map_err(|error| core.send_error(error))?;
            let Some(chunk) = chunk else {
                return Err(core.no_stream(200, "its event stream ended before it named an endpoint").into());
            };
            let mut items = self.decoder.push(&chunk).into_iter();
            for item in items.by_ref() {
                match item {
                    SseItem::Event(event) if event.event.as_deref() == Some("endpoint") => {
                        let endpoint = resolve(core, event.data.trim())?;
                        self.waiting.extend(items);
                        return Ok(endpoint);
                    }
                    SseItem::Event(_) | SseItem::TooLong { .. } => {
                        tracing::debug!(server = core.hub.server, "an event before the endpoint is ignored");
                    }
                }
            }
        }
    }

    /// Hands everything on; gives how the stream ended.
    async fn read(mut self, core: &Arc<Core>) -> String {
        loop {
            for item in std::mem::take(&mut self.waiting) {
                core.event(item, Asked::Nobody);
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.waiting.extend(self.decoder.push(&chunk)),
                Ok(None) => return "the server closed it".to_owned(),
                Err(error) => return chain(&error.without_url()),
            }
        }
    }
}

/// The endpoint as a URL of the stream's own origin.
fn resolve(core: &Core, named: &str) -> Result<Url, ConnectError> {
    let unusable = |detail: String| ConnectError::Url { server: core.hub.server.clone(), detail };
    let endpoint = core.url.join(named).map_err(|error| {
        unusable(format!("its stream names the endpoint `{}`: {error}", quote(named, 120)))
    })?;
    if !address::same_origin(&core.url, &endpoint) {
        return Err(unusable(format!(
            "its stream is at {} and names an endpoint at {}; nothing was sent there, because credentials stay with \
             their origin",
            core.url.origin().ascii_serialization(),
            endpoint.origin().ascii_serialization()
        )));
    }
    Ok(endpoint)
}

impl Core {
    /// Posts a request; the reply comes on the stream.
    pub(super) async fn carry_sse(&self, out: &Outgoing, shared: &Shared) -> Result<(), RequestError> {
        let response = self.post(&out.text, None, &self.session.snapshot(), Some(shared)).await?;
        shared.touch();
        if response.status().is_success() {
            return std::future::pending().await;
        }
        shared.turned_away();
        Err(self.no_stream(response.status().as_u16(), "the message endpoint did not take the request"))
    }

    fn no_stream(&self, status: u16, detail: &str) -> RequestError {
        let server = self.hub.server.clone();
        RequestError::Refused { server, status, detail: detail.to_owned(), challenge: None }
    }
}
