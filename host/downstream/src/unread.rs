//! What waits for clients to read, and how much of it there may be.
//!
//! **Contract.** Every reply that is ready takes its bytes from two budgets, its client's and that of all
//! clients together, and gives them back when it is written or its client is gone. One that finds no room
//! is not kept: its client gets an error in its place that says that the request was carried out and that
//! the result is lost, and the audit log a row. Before that, who has much to read yet is given nothing new
//! to do ([`Waits::is_crowded`]), so that little is lost.
//!
//! **Bounds.** Replies of at most [`SMALL`] bytes always have room: there are no more of them than requests
//! that run, queued places included. A client of whom nothing waits may use the last quarter of the budget
//! of all, which those who do not read cannot fill.
//!
//! **Threat.** A client that asks and does not read would fill the memory of a process that serves others
//! too. Two additions to counters are all that a reply of a good one costs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use serde_json::json;
use tokio::sync::Notify;
use toolgate_wire::{ErrorObject, Id, Outcome, codes, edit};

use crate::reply;

/// What is always kept, bytes.
const SMALL: usize = 64 * 1024;
/// The key of the configuration that bounds one client, in MiB.
const OF_ONE: &str = "serve.max_unread_mib";
/// The same for all clients of a process.
const OF_ALL: &str = "serve.max_unread_total_mib";

/// The budgets of one process.
#[derive(Debug)]
pub struct Unread {
    of_one: usize,
    of_all: usize,
    total: AtomicUsize,
    /// The clients that are known by a name of theirs, such as a token.
    named: Mutex<std::collections::HashMap<String, Weak<Waits>>>,
}

impl Default for Unread {
    fn default() -> Self {
        Self::new(128 << 20, 512 << 20)
    }
}

impl Unread {
    /// Budgets in bytes: of one client, and of all together.
    pub fn new(of_one: usize, of_all: usize) -> Self {
        Self { of_one, of_all, total: AtomicUsize::new(0), named: Mutex::default() }
    }

    /// What waits for a client that nobody else is.
    pub(crate) fn client(self: &Arc<Self>) -> Arc<Waits> {
        Arc::new(Waits { unread: Arc::clone(self), bytes: AtomicUsize::new(0), freed: Notify::new() })
    }

    /// What waits for the client of this name, on all of its connections.
    pub(crate) fn client_named(self: &Arc<Self>, name: &str) -> Arc<Waits> {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waits) = named.get(name).and_then(Weak::upgrade) {
            return waits;
        }
        named.retain(|_, waits| waits.strong_count() > 0);
        let waits = self.client();
        named.insert(name.to_owned(), Arc::downgrade(&waits));
        waits
    }
}

/// What waits for one client.
#[derive(Debug)]
pub(crate) struct Waits {
    unread: Arc<Unread>,
    bytes: AtomicUsize,
    freed: Notify,
}

/// Why a reply is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full {
    /// The key of the configuration.
    pub(crate) limit: &'static str,
    /// Its value, MiB.
    mib: usize,
}

impl Waits {
    /// Room for so many bytes.
    fn hold(self: &Arc<Self>, bytes: usize) -> Result<Held, Full> {
        let unread = &self.unread;
        let own = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        let all = unread.total.fetch_add(bytes, Ordering::AcqRel);
        let held = Held { client: Arc::clone(self), bytes };
        let of_all = if own == 0 { unread.of_all } else { unread.of_all - unread.of_all / 4 };
        if bytes <= SMALL {
            Ok(held)
        } else if own > 0 && own + bytes > unread.of_one {
            Err(Full { limit: OF_ONE, mib: unread.of_one >> 20 })
        } else if all + bytes > of_all {
            Err(Full { limit: OF_ALL, mib: unread.of_all >> 20 })
        } else {
            Ok(held)
        }
    }

    /// A message that may be lost where there is no room for it: a step of progress, a notification.
    pub(crate) fn may_lose(self: &Arc<Self>, text: String) -> Option<Waiting> {
        match self.hold(text.len()) {
            Ok(held) => Some(Waiting { text, held: vec![held] }),
            Err(full) => {
                let (bytes, limit) = (text.len(), full.limit);
                tracing::warn!(bytes, limit, "a message was dropped because its client does not read");
                None
            }
        }
    }

