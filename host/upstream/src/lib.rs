//! Connections to MCP servers: stdio children, streamable HTTP and HTTP+SSE, in both protocol eras.
//!
//! A [`Connection`] is opened from a [`ServerSpec`] under a [`Permit`], which only a connect
//! decision makes. It greets the server in the era it speaks, gives every request an id of its
//! own, and ends each of them: by the reply, by the loss of the server, by cancel or by deadline.
//! A request that may have run is never sent again; [`RequestError::may_have_run`] says which.
//!
//! Payloads stay the text the server wrote. Every message passes the door of `toolgate-wire`
//! first, and one that fails it fails only the request it answers.
//!
//! The server is not trusted with anything: not to answer, to read, to stop, to end a list or a
//! stream, to leave no process behind, or to say who it is. What bounds it stands in [`Limits`]
//! and [`Timeouts`].

mod ask;
mod backoff;
mod connection;
mod error;
mod events;
mod handshake;
mod http;
mod hub;
mod link;
mod listen;
mod listing;
mod logs;
mod pending;
mod question;
mod server_log;
mod spec;
mod stdio;
mod subscribe;
mod sys;
mod tasks;

pub use backoff::{Backoff, BackoffRules, Next};
pub use connection::{Connection, RequestOptions, State};
pub use error::{ConnectError, RequestError};
pub use events::Event;
pub use listing::Listing;
pub use logs::{LogMessage, Logs};
pub use pending::Progress;
pub use question::{Question, Unplaced};
pub use server_log::{LogSource, Mask, ServerLog};
pub use spec::{ClientInfo, Limits, Permit, ProtocolChoice, ServerSpec, Timeouts, TransportSpec};
pub use sys::child_main;
pub use toolgate_wire::envelope::Era;
