//! The observation of one task, from the moment it is written down to its end.
//!
//! Contract: whatever is known of the task is in the journal when it changes. Pushes count as reads; where
//! none come, the server is asked as often as it wants, within [`SHORTEST`] and [`LONGEST`] (TSK-006). What
//! fails is tried again with doubling pauses (TSK-010), over another connection where the one is gone
//! (TSK-012; `read.rs`). A cancellation is in the journal and in the audit log before its server is told (TSK-011).
//!
//! Bounds: a read takes at most ten seconds; after six failures in a row nobody is kept waiting any longer,
//! and after `timeouts.task_lost` (an hour) without an answer the task is lost. A task past its time is over
//! (TSK-016). Changes of one task leave 64 rows at most.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep_until};
use toolgate_plugins::Document;
use toolgate_store::{AuditRow, Event, TaskCounters, TaskStatus};
use toolgate_wire::{ErrorObject, Outcome};

use super::begin::{expiry, now_ms};
use super::note::STEP;
use super::wire::Said;
use super::{Entry, Place};
use crate::ask::By;
use crate::attend::Turn;
use crate::forward::{Answer, Path};
use crate::links::Live;
use crate::reply::ErrorCode;

/// The pause between two reads: what a server asks for, within these.
pub(super) const SHORTEST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);
const USUAL: Duration = Duration::from_secs(1);

/// What a task begins with.
pub(super) struct Begun {
    pub(super) said: Said,
    pub(super) place: Place,
    pub(super) document: Document,
    pub(super) by: By,
    /// The client that waits for the plain result.
    pub(super) reply: Option<oneshot::Sender<Outcome>>,
}

/// How a task ended.
pub(super) enum End {
    Completed(Box<RawValue>),
    Failed(ErrorObject),
    Cancelled,
    /// Past its time.
    Expired,
    /// Its server does not know it, or cannot be reached.
    Lost(String),
    /// It cannot go on, and is cancelled.
    Refused(ErrorCode, String),
    /// The gateway ends; the next one goes on.
    Left,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancel {
    None,
    Wanted,
    Sent,
}

/// Whoever observes one task.
pub(super) struct Tender {
    pub(super) path: Arc<Path>,
    pub(super) entry: Arc<Entry>,
    pub(super) document: Document,
    pub(super) by: By,
    pub(super) place: Place,
    pub(super) reply: Option<oneshot::Sender<Outcome>>,
    pub(super) live: Option<Arc<Live>>,
    pub(super) pushes: mpsc::Receiver<Box<RawValue>>,
    pub(super) turns: Option<mpsc::Receiver<Turn>>,
    pub(super) status: TaskStatus,
    pub(super) snapshot: String,
    pub(super) message: Option<String>,
    pub(super) poll: Duration,
    pub(super) created_ms: i64,
    pub(super) expires_at_ms: Option<i64>,
    pub(super) counters: TaskCounters,
    pub(super) cancel: Cancel,
    /// Keys of questions that were asked; each counts once in the life of a task.
    pub(super) asked: HashSet<String>,
    /// Answers that the server did not acknowledge yet, by key.
    pub(super) answers: BTreeMap<String, String>,
    pub(super) asking: Option<JoinHandle<Vec<(String, Answer)>>>,
    pub(super) rounds: usize,
    /// What waits for somebody to come.
    pub(super) pending: Option<String>,
    pub(super) kept_at: Instant,
    pub(super) failures: u32,
    pub(super) failing_since: Option<Instant>,
    pub(super) due: Instant,
    pub(super) read_at: Instant,
    pub(super) rows: usize,
    pub(super) step: f64,
    pub(super) step_due: Instant,
}

enum Woken {
    Pushed(Box<RawValue>),
    Cancelled,
    Frozen,
    Answered(Result<Vec<(String, Answer)>, JoinError>),
    Turn(Turn),
    Poked,
    Changed,
    Due,
    Step,
    Left,
    Closing,
}

impl Tender {
    pub(super) fn new(
        path: Arc<Path>,
        entry: Arc<Entry>,
        begun: Begun,
        live: Option<Arc<Live>>,
        pushes: mpsc::Receiver<Box<RawValue>>,
        turns: Option<mpsc::Receiver<Turn>>,
    ) -> Self {
        let Begun { said, place, document, by, reply } = begun;
        let created_ms = i64::try_from(now_ms()).unwrap_or(i64::MAX);
        let now = Instant::now();
        entry.view().live.clone_from(&live);
        Self {
            expires_at_ms: expiry(created_ms, said.ttl),
            path,
            entry,
            document,
            by,
            place,
            reply,
            live,
            pushes,
            turns,
            status: said.status,
            snapshot: said.snapshot,
            message: said.message,
            poll: pause(said.poll),
            created_ms,
            counters: TaskCounters::default(),
            cancel: Cancel::None,
            asked: HashSet::new(),
            answers: BTreeMap::new(),
            asking: None,
            rounds: 0,
            pending: None,
            kept_at: now,
            failures: 0,
            failing_since: None,
            due: now + pause(said.poll).min(USUAL),
            read_at: now,
            rows: 0,
            step: 0.0,
            step_due: now + STEP,
        }
    }

    /// The same with what the journal knows of a task that another process, or this one, observed before.
    pub(super) fn taken_up(mut self, task: &toolgate_store::Task) -> Self {
        self.created_ms = task.created_at_ms;
        self.expires_at_ms = task.expires_at_ms;
        self.counters = task.counters;
        if let Some(by) = &task.cancel_requested_by {
            self.entry.request_cancel(by);
            self.cancel = Cancel::Wanted;
        }
        self.due = Instant::now();
        self
    }