    /// A reply, or what goes out in its place; `note` hears of each reply that is lost.
    pub(crate) fn reply(self: &Arc<Self>, text: String, note: &mut dyn FnMut(Lost)) -> Option<Waiting> {
        match self.hold(text.len()) {
            Ok(held) => Some(Waiting { text, held: vec![held] }),
            Err(full) => instead(&text, full, note).map(Waiting::from),
        }
    }

    /// Whether so much waits that nothing new should be begun.
    pub(crate) fn is_crowded(&self) -> bool {
        self.bytes.load(Ordering::Acquire) > self.unread.of_one / 2
    }

    /// Why nothing new is begun.
    pub(crate) fn crowded_text(&self) -> String {
        format!(
            "{} MiB of replies wait for the clients of this token to read, of {} MiB that may \
             ({OF_ONE}); nothing was done. Read them, then ask again",
            self.bytes.load(Ordering::Acquire) >> 20,
            self.unread.of_one >> 20
        )
    }

    /// Resolves when little waits.
    pub(crate) async fn room(&self) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // From here on nothing that is given back is missed.
            freed.as_mut().enable();
            if !self.is_crowded() {
                return;
            }
            freed.await;
        }
    }
}

/// Bytes of both budgets, given back when this is dropped.
#[derive(Debug)]
struct Held {
    client: Arc<Waits>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.client.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.client.unread.total.fetch_sub(self.bytes, Ordering::AcqRel);
        if self.bytes > SMALL {
            self.client.freed.notify_waiters();
        }
    }
}

/// A message on its way to a client, with its place in the budgets.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) text: String,
    held: Vec<Held>,
}

impl From<String> for Waiting {
    /// A message of Toolgate's own, which is short and does not count.
    fn from(text: String) -> Self {
        Self { text, held: Vec::new() }
    }
}

impl Waiting {
    /// All of these as one array.
    pub(crate) fn array(all: Vec<Self>) -> Self {
        let mut text = String::with_capacity(all.iter().map(|one| one.text.len() + 1).sum::<usize>() + 1);
        let mut held = Vec::new();
        text.push('[');
        for (index, one) in all.into_iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(&one.text);
            held.extend(one.held);
        }
        text.push(']');
        Self { text, held }
    }

    /// The same in another form.
    pub(crate) fn map(self, form: impl FnOnce(&str) -> String) -> Self {
        Self { text: form(&self.text), held: self.held }
    }

    /// The bytes, which give their place back when the last of them is written.
    pub(crate) fn into_bytes(self) -> Bytes {
        if self.held.is_empty() { Bytes::from(self.text) } else { Bytes::from_owner(self) }
    }
}

impl AsRef<[u8]> for Waiting {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// A reply that its client does not get.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) id: Option<Id>,
    pub(crate) bytes: usize,
    pub(crate) limit: &'static str,
}

/// What goes out in place of a reply, or of the long ones of a batch; nothing in place of what answers no
/// request.
fn instead(text: &str, full: Full, note: &mut dyn FnMut(Lost)) -> Option<String> {
    if text.starts_with('[') {
        let elements = edit::elements(text).unwrap_or_default();
        let short = |one: &&str| one.len() <= SMALL;
        let kept: Vec<String> = elements
            .into_iter()
            .filter_map(|one| if short(&one) { Some(one.to_owned()) } else { instead(one, full, note) })
            .collect();
        return (!kept.is_empty()).then(|| format!("[{}]", kept.join(",")));
    }
    let answers = edit::get(text, "/method").is_none();
    let bytes = text.len();
    if !answers {
        tracing::warn!(bytes, limit = full.limit, "a message was dropped because its client does not read");
        return None;
    }
    let id = edit::get(text, "/id").and_then(Id::from_json);
    note(Lost { id: id.clone(), bytes, limit: full.limit });
    let mut error = ErrorObject::new(
        codes::TOO_LARGE,
        format!(
            "the request was carried out, and its reply of {bytes} bytes was dropped: too much waits for \
             clients to read ({} is {} MiB). It is not done again; read what waits before you decide to repeat it",
            full.limit, full.mib
        ),
    );
    error.data = edit::raw(json!({ "toolgate/error": { "code": "reply_dropped" } }).to_string()).ok();
    Some(reply::response(id.as_ref(), Outcome::Error(error)))
}

#[cfg(test)]
mod tests;
