//! Tasks: a call whose server answers that it goes on working, and what becomes of it
//! (extension `io.modelcontextprotocol/tasks`).
//!
//! Contract: a task is in the journal before anybody waits for it. It is observed by one task of this
//! process, which hears of it (`notifications/tasks`) or asks (`tasks/get`), puts its questions to the
//! client it came from, and ends it in the journal. A client that has the extension gets an id of
//! Toolgate's, which is good for that caller alone; any other client waits and gets the plain result. What
//! comes back while nobody waits is kept, and nothing pretends that somebody had asked for it (TSK-019).
//! What a caller gives up, and what is frozen, is cancelled at its server; a gateway that ends in the
//! meantime leaves that to the next one.
//!
//! Bounds: [`slots::ACTIVE`] tasks of a server at a time and [`slots::QUEUED`] that wait; see
//! [`tend`] for clocks and repetitions, and `toolgate_store` for what the journal keeps.
//!
//! Threat: a server decides what becomes a task, for how long, and what it asks. A client may try the ids of
//! others: they are random, and an id of somebody else is unknown.
//!
//! A process may have several gateways, one for each configuration that its clients come with. What they
//! know of tasks is one ([`SharedTasks`]); each observes its own.

mod begin;
mod close;
mod counts;
mod input;
mod listened;
mod note;
mod read;
mod recover;
mod requests;
mod shared;
mod slots;
mod tend;
mod wire;

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolgate_store::TaskStatus;
use toolgate_wire::edit;

use crate::Gateway;
use crate::attend::Open;
use crate::caller::Caller;
use crate::links::Live;

pub(crate) use begin::{invocation, is_one, with_invocation};
pub use counts::TaskCounts;
pub use requests::{TaskVerb, undeclared};
pub use shared::SharedTasks;
pub(crate) use slots::Place;

/// The notification by which a server tells of a task.
pub(crate) const PUSH: &str = "notifications/tasks";
/// How long the end of a gateway waits for cancellations to reach their servers.
const SETTLE: Duration = Duration::from_secs(5);

/// The tasks that one gateway observes.
pub(crate) struct Tasks {
    shared: Arc<SharedTasks>,
    own: Mutex<HashSet<String>>,
    /// How many of them there are.
    open: watch::Sender<usize>,
    /// Ends all observation; what is open stays so in the journal.
    closing: CancellationToken,
}

/// One task while it is observed.
pub(crate) struct Entry {
    /// Toolgate's id.
    id: String,
    server: String,
    /// The server's id.
    task_id: String,
    /// Fires when somebody wants it cancelled.
    cancel: CancellationToken,
    cancel_by: Mutex<Option<String>>,
    /// Whether its server was told so, or need not be told any more.
    cancel_settled: AtomicBool,
    /// Fires when nobody waits for its outcome any more.
    detached: CancellationToken,
    /// Somebody would like to know how it stands.
    poke: Notify,
    pushed: mpsc::Sender<Box<RawValue>>,
    view: Mutex<View>,
}

/// A task as its client sees it.
struct View {
    status: TaskStatus,
    snapshot: String,
    /// What the client is asked.
    open: Vec<Open>,
    /// The connection over which it is observed.
    live: Option<Arc<Live>>,
}

impl Entry {
    /// A task that is observed from now on, as it stood last.
    fn new(
        id: String,
        server: String,
        task_id: String,
        status: TaskStatus,
        snapshot: String,
        pushed: mpsc::Sender<Box<RawValue>>,
    ) -> Self {
        Self {
            id,
            server,
            task_id,
            cancel: CancellationToken::new(),
            cancel_by: Mutex::default(),
            cancel_settled: AtomicBool::new(false),
            detached: CancellationToken::new(),
            poke: Notify::new(),
            pushed,
            view: Mutex::new(View { status, snapshot, open: Vec::new(), live: None }),
        }
    }

    /// Somebody wants the task cancelled; the first one counts.
    fn request_cancel(&self, by: &str) {
        self.cancel_by.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| by.to_owned());
        self.cancel.cancel();
    }

    fn cancelled_by(&self) -> String {
        self.cancel_by.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
    }

    fn settle_cancel(&self) {
        self.cancel_settled.store(true, Ordering::Release);
    }

    fn is_unsettled(&self) -> bool {
        self.cancel.is_cancelled() && !self.cancel_settled.load(Ordering::Acquire)
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tasks {
    /// None yet, among those of the other gateways of this process.
    pub(crate) fn new(shared: Arc<SharedTasks>) -> Self {
        Self {
            shared,
            own: Mutex::default(),
            open: watch::Sender::default(),
            closing: CancellationToken::new(),
        }
    }

    fn owner(&self, data_dir: &Path) -> Result<String, String> {
        self.shared.owner(data_dir)
    }

    fn find(&self, id: &str) -> Option<Arc<Entry>> {
        self.shared.find(id)
    }

    fn add(&self, entry: &Arc<Entry>) {
        self.shared.add(entry);
        let mut own = self.own();
        own.insert(entry.id.clone());
        self.open.send_replace(own.len());
    }

    fn remove(&self, id: &str) {
        drop(self.shared.remove(id));
        let mut own = self.own();
        own.remove(id);
        self.open.send_replace(own.len());
    }

    /// How a task stands has changed: whoever listens is told.
    fn tell(&self, id: &str) {
        self.shared.listeners.tell(id);
    }

    fn is_unsettled(&self) -> bool {
        let own: Vec<String> = self.own().iter().cloned().collect();
        own.iter().any(|id| self.find(id).is_some_and(|entry| entry.is_unsettled()))
    }

    /// Something may have been missed over this connection.
    pub(crate) fn ask_again(&self, live: &Arc<Live>) {
        for entry in self.shared.over(live) {
            entry.poke.notify_one();
        }
    }

    fn own(&self) -> MutexGuard<'_, HashSet<String>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// A server told of a task over one of its connections. What is about no task of that connection is
    /// let go.
    pub(crate) fn task_pushed(&self, server: &str, live: &Arc<Live>, params: Option<Box<RawValue>>) {
        let Some(params) = params else { return };
        let Some(task) = edit::get(params.get(), "/taskId").and_then(edit::string) else { return };
        // Two connections may each have a task of the same id.
        let mut over = self.tasks.shared.over(live).into_iter();
        let entry = over.find(|entry| entry.server == server && entry.task_id == task);
        // Where the queue is full, a read follows anyway.
        if let Some(entry) = entry
            && entry.pushed.try_send(params).is_err()
        {
            entry.poke.notify_one();
        }
    }

    /// How many tasks are observed: those that a server works on and those that wait for a place, for an
    /// answer or for their server to come back. While there are any, a gateway has something to do although
    /// it has no client.
    pub fn open_tasks(&self) -> watch::Receiver<usize> {
        self.tasks.open.subscribe()
    }

    /// Lets cancellations reach their servers, and stops observing.
    pub(crate) async fn settle_tasks(&self) {
        let settled = async {
            while self.tasks.is_unsettled() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(SETTLE, settled).await.is_err() {
            tracing::warn!("a cancellation did not reach its server; the next gateway sends it");
        }
        self.tasks.closing.cancel();
    }
}

/// Whom the id of a task is good for. A stdio client is a new session each time it starts and may come back
/// for its task; over HTTP the session, or the thread, is part of who it is.
pub(crate) fn holder(caller: &Caller) -> String {
    if caller.credential == "stdio" { caller.binding() } else { caller.sealed_for() }
}
