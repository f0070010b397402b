//! Group commit: rows wait in a queue and are committed together, by whoever comes first.
//!
//! Contract: an awaited row is answered after its group's commit, with its position or with the
//! error; a row that nobody awaits is written within some 6 ms, with the next awaited one where there
//! is one, and is kept through failed commits and tried again. Nothing is dropped silently: what must
//! go is counted and the count becomes a row, `audit_gap`.
//!
//! A commit is a few writes into the page cache, which takes less time than to wake another thread
//! and be woken by it. So a caller who awaits a row commits the group itself, without ever waiting for
//! anybody: a database or an anchor that another process holds, and a disk that must be synced, are the
//! business of a thread ([`Worker`] is behind a mutex that is only tried). Where rows came together
//! lately, the caller first lets every other ready task go, which may add rows to the group; a caller who
//! was alone lately does not, because giving way takes a tenth of a commit and more. The thread also
//! moves the anchor of a busy log, and sees to rows that nobody awaits, to those that are tried again,
//! and to the end.
//!
//! Bounds: 100,000 rows in the queue, 1,024 rows a group, 10,000 rows kept for another try.

mod queue;
mod worker;

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use toolgate_base::Clock;

use self::queue::{Queue, Refused};
use self::worker::{Taken, Worker};
use super::log::{Log, Patience};
use super::prepare::Prepared;
use super::row::{AuditRow, Position};
use crate::database::Durability;
use crate::error::StoreError;

/// The most rows that may wait in memory.
const MAX_QUEUED: usize = 100_000;
/// The most rows of one commit.
const MAX_GROUP: usize = 1_024;
/// How many groups one caller commits before it leaves the rest to the thread.
const MAX_TURNS: usize = 4;
/// For how many commits of one awaited row each, callers go on giving way to others first.
const COMPANY: u32 = 16;
/// How often, in commits, one who seems to be alone gives way all the same. On a runtime of one thread
/// nobody else shows otherwise.
const PROBE: u32 = 32;

/// Rows of this process that were given up, by every writer it had.
static GIVEN_UP: AtomicU64 = AtomicU64::new(0);

/// How many audit rows this process has given up so far, an `audit_gap` row written or not. Whoever ends with
/// some did not do all of what it did.
pub fn rows_given_up() -> u64 {
    GIVEN_UP.load(Ordering::Relaxed)
}

/// Counts rows that are given up.
fn give_up(rows: usize) {
    GIVEN_UP.fetch_add(u64::try_from(rows).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Whoever waits for a row.
type Reply = oneshot::Sender<Result<Position, StoreError>>;

/// The sending side. Ends the thread, after the rows that wait, when it is dropped.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What callers and the thread share.
struct Shared {
    queue: Queue,
    /// Held while a group is written and by nobody who waits for anything else.
    worker: Mutex<Worker>,
    /// Unawaited rows that were given up since the last `audit_gap`.
    lost: AtomicU64,
    /// Counts down from [`COMPANY`] since rows came together, and from there on round and round [`PROBE`].
    company: AtomicU32,
    /// Whether callers commit. Not where a commit syncs the disk.
    callers_commit: bool,
}

impl Writer {
    /// Opens the log and starts the thread.
    pub(crate) fn start(
        data_dir: &Path,
        name: &str,
        durability: Durability,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let log = Log::open(data_dir, name, durability, clock)?;
        Self::with(log, durability)
            .map_err(|source| StoreError::io("start the audit writer for", data_dir, source))
    }

    /// Starts the thread over an open log.
    fn with(log: Log, durability: Durability) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Queue::default(),
            worker: Mutex::new(Worker::new(log)),
            lost: AtomicU64::new(0),
            company: AtomicU32::new(PROBE + COMPANY),
            callers_commit: durability == Durability::Process,
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("toolgate-audit".to_owned())
            .spawn(move || worker::run(&of_thread))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Queues a row and waits for its commit.
    pub(crate) async fn append(&self, row: AuditRow) -> Result<Position, StoreError> {
        let (reply, mut answer) = oneshot::channel();
        self.shared.queue.push(Prepared::new(row), Some(reply)).map_err(StoreError::from)?;
        // A caller who is dropped here leaves its row to the thread.
        let mut left_behind = LeftBehind(Some(&self.shared));
        if self.shared.callers_commit {
            if self.shared.has_company() {
                tokio::task::yield_now().await;
            }
            left_behind.0 = None;
            if let Ok(answered) = answer.try_recv() {
                return answered;
            }
            self.shared.commit_as_caller();
        }
        drop(left_behind);
        answer.await.unwrap_or(Err(StoreError::WriterGone))
    }

    /// Queues a row that nobody waits for.
    pub(crate) fn append_detached(&self, row: AuditRow) {
        match self.shared.queue.push(Prepared::new(row), None) {
            Ok(()) => {}
            Err(Refused::Full) => {
                self.shared.lost.fetch_add(1, Ordering::Relaxed);
                give_up(1);
                tracing::error!(limit = MAX_QUEUED, "audit queue full: a row is lost");
            }
            Err(Refused::Ended) => {
                give_up(1);
                tracing::error!("the audit writer has ended: a row is not written");
            }
        }
    }

    /// Waits until every row queued so far was tried.
    pub(crate) async fn flush(&self) {
        let (done, finished) = oneshot::channel();
        self.shared.queue.push_flush(done);
        // A writer that has ended has nothing left to write.
        let _ = finished.await;
    }
}

impl Shared {
    /// Commits what waits, unless somebody else does: whoever holds the worker looks at the queue
    /// once more after letting go of it, so that no row is left between the two.
    fn commit_as_caller(&self) {
        for _ in 0..MAX_TURNS {
            match Worker::try_turn(self, Patience::None) {
                Taken::Busy => return,
                Taken::Done => {}
                Taken::CannotWait => break,
            }
            if !self.queue.is_awaited() {
                return;
            }
        }
        self.queue.summon();
    }

    /// Whether a caller gives way to others before it commits.
    fn has_company(&self) -> bool {
        let left = self.company.load(Ordering::Relaxed);
        left > PROBE || left == 0
    }

    /// Notes how many rows of one commit were awaited. Only a hint, so that a count that is lost between two
    /// threads costs a few microseconds and nothing else.
    fn came_together(&self, awaited: usize) {
        let left = match (awaited, self.company.load(Ordering::Relaxed)) {
            (0, _) => return,
            (1, 0) => PROBE,
            (1, left) => left - 1,
            _ => PROBE + COMPANY,
        };
        self.company.store(left, Ordering::Relaxed);
    }
}

/// Calls the thread when it is dropped.
struct LeftBehind<'a>(Option<&'a Shared>);

impl Drop for LeftBehind<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.0 {
            shared.queue.summon();
        }
    }
}

impl From<Refused> for StoreError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full => Self::QueueFull { limit: MAX_QUEUED },
            Refused::Ended => Self::WriterGone,
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Rows queued before this are written first.
        self.shared.queue.stop();
        let thread = match self.thread.lock() {
            Ok(mut thread) => thread.take(),
            Err(poisoned) => poisoned.into_inner().take(),
        };
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the audit writer ended by a panic");
        }
    }
}

#[cfg(test)]
mod tests;
