//! A connection to one server, the only public way to one.
//!
//! It is opened under a [`Permit`] and lives until it is closed, its last clone is dropped, or
//! the server ends. It does not come back by itself: whoever holds it opens another, and asks
//! [`crate::Backoff`] when.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_wire::edit;
use toolgate_wire::envelope::{Era, ModernMeta};
use toolgate_wire::{ListKind, LogLevel, Outcome};

use crate::ask::{Ask, Failure, ask};
use crate::error::{ConnectError, RequestError};
use crate::events::Event;
use crate::handshake::{Greeted, Hello, greet, modern_meta};
use crate::hub::Hub;
use crate::link::Link;
use crate::listing::Listing;
use crate::logs::{Logs, Told};
use crate::pending::Progress;
use crate::question::Question;
use crate::spec::{Permit, ServerSpec, Timeouts};
use crate::{listen, listing, tasks};

/// A cheap handle; the connection ends with the last clone.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(crate) core: Arc<Core>,
    _alive: Arc<DropGuard>,
}

/// What background work may hold without keeping the connection alive for its users.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) hub: Arc<Hub>,
    pub(crate) link: Link,
    pub(crate) hello: Hello,
    meta: Option<ModernMeta>,
    pub(crate) timeouts: Timeouts,
    told_level: Told,
    /// The subscriptions of the modern era.
    pub(crate) listening: listen::Listening,
    /// Cancelled when the connection is given up or closed.
    pub(crate) over: CancellationToken,
}

/// How long a server may take to take a log level; a call waits for that once.
const SET_LEVEL_LIMIT: Duration = Duration::from_secs(2);

/// How one request is to be treated.
#[derive(Clone, Debug, Default)]
pub struct RequestOptions {
    /// Longest silence of the server; `timeouts.call` of the entry when absent.
    pub timeout: Option<Duration>,
    /// Longest time in all; `timeouts.max_total` of the entry when absent.
    pub max_total: Option<Duration>,
    /// Where progress goes. Only with it is the server asked to report any. A full channel loses
    /// steps, never the reply.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Where a legacy server's questions about this request go. Only a request with it can be asked
    /// about; a full or closed channel refuses the question.
    pub questions: Option<mpsc::Sender<Question>>,
    /// Where what the server logs about this request goes. Only with it is a server asked to log; the
    /// others decide themselves, and it is dropped.
    pub logs: Option<Logs>,
    /// What a modern server is told that the client of this request can do, a JSON object; the
    /// connection's own where absent.
    pub capabilities: Option<Box<RawValue>>,
    /// Ends the wait at once and tells the server.
    pub cancel: CancellationToken,
    /// `Mcp-Param-*` headers for a modern HTTP call, names and encoded values, as
    /// `toolgate_wire::headers::param_headers` makes them. Other transports ignore them.
    pub mcp_param_headers: Vec<(String, String)>,
}

/// Whether a connection can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Requests are taken.
    Connected,
    /// It is over.
    Closed {
        /// Why, ready to be shown.
        reason: String,
    },
}

impl Connection {
    /// Opens a connection and greets the server, all within `timeouts.init`.
    ///
    /// `era_hint` is what an earlier connection to the same server found ([`Connection::era`]);
    /// it spares the probe. Events, until [`Event::Closed`], go to `events`. A future that is
    /// dropped stops what it had started, however stuck the server is (HT-27).
    pub async fn open(
        spec: &ServerSpec,
        permit: Permit,
        events: mpsc::Sender<Event>,
        era_hint: Option<Era>,
    ) -> Result<Self, ConnectError> {
        if permit.server() != spec.name {
            return Err(ConnectError::WrongPermit {
                server: spec.name.clone(),
                permit: permit.server().to_owned(),
            });
        }
        let Greeted { hub, link, hello } = greet(spec, era_hint).await?;
        hub.events.deliver(spec.name.clone(), events);
        let mut meta = (hello.era == Era::Modern).then(|| modern_meta(spec)).flatten();
        if let Some(meta) = meta.as_mut().filter(|_| has(&hello, tasks::EXTENSION)) {
            let declared = tasks::declared(meta.client_capabilities.get()).into_owned();
            if let Ok(declared) = edit::raw(declared) {
                meta.client_capabilities = declared;
            }
        }
        let core = Arc::new(Core {
            hub,
            link,
            hello,
            meta,
            timeouts: spec.timeouts,
            told_level: Told::default(),
            listening: listen::Listening::new(),
            over: CancellationToken::new(),
        });
        listen::start(&core);
        let alive = Arc::new(core.over.clone().drop_guard());
        Ok(Self { core, _alive: alive })
    }

    /// The server's name in the configuration.
    pub fn server(&self) -> &str {
        &self.core.hub.server
    }

    /// The era found; to be remembered and given to the next [`Connection::open`].
    pub fn era(&self) -> Era {
        self.core.hello.era
    }

    /// The negotiated revision.
    pub fn protocol_version(&self) -> &str {
        &self.core.hello.version
    }

    /// The server's own name and version as it sent them; for display only.
    pub fn server_info(&self) -> Option<&RawValue> {
        self.core.hello.server_info.as_deref()
    }

    /// The server's capabilities as it sent them; `null` if it sent none.
    pub fn capabilities(&self) -> &RawValue {
        &self.core.hello.capabilities
    }

    /// The server's instructions.
    pub fn instructions(&self) -> Option<&str> {
        self.core.hello.instructions.as_deref()
    }

