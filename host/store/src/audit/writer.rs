//! The writer thread: takes rows from a queue and commits them in groups.
//!
//! Contract: an awaited row is answered after its group's commit, with its position or with the
//! error; a row that nobody awaits is written within 5 ms, with the next awaited one where there is
//! one, and is kept through failed commits and tried again. Nothing is
//! dropped silently: what must go is counted and the count becomes a row, `audit_gap`.
//! Bounds: 100,000 rows in the queue, 1,024 rows a group, 10,000 rows kept for another try.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use toolgate_base::Clock;

use super::event::Event;
use super::log::Log;
use super::prepare::Prepared;
use super::row::{AuditRow, Position};
use crate::database::Durability;
use crate::error::StoreError;

/// The most rows that may wait in memory.
const MAX_QUEUED: usize = 100_000;
/// The most rows of one commit.
const MAX_GROUP: usize = 1_024;
/// The most unawaited rows that are kept after a failed commit.
const MAX_KEPT: usize = 10_000;
/// How long rows that nobody awaits wait for company. A commit costs as much as a dozen rows.
const LINGER: Duration = Duration::from_millis(5);
/// How soon kept rows are tried again when nothing else is written.
const RETRY: Duration = Duration::from_millis(500);

/// Whoever waits for a row.
type Reply = oneshot::Sender<Result<Position, StoreError>>;

enum Job {
    Row(Prepared, Option<Reply>),
    /// Answered when every row queued before it was tried.
    Flush(oneshot::Sender<()>),
    Stop,
}

/// The sending side. Ends the thread, after the rows that wait, when it is dropped.
#[derive(Debug)]
pub(crate) struct Writer {
    jobs: Sender<Job>,
    counters: Arc<Counters>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Counters {
    queued: AtomicUsize,
    /// Unawaited rows that were given up since the last `audit_gap`.
    lost: AtomicU64,
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
        Self::with(log).map_err(|source| StoreError::io("start the audit writer for", data_dir, source))
    }

    /// Starts the thread over an open log.
    fn with(log: Log) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let counters = Arc::new(Counters::default());
        let worker = Worker { log, queue, counters: Arc::clone(&counters), kept: VecDeque::new() };
        let thread =
            std::thread::Builder::new().name("toolgate-audit".to_owned()).spawn(move || worker.run())?;
        Ok(Self { jobs, counters, thread: Mutex::new(Some(thread)) })
    }

    /// Queues a row and waits for its commit.
    pub(crate) async fn append(&self, row: AuditRow) -> Result<Position, StoreError> {
        let (reply, answer) = oneshot::channel();
        if !self.queue(row, Some(reply)) {
            return Err(StoreError::QueueFull { limit: MAX_QUEUED });
        }
        answer.await.unwrap_or(Err(StoreError::WriterGone))
    }

    /// Queues a row that nobody waits for.
    pub(crate) fn append_detached(&self, row: AuditRow) {
        if !self.queue(row, None) {
            self.counters.lost.fetch_add(1, Ordering::Relaxed);
            tracing::error!(limit = MAX_QUEUED, "audit queue full: a row is lost");
        }
    }

    /// Waits until every row queued so far was tried.
    pub(crate) async fn flush(&self) {
        let (done, finished) = oneshot::channel();
        if self.jobs.send(Job::Flush(done)).is_ok() {
            // A writer that has ended has nothing left to write.
            let _ = finished.await;
        }
    }

    /// False where the queue is full. A writer that is gone drops `reply`, which its owner sees.
    fn queue(&self, row: AuditRow, reply: Option<Reply>) -> bool {
        if self.counters.queued.fetch_add(1, Ordering::Relaxed) >= MAX_QUEUED {
            self.counters.queued.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        if let Err(mpsc::SendError(_)) = self.jobs.send(Job::Row(Prepared::new(row), reply)) {
            self.counters.queued.fetch_sub(1, Ordering::Relaxed);
            tracing::error!("the audit writer has ended: a row is not written");
        }
        true
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Rows queued before this are written first; a writer that is gone already needs no word.
        let _ = self.jobs.send(Job::Stop);
        let thread = match self.thread.lock() {
            Ok(mut thread) => thread.take(),
            Err(poisoned) => poisoned.into_inner().take(),
        };
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the audit writer ended by a panic");
        }
    }
}

struct Worker {
    log: Log,
    queue: Receiver<Job>,
    counters: Arc<Counters>,
    /// Unawaited rows of groups that failed.
    kept: VecDeque<Prepared>,
}

