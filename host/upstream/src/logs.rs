//! What a server logs while it works on a call, for the client of that call.
//!
//! Contract: a message goes to exactly one running call, or to nobody. On a response stream it belongs
//! to the request that the stream answers; on a pipe or a standing stream only a single running call
//! makes that certain, and where two could be meant nothing is guessed, because a wrong guess would show
//! one client what another one does.
//!
//! Bounds: a full channel loses messages, never the reply. A server of the handshake era is told a level
//! once, and again only for one that shows more.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use toolgate_wire::{LogLevel, edit};

/// Where the log of one request goes, and from which severity on.
#[derive(Clone, Debug)]
pub struct Logs {
    /// The least severe message that is wanted.
    pub level: LogLevel,
    /// Takes the messages.
    pub out: mpsc::Sender<LogMessage>,
}

/// One `notifications/message`.
#[derive(Debug)]
pub struct LogMessage {
    /// Its params as the server sent them.
    pub params: Box<RawValue>,
}

impl Logs {
    /// Passes a message on, if it is severe enough. One without a known level is not.
    pub(crate) fn take(&self, params: Box<RawValue>) {
        let level = edit::get(params.get(), "/level").and_then(edit::string);
        if level.as_deref().and_then(LogLevel::of).is_some_and(|level| level >= self.level) {
            let _ = self.out.try_send(LogMessage { params });
        }
    }
}

/// The level that a server of the handshake era was told.
#[derive(Debug)]
pub(crate) struct Told(AtomicU8);

impl Default for Told {
    fn default() -> Self {
        Self(AtomicU8::new(u8::MAX))
    }
}

impl Told {
    /// Whether the server has to be told this level, because it knows of none that shows as much. The
    /// first that asks tells it.
    pub(crate) fn needs(&self, level: LogLevel) -> bool {
        let rank = level as u8;
        self.0.fetch_min(rank, Ordering::AcqRel) > rank
    }
}

#[cfg(test)]
mod tests;
