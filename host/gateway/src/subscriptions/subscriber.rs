//! One client's subscriptions from its own side: what it is still to be told.
//!
//! Bounds: at most [`MOST`] resources and as many tasks; a resource that changes a hundred times before it was told is
//! told once, and two batches are at least [`GAP`] apart (PR-20). Nothing waits for a client that does
//! not read: what waits for it are sets of at most [`MOST`] each.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use toolgate_wire::ErrorObject;

use crate::Gateway;

/// Resources that one client may be subscribed to.
pub const MOST: usize = 256;
/// Changes that come together are told together.
const SETTLE: Duration = Duration::from_millis(50);
/// The shortest pause between two batches.
const GAP: Duration = Duration::from_millis(500);

/// What a subscriber is told.
#[derive(Debug, Clone)]
pub enum Told {
    /// The resource changed, or may have while nobody could hear it; by the URI that the client knows.
    Updated(String),
    /// The subscription is over, and why.
    Ended {
        /// The URI that the client subscribed to.
        uri: String,
        /// Who or what ended it.
        error: ErrorObject,
    },
    /// A task of the client stands otherwise than before; by the id that the client knows.
    Task(String),
}

/// One client, or one `subscriptions/listen` of it. Dropping it ends its subscriptions.
#[derive(Debug, Default)]
pub struct Subscriber {
    pub(crate) inbox: Arc<Inbox>,
    gateway: Mutex<Weak<Gateway>>,
}

impl Subscriber {
    /// One that is subscribed to nothing.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Resolves with what there is to tell, never with nothing. A future that is dropped loses nothing.
    pub async fn next(&self) -> Vec<Told> {
        while self.inbox.lock().is_empty() {
            self.inbox.wake.notified().await;
        }
        let settled = Instant::now() + SETTLE;
        let due = self.inbox.lock().earliest.map_or(settled, |earliest| earliest.max(settled));
        sleep_until(due).await;
        let mut waiting = self.inbox.lock();
        waiting.earliest = Some(Instant::now() + GAP);
        let updated = std::mem::take(&mut waiting.updated).into_iter().map(Told::Updated);
        let tasks = std::mem::take(&mut waiting.tasks).into_iter().map(Told::Task);
        updated.chain(tasks).chain(std::mem::take(&mut waiting.ended)).collect()
    }

    /// Ends all its subscriptions; nothing is told of them.
    pub fn end(&self) {
        let gateway = self.gateway.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if let Some(gateway) = gateway {
            gateway.leave_all(&self.inbox);
        }
        let mut waiting = self.inbox.lock();
        waiting.updated.clear();
        waiting.tasks.clear();
        waiting.ended.clear();
    }

    /// Who keeps its subscriptions.
    pub(crate) fn belongs_to(&self, gateway: &Arc<Gateway>) {
        *self.gateway.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(gateway);
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.end();
    }
}

/// What waits to be told.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    updated: BTreeSet<String>,
    tasks: BTreeSet<String>,
    ended: Vec<Told>,
    earliest: Option<Instant>,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.updated.is_empty() && self.tasks.is_empty() && self.ended.is_empty()
    }
}

impl Inbox {
    /// What is to be told of this change; `None` where that waits to be told already. A server that names
    /// ever new resources beneath one that is subscribed to fills no memory: then it is that one.
    pub(crate) fn room_for(&self, updated: String, subscribed: &str) -> Option<String> {
        let waiting = self.lock();
        let told = if waiting.updated.len() < MOST { updated } else { subscribed.to_owned() };
        (!waiting.updated.contains(&told)).then_some(told)
    }

    /// A resource changed, or may have.
    pub(crate) fn updated(&self, uri: String) {
        self.lock().updated.insert(uri);
        self.wake.notify_one();
    }

    /// A task stands otherwise. There are no more of them than the client listens for.
    pub(crate) fn task_changed(&self, id: &str) {
        let mut waiting = self.lock();
        if !waiting.tasks.contains(id) {
            waiting.tasks.insert(id.to_owned());
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// A subscription is over.
    pub(crate) fn ended(&self, uri: String, error: ErrorObject) {
        let mut waiting = self.lock();
        waiting.updated.remove(&uri);
        if waiting.ended.len() < MOST {
            waiting.ended.push(Told::Ended { uri, error });
        }
        drop(waiting);
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
