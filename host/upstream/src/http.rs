//! A server over streamable HTTP, in both eras, and over the HTTP+SSE transport before it.
//!
//! A request is one POST; its reply comes as a JSON body or as an event of the response stream,
//! and ends the exchange the moment it is there. In the legacy era there is also a session: its
//! id goes with every request, one refusal of it is repaired by one new `initialize`, and it is
//! ended by DELETE. What is repeated is only what the server certainly turned away: a redirect,
//! a session it does not know, a 429.
//!
//! Bounds: `max_message` for a body or event, ten redirects, three waits of at most
//! [`LONGEST_WAIT`], one repair of the session for each request, [`MAX_ANSWERS`] answers to the
//! server's own questions in flight. The threats are a server that never ends a body, redirects
//! credentials to another origin, or hangs while it is being closed.

mod address;
mod legacy_sse;
mod post;
mod receive;
mod retry_after;
mod session;
mod stream;
mod verdict;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolgate_base::display;

use self::session::SessionCell;
use self::verdict::Verdict;
use crate::error::{ConnectError, RequestError};
use crate::hub::Hub;
use crate::link::{Outgoing, notification};
use crate::pending::Shared;
use crate::spec::{ServerSpec, TransportSpec};

/// A server that asks for a longer pause than this gets an error instead (GW-07).
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Waits for one request at most.
const MAX_WAITS: u32 = 3;
/// Answers to a server's own requests that are on their way at most.
const MAX_ANSWERS: usize = 8;
/// How long a notification may take.
const NOTIFY_LIMIT: Duration = Duration::from_secs(10);
/// How long the DELETE at the end may take (HT-27).
const DELETE_LIMIT: Duration = Duration::from_secs(2);

/// One endpoint. Dropping it ends its background streams and, in the legacy era, its session.
#[derive(Debug)]
pub(crate) struct HttpLink {
    core: Arc<Core>,
}

/// What the link, its streams and its background work share.
#[derive(Debug)]
struct Core {
    hub: Arc<Hub>,
    client: reqwest::Client,
    url: Url,
    /// Where messages go, on the transport that names it in its stream.
    endpoint: OnceLock<Url>,
    headers: HeaderMap,
    session: SessionCell,
    /// How long a new `initialize` may take.
    init_limit: Duration,
    answers: Arc<Semaphore>,
    stop: CancellationToken,
}

impl HttpLink {
    /// Prepares an HTTP entry; nothing is sent yet.
    pub(crate) fn new(spec: &ServerSpec, hub: &Arc<Hub>) -> Result<Self, ConnectError> {
        let unusable = |detail: String| ConnectError::Url {
            server: spec.name.clone(),
            detail: display::escape(&detail),
        };
        let (TransportSpec::Http { url, headers } | TransportSpec::Sse { url, headers }) = &spec.transport
        else {
            return Err(unusable("the entry has no url".to_owned()));
        };
        let url = address::parse(url).map_err(unusable)?;
        let headers = address::headers(headers).map_err(unusable)?;
        let options = toolgate_net::ClientOptions {
            user_agent: format!("{}/{}", spec.client_info.name, spec.client_info.version),
            ..Default::default()
        };
        let client = toolgate_net::client(&options).map_err(|error| unusable(error.to_string()))?;
        let core = Arc::new(Core {
            hub: Arc::clone(hub),
            client,
            url,
            endpoint: OnceLock::new(),
            headers,
            session: SessionCell::default(),
            init_limit: spec.timeouts.init,
            answers: Arc::new(Semaphore::new(MAX_ANSWERS)),
            stop: CancellationToken::new(),
        });
        let answers = Arc::downgrade(&core);
        hub.questions.set_outlet(Box::new(move |text| {
            if let (Some(core), Ok(runtime)) = (answers.upgrade(), tokio::runtime::Handle::try_current()) {
                runtime.spawn(async move { core.send_late_answer(text).await });
            }
        }));
        Ok(Self { core })
    }

    /// Sends a request and reads its response to the reply. `Ok`: the response is over or has
    /// brought the reply to the hub.
    pub(crate) async fn carry(&self, out: &Outgoing, shared: &Arc<Shared>) -> Result<(), RequestError> {
        if self.core.endpoint.get().is_some() {
            return self.core.carry_sse(out, shared).await;
        }
        self.core.carry(out, shared).await
    }

    /// The legacy handshake is done: from now on requests name the version, and a session that
    /// is lost is renewed with the same `initialize`.
    pub(crate) fn established(&self, version: &str, initialize_params: &str) {
        self.core.session.established(version, initialize_params);
    }

