//! What a server says without being asked, brought to the gateway without ever stalling the
//! connection.
//!
//! A reader must not wait for a slow consumer (FR-08), and a server may send a storm (PR-20): so
//! "the list changed" is one flag however often it is said, other notifications wait in a bounded
//! queue whose overflow is counted, and one small task carries both to the channel.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, mpsc};
use toolgate_wire::{ListKind, Notification, edit};

use crate::question::Unplaced;

/// Notifications that wait at most; more are dropped, counted and logged.
const MAX_WAITING: usize = 256;
/// Longest URI that is kept of a notification, in bytes.
const MAX_URI: usize = 8 * 1024;

/// One thing that happened on a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// What the server lists of a kind may have changed; said once for any number of notifications.
    /// Resources and their templates are one: `Resources`.
    ListChanged(ListKind),
    /// A resource that was subscribed to, or one beneath it, changed; said once for any number of
    /// notifications. The URI is the server's word.
    ResourceUpdated(String),
    /// Something may have been missed: every subscription has to be made sure of, and every resource
    /// subscribed to may have changed.
    Missed,
    /// Any other notification that belongs to no request, as it came.
    Notification(Notification),
    /// The server asked something that belongs to no call, and was refused.
    QuestionRefused {
        /// What it asked.
        method: String,
        /// Why it got no answer.
        why: Unplaced,
    },
    /// The connection is over. Nothing follows.
    Closed {
        /// Why, ready to be shown.
        reason: String,
    },
}

/// The flags and the queue between a reader and the channel.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    waiting: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    lists: BTreeSet<ListKind>,
    missed: bool,
    updated: BTreeSet<String>,
    others: VecDeque<Notification>,
    refused: VecDeque<(String, Unplaced)>,
    dropped: u64,
    closed: Option<String>,
}

impl EventQueue {
    /// From now on, what waits and what comes goes to `out`. Called once, when the connection
    /// stands: a child that was started only to learn the era says nothing to anybody. The task
    /// ends after `Closed`, or when nobody listens.
    pub(crate) fn deliver(self: &Arc<Self>, server: String, out: mpsc::Sender<Event>) {
        tokio::spawn(carry(server, Arc::clone(self), out));
    }

    /// A notification that belongs to no request.
    pub(crate) fn notification(&self, notification: &Notification) {
        self.change(|waiting| match notification.method.as_str() {
            "notifications/resources/updated" => waiting.updated(notification),
            "notifications/tools/list_changed" => drop(waiting.lists.insert(ListKind::Tools)),
            "notifications/prompts/list_changed" => drop(waiting.lists.insert(ListKind::Prompts)),
            "notifications/resources/list_changed" => drop(waiting.lists.insert(ListKind::Resources)),
            _ if waiting.others.len() < MAX_WAITING => waiting.others.push_back(notification.clone()),
            _ => waiting.dropped += 1,
        });
    }

    /// A question of the server's that went to nobody.
    pub(crate) fn refused(&self, method: &str, why: Unplaced) {
        self.change(|waiting| {
            if waiting.refused.len() < MAX_WAITING {
                waiting.refused.push_back((method.to_owned(), why));
            } else {
                waiting.dropped += 1;
            }
        });
    }

    /// Every list may be different now.
    pub(crate) fn lists_changed(&self) {
        let all = [ListKind::Tools, ListKind::Prompts, ListKind::Resources];
        self.change(|waiting| waiting.lists.extend(all));
    }

    /// What was said of resources may have been missed, and subscriptions may be gone.
    pub(crate) fn missed(&self) {
        self.change(|waiting| waiting.missed = true);
    }

    /// The end. The first reason stays.
    pub(crate) fn close(&self, reason: &str) {
        self.change(|waiting| {
            waiting.closed.get_or_insert_with(|| reason.to_owned());
        });
    }

    fn change(&self, edit: impl FnOnce(&mut Waiting)) {
        edit(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_one();
    }

    fn take(&self) -> Waiting {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *waiting)
    }
}

impl Waiting {
    /// Where there are too many, or one cannot be kept, anything may have changed.
    fn updated(&mut self, notification: &Notification) {
        let params = notification.params.as_deref();
        let uri = params.and_then(|params| edit::get(params.get(), "/uri")).and_then(edit::string);
        match uri {
            Some(uri) if uri.len() <= MAX_URI && self.updated.len() < MAX_WAITING => {
                self.updated.insert(uri);
            }
            Some(_) => self.missed = true,
            None => self.dropped += 1,
        }
    }
}

async fn carry(server: String, queue: Arc<EventQueue>, out: mpsc::Sender<Event>) {
    loop {
        tokio::select! {
            () = queue.wake.notified() => {}
            () = out.closed() => return,
        }
        let taken = queue.take();
        if taken.dropped > 0 {
            tracing::warn!(server, dropped = taken.dropped, "notifications dropped: the queue was full");
        }
        let closed = taken.closed.map(|reason| Event::Closed { reason });
        let ended = closed.is_some();
        let events = taken
            .lists
            .into_iter()
            .map(Event::ListChanged)
            .chain(taken.missed.then_some(Event::Missed))
            .chain(taken.updated.into_iter().map(Event::ResourceUpdated))
            .chain(taken.others.into_iter().map(Event::Notification))
            .chain(taken.refused.into_iter().map(|(method, why)| Event::QuestionRefused { method, why }))
            .chain(closed);
        for event in events {
            if out.send(event).await.is_err() {
                return;
            }
        }
        if ended {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