    /// Sends one request and waits for its outcome.
    ///
    /// `params` is a JSON object as the caller wrote it. Of it only the protocol's own parts of
    /// `_meta` are replaced, and a `tools/call` without `arguments` gets empty ones (PR-09).
    /// Nothing is ever sent twice that may have run. A future that is dropped counts as cancelled.
    pub async fn request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        options: RequestOptions,
    ) -> Result<Outcome, RequestError> {
        let outcome = self.core.request(method, params.as_deref(), options).await;
        outcome.map_err(|failure| failure.error)
    }

    /// Everything of one kind over all pages, each definition as the server wrote it. One that
    /// cannot be used is dropped alone and named with its reason (PR-18); a server that does not
    /// declare the capability is not asked and has none (PR-22).
    pub async fn list(&self, kind: ListKind) -> Result<Listing, RequestError> {
        listing::list(&self.core, kind).await
    }

    /// Whether the server declared a capability, by its JSON pointer, as `/resources/subscribe`.
    pub fn declares(&self, pointer: &str) -> bool {
        self.core.declares(pointer)
    }

    /// Whether the server may answer a call with a task: a modern one that advertises the extension.
    pub fn has_tasks(&self) -> bool {
        self.era() == Era::Modern && self.declares(tasks::EXTENSION)
    }

    /// Whether it can be used.
    pub fn state(&self) -> State {
        match self.core.hub.pending.closed() {
            Some(reason) => State::Closed { reason },
            None => State::Connected,
        }
    }

    /// The last words of a child beside its messages, with controls made visible; empty on HTTP.
    pub fn stderr_tail(&self) -> String {
        match &self.core.link {
            Link::Stdio(link) => link.tail().text(),
            Link::Http(_) => String::new(),
        }
    }

    /// Ends the connection for every clone: open requests end at once, a child is stopped within
    /// 8 s and verified dead, an HTTP session is deleted within 3 s.
    pub async fn close(&self) {
        self.core.over.cancel();
        self.core.link.close().await;
    }
}

impl Core {
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Option<&RawValue>,
        options: RequestOptions,
    ) -> Result<Outcome, Failure> {
        self.check_offered(method)?;
        let logs = options.logs.filter(|_| self.declares("/logging"));
        if let Some(logs) = &logs {
            self.tell_level(logs.level).await;
        }
        let own = self.own_meta(options.capabilities, logs.as_ref());
        let request = Ask {
            method,
            params,
            meta: own.as_ref().or(self.meta.as_ref()),
            param_headers: options.mcp_param_headers,
            idle: options.timeout.unwrap_or(self.timeouts.call),
            total: options.max_total.unwrap_or(self.timeouts.max_total),
            progress: options.progress,
            questions: options.questions,
            logs,
            cancel: options.cancel,
            tell: true,
        };
        ask(&self.hub, &self.link, request).await
    }

    /// The envelope of one request, where it differs from the connection's.
    fn own_meta(&self, capabilities: Option<Box<RawValue>>, logs: Option<&Logs>) -> Option<ModernMeta> {
        if capabilities.is_none() && logs.is_none() {
            return None;
        }
        let mut meta = self.meta.clone()?;
        if let Some(capabilities) = capabilities {
            let own = if self.declares(tasks::EXTENSION) {
                edit::raw(tasks::declared(capabilities.get()).into_owned()).ok()
            } else {
                None
            };
            meta.client_capabilities = own.unwrap_or(capabilities);
        }
        meta.log_level = logs.map(|logs| logs.level.as_str().to_owned());
        Some(meta)
    }

    /// A server of the handshake era is told once for all its requests. One that refuses logs as it likes.
    async fn tell_level(&self, level: LogLevel) {
        if self.hello.era == Era::Modern || !self.told_level.needs(level) {
            return;
        }
        let Ok(params) = edit::raw(format!(r#"{{"level":"{}"}}"#, level.as_str())) else { return };
        let request = Ask {
            method: "logging/setLevel",
            params: Some(&params),
            meta: None,
            param_headers: Vec::new(),
            idle: SET_LEVEL_LIMIT,
            total: SET_LEVEL_LIMIT,
            progress: None,
            questions: None,
            logs: None,
            cancel: CancellationToken::new(),
            tell: true,
        };
        if let Err(failure) = ask(&self.hub, &self.link, request).await {
            tracing::debug!(server = self.hub.server, error = %failure.error, "the server takes no log level");
        }
    }

    /// Whether the server declares a capability, by its JSON pointer in the capabilities.
    pub(crate) fn declares(&self, pointer: &str) -> bool {
        has(&self.hello, pointer)
    }

    /// A capability that was not declared is never asked for (PR-22).
    fn check_offered(&self, method: &str) -> Result<(), RequestError> {
        let capability = match method.split('/').next() {
            Some("tools") => "tools",
            Some("prompts") => "prompts",
            Some("resources") => "resources",
            Some("completion") => "completions",
            Some("logging") => "logging",
            Some("tasks") if self.declares(tasks::EXTENSION) => return Ok(()),
            Some("tasks") => "extensions.io.modelcontextprotocol/tasks",
            _ => return Ok(()),
        };
        if self.declares(&format!("/{capability}")) {
            return Ok(());
        }
        Err(RequestError::NotOffered {
            server: self.hub.server.clone(),
            capability,
            method: method.to_owned(),
        })
    }
}

/// Whether a server declared a capability.
fn has(hello: &Hello, pointer: &str) -> bool {
    let value = edit::get(hello.capabilities.get(), pointer);
    value.is_some_and(|value| !matches!(value, "null" | "false"))
}
