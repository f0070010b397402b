//! Which log messages of servers a client wants: said once for a session in the earlier era, and with
//! each request in the stateless one.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::value::RawValue;
use toolgate_wire::envelope::{self, Era};
use toolgate_wire::{ErrorObject, LogLevel, Notification, codes, edit};

/// The method of the earlier era that says it.
pub(crate) const SET_LEVEL: &str = "logging/setLevel";

const NONE: u8 = u8::MAX;

/// What the client of a session asked for; nothing at first.
#[derive(Debug)]
pub(crate) struct Wanted(AtomicU8);

impl Default for Wanted {
    fn default() -> Self {
        Self(AtomicU8::new(NONE))
    }
}

impl Wanted {
    /// Takes a level from the parameters of [`SET_LEVEL`].
    pub(crate) fn set(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let word = params.and_then(|params| edit::get(params.get(), "/level")).and_then(edit::string);
        let level = word.as_deref().and_then(LogLevel::of).ok_or_else(|| {
            let words = LogLevel::ALL.map(LogLevel::as_str).join(", ");
            ErrorObject::new(codes::INVALID_PARAMS, format!("params.level is none of {words}"))
        })?;
        self.0.store(level as u8, Ordering::Relaxed);
        Ok(())
    }

    /// Forgets it: a new handshake starts over.
    pub(crate) fn clear(&self) {
        self.0.store(NONE, Ordering::Relaxed);
    }

    fn get(&self) -> Option<LogLevel> {
        LogLevel::ALL.get(usize::from(self.0.load(Ordering::Relaxed))).copied()
    }
}

/// From which level on the client of this request wants to see the log.
pub(crate) fn level(era: Era, wanted: Option<&Wanted>, params: Option<&RawValue>) -> Option<LogLevel> {
    match era {
        Era::Legacy => wanted?.get(),
        Era::Modern => envelope::modern_meta(params).ok()??.log_level.as_deref().and_then(LogLevel::of),
    }
}

/// One message as the client gets it.
pub(crate) fn message(params: Box<RawValue>) -> String {
    Notification::new("notifications/message", Some(params)).to_text()
}
