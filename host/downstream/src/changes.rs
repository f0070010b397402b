//! From many changes behind to few notifications in front (PR-20).
//!
//! A server that announces a change two hundred times during one call costs a client two listings, not
//! two hundred: the first change is told after a short pause, later ones at most once in [`GAP`], and
//! the last one is always told.

use std::time::Duration;

use tokio::sync::broadcast::{Receiver, error::RecvError, error::TryRecvError};
use tokio::time::{Instant, sleep_until};

use crate::backend::Change;

/// Changes that come together are told together.
const SETTLE: Duration = Duration::from_millis(100);
/// The shortest pause between two notifications to one client.
const GAP: Duration = Duration::from_secs(2);

/// The changes as one client is told of them.
pub(crate) struct ListChanges {
    receiver: Receiver<Change>,
    earliest: Option<Instant>,
}

impl ListChanges {
    /// Follows a receiver of the backend from now on.
    pub(crate) fn new(receiver: Receiver<Change>) -> Self {
        Self { receiver, earliest: None }
    }

    /// Resolves when the client should list again; false once nothing can change any more.
    ///
    /// Not cancel-safe: whoever drops the future loses the change it was holding back.
    pub(crate) async fn next(&mut self) -> bool {
        match self.receiver.recv().await {
            // Having lagged means that something changed, which is all a notification says.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return false,
        }
        let settled = Instant::now() + SETTLE;
        let due = self.earliest.map_or(settled, |earliest| earliest.max(settled));
        sleep_until(due).await;
        while let Ok(_) | Err(TryRecvError::Lagged(_)) = self.receiver.try_recv() {}
        self.earliest = Some(Instant::now() + GAP);
        true
    }
}
