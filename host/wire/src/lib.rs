//! JSON-RPC kept raw: the strict door, splicing, framing, SSE, envelopes and header rules of both protocol eras.
//!
//! Contract: bytes come in through [`line`] or [`sse`], pass [`door::scan`] once, become a [`Message`] whose payload
//! stays the text the peer wrote, and are changed only by [`edit`], which copies everything it was not asked to
//! change. Unknown members, member order and number text therefore survive a passage through Toolgate, and what a
//! policy judged is byte for byte what a server reads.
//!
//! Bounds: nothing here does I/O, spawns or waits. Memory is at most a small multiple of the message at hand, whose
//! size and depth [`Limits`] caps.
//!
//! Threat: every function that takes bytes or text may be fed by a hostile peer on either side. None panics, none
//! recurses without a bound, and none takes more than `n log n` time in the size of its input.

pub mod codes;
pub mod door;
pub mod edit;
pub mod envelope;
pub mod headers;
mod id;
mod json;
mod limits;
pub mod line;
mod lists;
mod log_level;
mod message;
pub mod sse;
#[cfg(test)]
mod testing;

pub use id::Id;
pub use limits::Limits;
pub use lists::ListKind;
pub use log_level::LogLevel;
pub use message::{ErrorObject, Message, Notification, Outcome, ParseError, Request, Response};
pub use serde_json::value::RawValue;
