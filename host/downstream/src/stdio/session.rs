//! What one client on pipes has said and is waiting for.

mod handshake;
mod told;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_wire::envelope::Era;
use toolgate_wire::line::Line;
use toolgate_wire::{
    ErrorObject, Id, Limits, Message, Notification, Outcome, Request, Response, codes, edit,
};

use self::handshake::is_initialize;
use super::writer::Writer;
use crate::asking::Asking;
use crate::backend::{Abilities, Backend, Caller, Client, Offers, Subscriber};
use crate::call;
use crate::caller::{Claims, both};
use crate::inbound::{self, Inbound, Refusal};
use crate::logging::Wanted;
use crate::options::{Credential, StdioOptions};
use crate::running::{Running, Ticket};
use crate::{legacy, modern, reply};

/// What a client on pipes is known by in grants and rows.
pub(super) const CREDENTIAL: &str = "stdio";
/// How long cancelled calls may take to notice.
const CANCEL_WAIT: Duration = Duration::from_secs(1);

/// How long servers may go on starting after the client closed its side: enough for a script that
/// sends a call and closes, and short of the 3 s within which a client wants its process gone.
const CONNECT_GRACE: Duration = Duration::from_secs(2);

/// One client on pipes.
pub(super) struct Session {
    backend: Arc<dyn Backend>,
    options: StdioOptions,
    /// Who the client is: the process's own arguments said as whom.
    credential: Credential,
    writer: Writer,
    id: String,
    /// The revision of the initialize era, once there was a handshake.
    version: Mutex<Option<&'static str>>,
    /// The client of the initialize era, as far as it can be asked something.
    client: Mutex<Client>,
    /// The servers that the process's arguments and each handshake declared: all of this process stays within
    /// them, in either era (SCP-018).
    declared: Mutex<Option<Arc<[String]>>>,
    asking: Arc<Asking>,
    /// What a client of the initialize era wants to see of logs.
    wanted: Arc<Wanted>,
    /// What was declared in the handshake, and what the client subscribed to after it.
    offers: Mutex<Offers>,
    subscriber: Arc<Subscriber>,
    /// Whether the client is being told of changes the legacy way.
    announcing: AtomicBool,
    running: Arc<Running>,
    tasks: TaskTracker,
    /// Parent of all running calls.
    calls: CancellationToken,
    /// Ends what would otherwise go on for ever: subscriptions and announcements.
    streams: CancellationToken,
    /// Fires when nothing here waits any longer for servers that still start.
    leaving: CancellationToken,
}

impl Session {
    /// A session that has heard nothing yet.
    pub(super) fn new(backend: Arc<dyn Backend>, options: StdioOptions, writer: Writer) -> Arc<Self> {
        Arc::new(Self {
            running: Running::new(options.max_running),
            credential: Credential {
                id: CREDENTIAL.to_owned(),
                persona: options.persona.clone(),
                lane: options.lane,
            },
            declared: Mutex::new(options.servers.clone()),
            backend,
            options,
            writer,
            id: format!("stdio:{}", toolgate_base::random_hex(8)),
            version: Mutex::new(None),
            client: Mutex::new(Client::silent()),
            asking: Arc::default(),
            wanted: Arc::default(),
            offers: Mutex::default(),
            subscriber: Subscriber::new(),
            announcing: AtomicBool::new(false),
            tasks: TaskTracker::new(),
            calls: CancellationToken::new(),
            streams: CancellationToken::new(),
            leaving: CancellationToken::new(),
        })
    }

    /// The bounds of one message.
    pub(super) fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// Handles one line. Requests run in tasks of their own, so that a slow one holds up no other, and
    /// a cancellation overtakes the call it is about.
    pub(super) async fn line(self: &Arc<Self>, line: Line) {
        match line {
            Line::TooLong { recovered, .. } => {
                self.refuse(inbound::too_long(&recovered, self.limits())).await;
            }
            Line::Text(bytes) => match inbound::read(&bytes, self.limits()) {
                Ok(Inbound::One(message)) => self.message(message).await,
                Ok(Inbound::Batch(items)) => self.batch(items).await,
                Err(refusal) => self.refuse(refusal).await,
            },
        }
    }

