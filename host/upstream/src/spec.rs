//! What a caller says about one server, and the permit without which nothing is opened.
//!
//! These are plain values. They hold no sockets and no processes, so that the configuration, a
//! test and the gateway can build them alike. Every duration and size has the default of
//! `docs/design.md` 9a and can be changed.

use std::path::PathBuf;
use std::sync::Arc;

use toolgate_base::Secret;
pub use toolgate_base::Timeouts;

use crate::server_log::{Mask, ServerLog};

/// One server, as the gateway hands it to [`crate::Connection::open`].
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// The configured name; it stands in every error and log line.
    pub name: String,
    /// How to reach the server.
    pub transport: TransportSpec,
    /// Which era to speak.
    pub protocol: ProtocolChoice,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// How much to accept.
    pub limits: Limits,
    /// The program that understands `__child` (the toolgate binary itself). A stdio server is
    /// always started through it.
    pub child_program: PathBuf,
    /// What the server is told about its client.
    pub client_info: ClientInfo,
    /// What the server is told that its client can do for it, a JSON object: in the handshake, and in
    /// each modern request that says nothing else.
    pub client_capabilities: String,
    /// Who keeps what the server says beside its messages.
    pub log: Option<Arc<dyn ServerLog>>,
    /// What is taken out of its words before they are shown or kept.
    pub mask: Mask,
}

/// The way to a server.
#[derive(Clone, Debug)]
pub enum TransportSpec {
    /// A child process that speaks JSON lines on its standard input and output. The arguments
    /// reach it as they are: no shell is involved.
    Stdio {
        /// A path, or a name looked up in the `PATH` that the child will have.
        program: String,
        /// The arguments after the program.
        args: Vec<String>,
        /// Variables of this server's own. Besides these a child gets only a short list of
        /// harmless ones from Toolgate's environment (ST-18).
        env: Vec<(String, Secret)>,
        /// The working directory; Toolgate's own when absent.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint. Its path and query are sent byte for byte (HT-18).
        url: String,
        /// Headers sent with every request to this endpoint and its same-origin redirects.
        headers: Vec<(String, Secret)>,
    },
    /// HTTP+SSE of revision 2024-11-05, which was replaced by streamable HTTP.
    Sse {
        /// Where the event stream is.
        url: String,
        /// Headers sent with the stream and with every message.
        headers: Vec<(String, Secret)>,
    },
}

/// Which protocol era the operator wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProtocolChoice {
    /// Ask the server (spec 2026-07-28, "versioning": discover first, then initialize).
    #[default]
    Auto,
    /// Only the `initialize` handshake.
    Legacy,
    /// Only stateless requests of revision 2026-07-28; its errors surface unchanged.
    Modern,
}

/// How much this connection accepts from its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message: a line, a body or an event.
    pub max_message: usize,
    /// Nesting of one message.
    pub max_depth: usize,
    /// Pages of one listing.
    pub max_pages: usize,
    /// Bytes kept of what a child wrote to its standard error and beside its messages.
    pub stderr_tail: usize,
    /// Same-origin redirects followed for one request.
    pub max_redirects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message: 16 * 1024 * 1024,
            max_depth: 64,
            max_pages: 1_000,
            stderr_tail: 64 * 1024,
            max_redirects: 10,
        }
    }
}

impl Limits {
    /// The same limits in the words of the door.
    pub(crate) fn door(self) -> toolgate_wire::Limits {
        toolgate_wire::Limits { max_message: self.max_message, max_depth: self.max_depth }
    }
}

/// `clientInfo` of the handshake and of modern requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// For example `toolgate`.
    pub name: String,
    /// For example `0.1.0`.
    pub version: String,
}

impl ClientInfo {
    /// Both parts.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into() }
    }

    /// The JSON object for the wire.
    pub(crate) fn to_json(&self) -> String {
        serde_json::json!({ "name": self.name, "version": self.version }).to_string()
    }
}

/// The proof that a connect decision was taken for one server.
///
/// Nothing opens a transport without one (FR-01: a probe had connected before any gate). It is
/// spent by [`crate::Connection::open`]; a connection that repairs itself (a fresh session, a
/// respawn for the other era) stays under the decision it was opened with.
#[derive(Debug)]
pub struct Permit {
    server: String,
}

impl Permit {
    /// To be called by the one decision point, after it allowed the connect to `server`.
    pub fn decided(server: impl Into<String>) -> Self {
        Self { server: server.into() }
    }

    /// The server it is good for.
    pub fn server(&self) -> &str {
        &self.server
    }
}
