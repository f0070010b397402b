//! MCP towards agents: Toolgate as a server, over stdio and HTTP, both eras on one endpoint.
//!
//! **Contract.** [`serve_stdio`] speaks on the process's own pipes, [`HttpServer`] on a socket, and
//! [`local`] lets several clients on pipes share one gateway. Both
//! frame bytes, refuse at the door what two parsers could read differently, fix who the caller is,
//! and hand tools calls to a [`Backend`]; nothing here decides what passes.
//!
//! **Bounds.** Messages, nesting, queues, running calls, sessions and connections all have a limit
//! named in [`StdioOptions`] and [`HttpOptions`]; a client that stops reading stops being read.
//!
//! **Threat.** Every byte comes from an agent that may act on injected text, and over HTTP from any
//! web page the operator has open. Hence the fixed order: Host and Origin, token, persona, and only
//! then a body.

mod asking;
mod backend;
mod call;
mod caller;
mod changes;
mod error;
mod http;
mod inbound;
mod legacy;
mod listening;
pub mod local;
mod logging;
mod modern;
mod options;
mod reply;
mod running;
mod stdio;
mod unread;

pub use backend::{
    Abilities, Backend, Call, Caller, Change, Client, Deed, DroppedReply, FalseClaim, Offers, Page, Progress,
    Subscriber, TaskVerb, Told,
};
pub use error::ServeError;
pub use http::{HttpServer, serve_http};
pub use options::{Credential, HttpOptions, StdioOptions, TokenCheck, TokenCheckError};
pub use stdio::{serve_pipes, serve_stdio};
pub use unread::Unread;

#[cfg(test)]
mod fake;