    pub(super) async fn run(mut self) {
        let end = self.observe().await;
        if let Some(asking) = self.asking.take() {
            asking.abort();
        }
        self.close(end).await;
        self.entry.settle_cancel();
        self.path.gateway.tasks.remove(&self.entry.id);
        // The journal has the last word now.
        self.show_changed();
    }

    async fn observe(&mut self) -> End {
        if let Some(end) = self.take_place().await {
            return end;
        }
        self.tell();
        let mut changes = self.path.gateway.watch.changes();
        loop {
            let woken = self.next(&mut changes).await;
            let end = match woken {
                Woken::Pushed(said) => {
                    self.counters.pushes += 1;
                    self.take(&said).await
                }
                Woken::Cancelled => {
                    self.begin_cancel().await;
                    None
                }
                Woken::Frozen => {
                    self.entry.request_cancel("freeze");
                    None
                }
                Woken::Answered(answers) => self.answered(answers).await,
                Woken::Turn(turn) => {
                    self.entry.view().open.extend(turn.open);
                    self.show_changed();
                    None
                }
                Woken::Poked => {
                    self.due = self.due.min(self.read_at + SHORTEST);
                    None
                }
                Woken::Changed => {
                    self.look_for_cancel();
                    None
                }
                Woken::Due => self.act().await,
                Woken::Step => {
                    self.tell();
                    None
                }
                Woken::Left => {
                    self.left_alone();
                    None
                }
                Woken::Closing => Some(End::Left),
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// Nothing is asked before there is a place; a cancellation needs none.
    async fn take_place(&mut self) -> Option<End> {
        let entry = Arc::clone(&self.entry);
        tokio::select! {
            biased;
            () = self.place.taken() => None,
            () = entry.cancel.cancelled() => None,
            () = self.path.frozen.cancelled() => None,
            () = self.path.gateway.tasks.closing.cancelled() => Some(End::Left),
        }
    }

    async fn next(&mut self, changes: &mut tokio::sync::watch::Receiver<u64>) -> Woken {
        let due = self.expiry().map_or(self.due, |expiry| expiry.min(self.due));
        let (entry, frozen) = (&self.entry, &self.path.frozen);
        let unasked = self.cancel == Cancel::None;
        let tells = self.reply.is_some() && self.path.waiting.progress.is_some();
        tokio::select! {
            biased;
            () = entry.cancel.cancelled(), if unasked => Woken::Cancelled,
            () = entry.detached.cancelled(), if self.reply.is_some() => Woken::Left,
            () = frozen.cancelled(), if unasked && !entry.cancel.is_cancelled() => Woken::Frozen,
            Some(said) = self.pushes.recv() => Woken::Pushed(said),
            answers = finished(&mut self.asking), if self.asking.is_some() => Woken::Answered(answers),
            Some(turn) = turn_of(&mut self.turns), if self.turns.is_some() => Woken::Turn(turn),
            Ok(()) = changes.changed(), if unasked => Woken::Changed,
            () = sleep_until(due) => Woken::Due,
            () = entry.poke.notified() => Woken::Poked,
            () = sleep_until(self.step_due), if tells => Woken::Step,
            () = self.path.gateway.tasks.closing.cancelled() => Woken::Closing,
        }
    }

    fn expiry(&self) -> Option<Instant> {
        let left = self.expires_at_ms?.saturating_sub(i64::try_from(now_ms()).unwrap_or(i64::MAX));
        Some(Instant::now() + Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    pub(super) fn is_expired(&self) -> bool {
        self.expires_at_ms.is_some_and(|at| at <= i64::try_from(now_ms()).unwrap_or(i64::MAX))
    }

    /// Who wants it stopped may be in another process.
    fn look_for_cancel(&self) {
        match self.path.gateway.store.task(&self.entry.id) {
            Ok(Some(task)) => {
                if let Some(by) = task.cancel_requested_by {
                    self.entry.request_cancel(&by);
                }
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "it cannot be seen whether a task is to be cancelled"),
        }
    }

    /// First in the journal and in the log, then at the server.
    async fn begin_cancel(&mut self) {
        self.cancel = Cancel::Wanted;
        if let Some(asking) = self.asking.take() {
            asking.abort();
        }
        self.entry.view().open.clear();
        self.show_changed();
        let by = self.entry.cancelled_by();
        let path = &self.path;
        if let Err(error) = path.gateway.store.request_task_cancel(&self.entry.id, &by) {
            tracing::error!(%error, "a cancellation is not in the journal; it is sent all the same");
        }
        let row = AuditRow::task(Event::McpTaskCancelled, &path.call, &self.entry.id).with("by", by);
        path.gateway.note_refusal(row).await;
        self.failures = 0;
        self.due = Instant::now();
    }
}

pub(super) fn pause(wanted: Option<Duration>) -> Duration {
    wanted.unwrap_or(USUAL).clamp(SHORTEST, LONGEST)
}

async fn finished(
    asking: &mut Option<JoinHandle<Vec<(String, Answer)>>>,
) -> Result<Vec<(String, Answer)>, JoinError> {
    match asking {
        Some(running) => {
            let answers = running.await;
            *asking = None;
            answers
        }
        None => std::future::pending().await,
    }
}

async fn turn_of(turns: &mut Option<mpsc::Receiver<Turn>>) -> Option<Turn> {
    match turns {
        Some(turns) => turns.recv().await,
        None => std::future::pending().await,
    }
}