/// Jobs taken together.
#[derive(Default)]
struct Group {
    rows: Vec<Prepared>,
    replies: Vec<Option<Reply>>,
    flushes: Vec<oneshot::Sender<()>>,
    stop: bool,
}

impl Worker {
    fn run(mut self) {
        while let Some(group) = self.take() {
            let stop = group.stop;
            self.write(group);
            if stop {
                break;
            }
        }
        self.retry_kept(true);
        self.log.close();
    }

    /// Waits for a job and takes all that are there, up to the size of a group.
    fn take(&self) -> Option<Group> {
        let mut group = Group::default();
        let first = if self.kept.is_empty() && self.counters.lost.load(Ordering::Relaxed) == 0 {
            self.queue.recv().ok()?
        } else {
            match self.queue.recv_timeout(RETRY) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => return Some(group),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        };
        group.add(first);
        let linger = Instant::now() + LINGER;
        while group.rows.len() < MAX_GROUP && !group.stop {
            match self.queue.try_recv() {
                Ok(job) => group.add(job),
                Err(_) if group.is_awaited() => break,
                // Nobody waits for these rows: the next call's may share their commit.
                Err(_) => {
                    let rest = linger.saturating_duration_since(Instant::now());
                    match self.queue.recv_timeout(rest) {
                        Ok(job) => group.add(job),
                        Err(_) => break,
                    }
                }
            }
        }
        Some(group)
    }

    fn write(&mut self, group: Group) {
        self.counters.queued.fetch_sub(group.rows.len(), Ordering::Relaxed);
        let written = if group.rows.is_empty() { Ok(Vec::new()) } else { self.log.append(&group.rows) };
        let could_write = written.is_ok();
        match written {
            Ok(positions) => {
                for (reply, position) in group.replies.into_iter().zip(positions) {
                    if let Some(reply) = reply {
                        // The caller may have gone; the row stays.
                        let _ = reply.send(Ok(position));
                    }
                }
            }
            Err(error) => self.refuse(group.rows, group.replies, error),
        }
        if could_write {
            self.retry_kept(false);
        }
        for flush in group.flushes {
            let _ = flush.send(());
        }
    }

    /// Tells everyone who waits, and keeps the rows of those who do not.
    fn refuse(&mut self, rows: Vec<Prepared>, replies: Vec<Option<Reply>>, error: StoreError) {
        tracing::error!(%error, rows = rows.len(), "audit rows could not be committed");
        let error = Arc::new(error);
        for (row, reply) in rows.into_iter().zip(replies) {
            match reply {
                Some(reply) => {
                    let _ = reply.send(Err(StoreError::NotRecorded(Arc::clone(&error))));
                }
                None if self.kept.len() < MAX_KEPT => self.kept.push_back(row),
                None => {
                    self.counters.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Writes the kept rows in a commit of their own, so that a row which can never be written
    /// does not take others with it. On `last` what still fails is only logged.
    fn retry_kept(&mut self, last: bool) {
        if !self.kept.is_empty() {
            let rows: Vec<Prepared> = self.kept.drain(..).collect();
            for rows in rows.chunks(MAX_GROUP) {
                match self.log.append(rows) {
                    Ok(_) => {}
                    Err(error) if last || !error.may_pass() => {
                        tracing::error!(%error, rows = rows.len(), "audit rows are lost");
                        self.counters.lost.fetch_add(rows.len() as u64, Ordering::Relaxed);
                    }
                    Err(_) => self.kept.extend(rows.iter().cloned()),
                }
            }
        }
        self.report_gap();
    }

    fn report_gap(&mut self) {
        let lost = self.counters.lost.swap(0, Ordering::Relaxed);
        if lost == 0 {
            return;
        }
        let row = AuditRow::new(Event::AuditGap).with("lost", lost);
        if self.log.append(&[Prepared::new(row)]).is_err() {
            self.counters.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }
}

impl Group {
    /// Whether somebody waits for this group.
    fn is_awaited(&self) -> bool {
        self.stop || !self.flushes.is_empty() || self.replies.iter().any(Option::is_some)
    }

    fn add(&mut self, job: Job) {
        match job {
            Job::Row(row, reply) => {
                self.rows.push(row);
                self.replies.push(reply);
            }
            Job::Flush(done) => self.flushes.push(done),
            Job::Stop => self.stop = true,
        }
    }
}

#[cfg(test)]
mod tests;
