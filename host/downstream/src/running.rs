//! The requests of one client that are running now, by the client's own ids.
//!
//! It is what makes a cancelled request silent: whoever takes the entry out first, the reply or the
//! cancellation, decides whether an answer goes out. Ids are compared by type and value, so that `1`
//! and `"1"` are two requests (PR-11). The number of entries is bounded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use toolgate_wire::Id;

/// Why a request cannot start.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BeginError {
    /// An answer could not be told from the other request's.
    #[error(
        "this id is in use by a request that is still running; ids must be unique among running requests"
    )]
    InUse,
    /// The client's own bound.
    #[error(
        "{0} requests of this client are running already, which is the limit (serve.max_running); wait for one to end"
    )]
    TooMany(usize),
}

/// The running requests of one session.
#[derive(Debug)]
pub(crate) struct Running {
    max: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    entries: HashMap<Id, Entry>,
}

#[derive(Debug)]
struct Entry {
    serial: u64,
    cancel: CancellationToken,
}

impl Running {
    /// A table for at most `max` requests.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, table: Mutex::default() })
    }

    /// Notes that a request has started. Its token is a child of `parent`.
    pub(crate) fn begin(self: &Arc<Self>, id: &Id, parent: &CancellationToken) -> Result<Ticket, BeginError> {
        let mut table = self.lock();
        if table.entries.contains_key(id) {
            return Err(BeginError::InUse);
        }
        if table.entries.len() >= self.max {
            return Err(BeginError::TooMany(self.max));
        }
        let serial = table.next;
        table.next = serial.wrapping_add(1);
        let cancel = parent.child_token();
        table.entries.insert(id.clone(), Entry { serial, cancel: cancel.clone() });
        Ok(Ticket { running: Arc::clone(self), id: id.clone(), serial, cancel })
    }

    /// Cancels one request; it will not be answered. False if no such request runs.
    pub(crate) fn cancel(&self, id: &Id) -> bool {
        let entry = self.lock().entries.remove(id);
        entry.is_some_and(|entry| {
            entry.cancel.cancel();
            true
        })
    }

    /// Cancels all; none will be answered.
    pub(crate) fn cancel_all(&self) {
        let entries = std::mem::take(&mut self.lock().entries);
        for entry in entries.into_values() {
            entry.cancel.cancel();
        }
    }

    /// True while no request runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        // No code panics while it holds the lock, so a poisoned table is still a whole one.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to answer one request.
#[derive(Debug)]
pub(crate) struct Ticket {
    running: Arc<Running>,
    id: Id,
    serial: u64,
    cancel: CancellationToken,
}

impl Ticket {
    /// Fires when the client cancels this request, or its session ends.
    pub(crate) fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Ends the request. True if it may be answered, false if it was cancelled before.
    pub(crate) fn finish(self) -> bool {
        self.take()
    }

    /// A cancelled id may be used again at once, so the entry is ours only if the serial is.
    fn take(&self) -> bool {
        let mut table = self.running.lock();
        let ours = table.entries.get(&self.id).is_some_and(|entry| entry.serial == self.serial);
        if ours {
            table.entries.remove(&self.id);
        }
        ours
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.take();
    }
}

#[cfg(test)]
mod tests;
