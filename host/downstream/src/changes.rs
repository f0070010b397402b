//! From many changes behind to few notifications in front (PR-20).
//!
//! A server that announces a change two hundred times during one call costs a client two listings, not
//! two hundred: the first change is told after a short pause, later ones at most once in [`GAP`], and
//! the last one is always told.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::broadcast::{Receiver, error::RecvError, error::TryRecvError};
use tokio::time::{Instant, sleep_until};
use toolgate_wire::ListKind;

use crate::backend::Change;

/// Changes that come together are told together.
const SETTLE: Duration = Duration::from_millis(100);
/// The shortest pause between two notifications to one client.
const GAP: Duration = Duration::from_secs(2);

/// The changes as one client is told of them.
pub(crate) struct ListChanges {
    receiver: Receiver<Change>,
    earliest: Option<Instant>,
    waiting: BTreeSet<ListKind>,
}

impl ListChanges {
    /// Follows a receiver of the backend from now on.
    pub(crate) fn new(receiver: Receiver<Change>) -> Self {
        Self { receiver, earliest: None, waiting: BTreeSet::new() }
    }

    /// Resolves with what the client should list again; `None` once nothing can change any more. A
    /// future that is dropped keeps what it was holding back.
    pub(crate) async fn next(&mut self) -> Option<Vec<ListKind>> {
        if self.waiting.is_empty() {
            let received = self.receiver.recv().await;
            match received {
                Ok(change) => self.note(change),
                // Having lagged means that anything may have changed.
                Err(RecvError::Lagged(_)) => self.note_all(),
                Err(RecvError::Closed) => return None,
            }
        }
        let settled = Instant::now() + SETTLE;
        let due = self.earliest.map_or(settled, |earliest| earliest.max(settled));
        sleep_until(due).await;
        loop {
            match self.receiver.try_recv() {
                Ok(change) => self.note(change),
                Err(TryRecvError::Lagged(_)) => self.note_all(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.earliest = Some(Instant::now() + GAP);
        Some(std::mem::take(&mut self.waiting).into_iter().collect())
    }

    fn note(&mut self, change: Change) {
        match change {
            Change::List(kind) => self.waiting.insert(kind),
        };
    }

    fn note_all(&mut self) {
        self.waiting.extend([ListKind::Tools, ListKind::Prompts, ListKind::Resources]);
    }
}
