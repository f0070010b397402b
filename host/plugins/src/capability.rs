//! What a guest may call: one module for each interface, each implementing it for [`State`].
//!
//! `documents`, `requests`, `log`, `clock`, `hashing`, `settings` and `matching` are always available
//! and open nothing outside the host's memory, but for log lines and the clock. `kv`, `http`,
//! `secrets`, `secrets-reveal` and `files` open what release and grant both say, by label: each has
//! a `validate` that works that out when the plugin is loaded, and checks every call. A denial, a bad argument or a limit is a WIT value; only a handle that
//! the guest made up, or a full table, is a trap.
//!
//! [`State`]: crate::state::State

mod clock;
mod documents;
pub(crate) mod files;
mod hashing;
pub(crate) mod http;
pub(crate) mod kv;
mod log;
pub(crate) mod matching;
mod origin;
mod requests;
pub(crate) mod secrets;
mod settings;
#[cfg(test)]
mod testing;
pub(crate) mod wasi;

use std::fmt::Display;

use crate::bindings::types;
use crate::bindings::types::Error;
use crate::state::State;

impl types::Host for State {}

/// An argument that does not fit.
fn invalid(why: impl Display) -> Error {
    Error::Invalid(why.to_string())
}

/// A label that is not open: whether it is not declared or not granted is the operator's to know.
fn not_granted(interface: &str, label: &str) -> Error {
    Error::Denied(format!("{interface}.{label} is not granted to this plugin"))
}

/// More bytes than the plugin's `host-bytes`.
fn too_large(bytes: usize, limit: usize) -> Error {
    Error::LimitExceeded(format!("{bytes} bytes are more than the limit host-bytes of {limit}"))
}

#[cfg(test)]
mod tests;