    /// Gives running calls their grace, then cancels them.
    pub(super) async fn close(&self) {
        self.streams.cancel();
        // Nobody is there to answer any more.
        self.asking.end();
        self.subscriber.end();
        self.set_silent();
        self.tasks.close();
        let gone = self.writer.is_closed() || self.options.shutdown.is_cancelled();
        let grace = if gone { Duration::ZERO } else { self.options.grace };
        self.end_calls(grace).await;
        self.backend.end_session(&self.id);
        // Before the pipe is closed: whoever sees it closed may read the log at once.
        self.backend.settle().await;
    }

    async fn end_calls(&self, grace: Duration) {
        if !self.ended_within(grace).await {
            self.running.cancel_all();
            self.calls.cancel();
            if tokio::time::timeout(CANCEL_WAIT, self.tasks.wait()).await.is_err() {
                tracing::warn!("calls of a closed session did not end in time; their replies are dropped");
            }
        }
    }

    /// Whether all calls ended within this time. Those that wait for a server to start have less of
    /// it: a server that is stuck must not hold the end up (HT-27).
    async fn ended_within(&self, grace: Duration) -> bool {
        let connecting = grace.min(CONNECT_GRACE);
        if tokio::time::timeout(connecting, self.tasks.wait()).await.is_ok() {
            return true;
        }
        self.leaving.cancel();
        if !self.options.is_shared {
            self.backend.stop_opening();
        }
        tokio::time::timeout(grace.saturating_sub(connecting), self.tasks.wait()).await.is_ok()
    }

    async fn message(self: &Arc<Self>, message: Message) {
        match message {
            Message::Notification(notification) => self.notified(&notification),
            Message::Response(response) => self.answered(response),
            Message::Request(request) if is_initialize(&request) => {
                self.initialize(request).await;
            }
            Message::Request(request) => match self.running.begin(&request.id, &self.calls) {
                Err(error) => {
                    let error = ErrorObject::new(codes::INVALID_REQUEST, error.to_string());
                    self.refuse(Refusal { id: Some(request.id), error }).await;
                }
                Ok(ticket) => {
                    let session = Arc::clone(self);
                    self.tasks.spawn(async move {
                        if let Some(reply) = session.answer(request, ticket).await {
                            session.writer.send(reply).await;
                        }
                    });
                }
            },
        }
    }

    /// A batch is answered as one array, without the requests that were cancelled meanwhile.
    async fn batch(self: &Arc<Self>, items: Vec<Result<Message, Refusal>>) {
        if !self.version().is_some_and(legacy::has_batches) {
            let text = "batches exist only in protocol version 2025-03-26; send one message per line";
            return self
                .refuse(Refusal { id: None, error: ErrorObject::new(codes::INVALID_REQUEST, text) })
                .await;
        }
        let mut replies = Vec::new();
        let mut running = Vec::new();
        for item in items {
            match item {
                Err(refusal) => replies.push(refusal_text(refusal)),
                Ok(Message::Notification(notification)) => self.notified(&notification),
                Ok(Message::Response(response)) => self.answered(response),
                Ok(Message::Request(request)) if is_initialize(&request) => {
                    let error =
                        ErrorObject::new(codes::INVALID_REQUEST, "initialize must not be part of a batch");
                    replies.push(refusal_text(Refusal { id: Some(request.id), error }));
                }
                Ok(Message::Request(request)) => match self.running.begin(&request.id, &self.calls) {
                    Ok(ticket) => running.push((request, ticket)),
                    Err(error) => {
                        let error = ErrorObject::new(codes::INVALID_REQUEST, error.to_string());
                        replies.push(refusal_text(Refusal { id: Some(request.id), error }));
                    }
                },
            }
        }
        let session = Arc::clone(self);
        self.tasks.spawn(async move {
            let answers = running.into_iter().map(|(request, ticket)| session.answer(request, ticket));
            replies.extend(join_all(answers).await.into_iter().flatten());
            if !replies.is_empty() {
                session.writer.send(format!("[{}]", replies.join(","))).await;
            }
        });
    }

