//! What a guest may call: one module for each interface, each implementing it for [`State`].
//!
//! All of these are always available and open nothing outside the host's memory, but for log
//! lines and the clock. A denial, a bad argument or a limit is a WIT value; only a handle that
//! the guest made up, or a full table, is a trap.
//!
//! [`State`]: crate::state::State

mod clock;
mod documents;
mod hashing;
mod log;
pub(crate) mod matching;
mod requests;
mod settings;

use std::fmt::Display;

use crate::bindings::types;
use crate::bindings::types::Error;
use crate::state::State;

impl types::Host for State {}

/// An argument that does not fit.
fn invalid(why: impl Display) -> Error {
    Error::Invalid(why.to_string())
}

/// More bytes than the plugin's `host-bytes`.
fn too_large(bytes: usize, limit: usize) -> Error {
    Error::LimitExceeded(format!("{bytes} bytes are more than the limit host-bytes of {limit}"))
}

#[cfg(test)]
mod tests;