    /// Sends `notifications/initialized`; any 2xx is a yes (HT-08).
    pub(crate) async fn initialized(&self) -> Result<(), RequestError> {
        self.core.notify(notification("notifications/initialized", None)).await
    }

    /// Starts the optional GET stream, on which a legacy server may say things unasked.
    pub(crate) fn listen(&self) {
        if self.core.endpoint.get().is_some() {
            return;
        }
        tokio::spawn(stream::listen(Arc::clone(&self.core)));
    }

    /// Sends a `notifications/cancelled` in the background. A modern server has seen the response
    /// stream being closed, which says the same.
    pub(crate) fn abandon(&self, text: String) {
        if self.core.session.version().is_none() {
            return;
        }
        let core = Arc::clone(&self.core);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = core.notify(text).await {
                    tracing::debug!(server = core.hub.server, %error, "a cancel did not arrive");
                }
            });
        }
    }

    /// Ends the streams and the session, within [`DELETE_LIMIT`].
    pub(crate) async fn close(&self) {
        let reason = "Toolgate closed the connection";
        self.core.stop.cancel();
        self.core.hub.pending.close(reason);
        self.core.delete_session().await;
        self.core.hub.events.close(reason);
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        let already = self.core.stop.is_cancelled();
        self.core.stop.cancel();
        let core = Arc::clone(&self.core);
        if let (false, Ok(runtime)) = (already, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { core.delete_session().await });
        }
    }
}

impl Core {
    async fn carry(self: &Arc<Self>, out: &Outgoing, shared: &Shared) -> Result<(), RequestError> {
        let mut repaired = false;
        let mut waits = 0;
        loop {
            let session = self.session.snapshot();
            match self.attempt(out, &session, shared).await? {
                Verdict::Done => return Ok(()),
                Verdict::SessionLost(_) if !repaired => {
                    shared.turned_away();
                    repaired = true;
                    self.renew(session.generation).await?;
                }
                Verdict::SessionLost(error) => {
                    // A session that is forgotten the moment it is there is none: what is next is a new
                    // connection, with the pauses of one, and not another session each second (HT-10).
                    self.end("the server forgets each session at once");
                    return Err(error);
                }
                Verdict::Wait(pause) if waits < MAX_WAITS && pause <= LONGEST_WAIT => {
                    shared.turned_away();
                    shared.touch();
                    waits += 1;
                    tokio::time::sleep(pause).await;
                }
                Verdict::Wait(pause) => {
                    return Err(RequestError::RateLimited {
                        server: self.hub.server.clone(),
                        retry_after: Some(pause),
                    });
                }
            }
        }
    }

    /// Ends the connection from this side, without a word to the server.
    fn end(&self, reason: &str) {
        self.stop.cancel();
        self.hub.pending.close(reason);
        self.hub.events.close(reason);
    }

    /// One notification or answer. Any 2xx is a yes, whatever its body (HT-08).
    async fn notify(self: &Arc<Self>, text: String) -> Result<(), RequestError> {
        let work = async {
            let response = self.post(&text, None, &self.session.snapshot(), None).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(());
            }
            Err(RequestError::Refused {
                server: self.hub.server.clone(),
                status: status.as_u16(),
                detail: "a notification was not accepted".to_owned(),
                challenge: None,
            })
        };
        timeout(NOTIFY_LIMIT, work).await.unwrap_or_else(|_| {
            Err(RequestError::TimedOut {
                server: self.hub.server.clone(),
                after: NOTIFY_LIMIT,
                limit: "call",
                sent: true,
            })
        })
    }

    /// The answer to a question that somebody thought about; it waits for its turn.
    async fn send_late_answer(self: &Arc<Self>, answer: String) {
        let Ok(_turn) = self.answers.acquire().await else { return };
        if let Err(error) = self.notify(answer).await {
            tracing::warn!(server = self.hub.server, %error, "an answer did not arrive");
        }
    }

    /// Answers to the server's own requests go out beside everything else; a server that asks
    /// faster than it listens loses answers.
    fn send_answers(self: &Arc<Self>, answers: Vec<String>) {
        for answer in answers {
            let Ok(permit) = Arc::clone(&self.answers).try_acquire_owned() else {
                tracing::warn!(server = self.hub.server, "an answer was dropped: too many questions at once");
                return;
            };
            let core = Arc::clone(self);
            tokio::spawn(async move {
                let _held = permit;
                if let Err(error) = core.notify(answer).await {
                    tracing::debug!(server = core.hub.server, %error, "an answer did not arrive");
                }
            });
        }
    }
}