    /// The reply to one request, or nothing if it was cancelled.
    async fn answer(self: &Arc<Self>, request: Request, ticket: Ticket) -> Option<String> {
        let id = request.id.clone();
        let outcome = match self.caller(&request) {
            Err(error) => Outcome::Error(error),
            Ok(caller) if caller.era == Era::Modern && request.method == "subscriptions/listen" => {
                self.listen(&caller, &id, request.params.as_deref(), ticket.cancelled()).await
            }
            Ok(caller) => {
                let progress = |step: String| self.writer.send_if_room(step);
                // A stateless client says with each request what it can be asked.
                let client = match caller.era {
                    Era::Modern => modern::client(request.params.as_deref()),
                    Era::Legacy => self.client(),
                };
                let asked = call::Asked {
                    caller,
                    client,
                    request,
                    param_headers: None,
                    wanted: Some(Arc::clone(&self.wanted)),
                    subscriber: Some(Arc::clone(&self.subscriber)),
                };
                call::respond(&self.backend, asked, ticket.cancelled(), &progress).await
            }
        };
        ticket.finish().then(|| reply::response(Some(&id), outcome))
    }

    /// Who asks. The process's own arguments said as whom; the message may only agree.
    fn caller(&self, request: &Request) -> Result<Caller, ErrorObject> {
        let era = modern::era_of(request)?;
        if era == Era::Legacy && request.method != "ping" && self.version().is_none() {
            let text = "no handshake yet: send initialize, or put io.modelcontextprotocol/protocolVersion and \
                        io.modelcontextprotocol/clientCapabilities into params._meta of every request";
            return Err(ErrorObject::new(codes::INVALID_PARAMS, text));
        }
        let claims = self.claims(request.params.as_deref())?;
        let client = match era {
            Era::Modern => modern::client(request.params.as_deref()),
            Era::Legacy => self.client(),
        };
        let claims = Claims { servers: both(claims.servers, self.declared().as_ref()), ..claims };
        Ok(self.as_caller(era, claims, client.abilities()))
    }

    /// What a message claims; it agrees with the process's own arguments.
    fn claims(&self, params: Option<&RawValue>) -> Result<Claims, ErrorObject> {
        Claims::of_params(params)?.agree("message", &self.credential, &*self.backend)
    }

    fn as_caller(&self, era: Era, claims: Claims, abilities: Abilities) -> Caller {
        Caller {
            persona: self.credential.persona.clone(),
            lane: self.credential.lane,
            credential: self.credential.id.clone(),
            session: self.id.clone(),
            run_id: claims.run_id,
            thread_id: claims.thread_id,
            era,
            server_only: self.options.server_only.clone(),
            declared: claims.servers,
            plain_names: self.options.plain_names,
            abilities,
            leaving: self.leaving.clone(),
        }
    }

    fn answered(&self, response: Response) {
        if !self.asking.answered(response) {
            tracing::debug!("a response came, but nothing was asked");
        }
    }

    fn notified(self: &Arc<Self>, notification: &Notification) {
        match notification.method.as_str() {
            "notifications/cancelled" => {
                if let Some(id) = cancelled_id(notification.params.as_deref()) {
                    self.running.cancel(&id);
                }
            }
            "notifications/initialized" => self.announce(),
            method => tracing::debug!(method, "a notification that nothing waits for"),
        }
    }

    async fn refuse(&self, refusal: Refusal) {
        self.writer.send(refusal_text(refusal)).await;
    }
}

/// Which request a client gave up.
fn cancelled_id(params: Option<&RawValue>) -> Option<Id> {
    edit::get(params?.get(), "/requestId").and_then(Id::from_json)
}

fn refusal_text(refusal: Refusal) -> String {
    reply::response(refusal.id.as_ref(), Outcome::Error(refusal.error))
}
