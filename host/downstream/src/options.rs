//! What a front door is opened with. Every bound that a client can run into is a field here, with the
//! default that `design` names, so that tests can make it small and an error can name it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::Lane;
use toolgate_wire::Limits;

use crate::unread::Unread;

/// Who holds a bearer token. Persona and lane come from here and from nowhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Stable name of the token, `token:<id>`, never the token: it goes into grants and audit rows as it is.
    pub id: String,
    /// As whom the holder acts.
    pub persona: String,
    /// What kind of run it is.
    pub lane: Lane,
}

impl Credential {
    /// A credential in the `main` lane.
    pub fn new(id: impl Into<String>, persona: impl Into<String>) -> Self {
        Self { id: id.into(), persona: persona.into(), lane: Lane::Main }
    }
}

/// Tokens could not be looked up. The request is refused with 503: an unreadable store opens nothing.
#[derive(Debug, thiserror::Error)]
#[error("the token store cannot be read: {0}")]
pub struct TokenCheckError(pub String);

/// Maps a bearer token to its holder. Asked on every request, so that a new token works and a revoked
/// one stops working without a restart.
#[async_trait]
pub trait TokenCheck: Send + Sync + 'static {
    /// The holder of `token`, or `None` if nobody holds it (any more).
    async fn check(&self, token: &str) -> Result<Option<Credential>, TokenCheckError>;
}

/// How to serve one agent on a pair of pipes.
#[derive(Debug, Clone)]
pub struct StdioOptions {
    /// As whom the agent acts: the process's own argument, so no claim of the client can change it.
    pub persona: String,
    /// What kind of run it is: the process's own argument as well.
    pub lane: Lane,
    /// Show only this server, as if there were no other.
    pub server_only: Option<String>,
    /// The servers that this process declares that it needs; no session in it has others (SCP-018).
    pub servers: Option<Arc<[String]>>,
    /// Show that server's own names, as if there were no gateway.
    pub plain_names: bool,
    /// Bounds of one message.
    pub limits: Limits,
    /// Requests of this client that may run at once; one more is refused with an error.
    pub max_running: usize,
    /// Messages that wait for the client to read. When all places are taken, reading stops too.
    pub queue: usize,
    /// What may wait for clients to read, of this client and of all that share it.
    pub unread: Arc<Unread>,
    /// How long running calls may go on after the client closed its side.
    pub grace: Duration,
    /// Whether other sessions use the same gateway, which then outlives this one.
    pub is_shared: bool,
    /// Ends the session from outside.
    pub shutdown: CancellationToken,
}

impl StdioOptions {
    /// The defaults for a persona: 128 running requests, 32 queued messages, 5 s of grace.
    pub fn new(persona: impl Into<String>) -> Self {
        Self {
            persona: persona.into(),
            lane: Lane::Main,
            server_only: None,
            servers: None,
            plain_names: false,
            limits: Limits::default(),
            max_running: 128,
            queue: 32,
            unread: Arc::default(),
            grace: Duration::from_secs(5),
            is_shared: false,
            shutdown: CancellationToken::new(),
        }
    }
}

/// How to serve agents over HTTP.
#[derive(Clone)]
pub struct HttpOptions {
    /// Where to listen. Anything but loopback needs [`HttpOptions::behind_proxy`].
    pub listen: SocketAddr,
    /// Names accepted in `Host` beside the loopback names: `name` for any port, `name:port` for one.
    pub allowed_hosts: Vec<String>,
    /// Origins accepted from browsers, whole (`https://app.example`). A request without Origin passes.
    pub allowed_origins: Vec<String>,
    /// Show only this server, under its own names, whatever the path narrows to.
    pub server_only: Option<String>,
    /// Something in front terminates TLS and authenticates the connection to here.
    pub behind_proxy: bool,
    /// Who holds which token.
    pub tokens: Arc<dyn TokenCheck>,
    /// Pause after which an idle stream gets a comment, and its token is checked again.
    pub keep_alive: Duration,
    /// A legacy session without requests and without an open stream ends after this.
    pub session_idle: Duration,
    /// Legacy sessions that may exist at once.
    pub max_sessions: usize,
    /// Legacy sessions that one token may have at once.
    pub max_sessions_per_token: usize,
    /// Time for a new connection to send the head of its first request.
    pub head_timeout: Duration,
    /// Connections that may be open at once; more wait unaccepted.
    pub max_connections: usize,
    /// Requests that may run at once in one legacy session, and of one token outside of sessions.
    pub max_running: usize,
    /// What may wait for clients to read, of one token and of all clients that share it.
    pub unread: Arc<Unread>,
    /// Time for one request's body to arrive.
    pub body_timeout: Duration,
    /// A call that takes longer is answered as a stream, so that nothing between mistakes it for dead.
    pub stream_after: Duration,
    /// Bounds of one message.
    pub limits: Limits,
    /// How long open connections may go on after `shutdown`.
    pub grace: Duration,
    /// Stops listening and ends all streams.
    pub shutdown: CancellationToken,
}

impl HttpOptions {
    /// The defaults for an address: loopback names only, 15 s keep-alive, 1,024 sessions of at most 30
    /// idle minutes.
    pub fn new(listen: SocketAddr, tokens: Arc<dyn TokenCheck>) -> Self {
        Self {
            listen,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            server_only: None,
            behind_proxy: false,
            tokens,
            keep_alive: Duration::from_secs(15),
            session_idle: Duration::from_mins(30),
            max_sessions: 1024,
            max_sessions_per_token: 128,
            head_timeout: Duration::from_secs(10),
            max_connections: 2048,
            max_running: 128,
            unread: Arc::default(),
            body_timeout: Duration::from_mins(1),
            stream_after: Duration::from_secs(5),
            limits: Limits::default(),
            grace: Duration::from_secs(5),
            shutdown: CancellationToken::new(),
        }
    }
}
