//! Writing one group, and the thread that does it when no caller does.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};

use super::queue::Group;
use super::{MAX_GROUP, Shared, give_up};
use crate::audit::event::Event;
use crate::audit::heads::{Heads, LOCK_PAUSES};
use crate::audit::log::{Log, Patience};
use crate::audit::prepare::Prepared;
use crate::audit::row::AuditRow;
use crate::error::StoreError;

/// The most unawaited rows that are kept after a failed commit.
const MAX_KEPT: usize = 10_000;

/// Whoever holds it writes.
pub(super) struct Worker {
    /// None once the thread has closed it.
    log: Option<Log>,
    /// Unawaited rows of groups that failed.
    kept: VecDeque<Prepared>,
}

/// What came of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Somebody else is writing.
    Busy,
    /// One group was written or refused.
    Done,
    /// Another process would have to be waited for, or work is left that takes long; rows that were not
    /// tried are in the queue again.
    CannotWait,
}

/// The thread: a turn whenever it is called, until the end.
pub(super) fn run(shared: &Shared) {
    let _ended = Ended(shared);
    let mut heads = shared.worker().log.as_ref().map(Log::heads_beside);
    let mut retry = false;
    loop {
        let woken = shared.queue.sleep(retry);
        if woken.ends && shared.queue.is_empty() {
            break;
        }
        retry = Worker::turns(shared, heads.as_mut(), woken.writes);
    }
    Worker::close(shared);
}

impl Shared {
    /// The worker, once whoever writes is done. For the thread alone: a caller waits for nobody.
    fn worker(&self) -> MutexGuard<'_, Worker> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whatever ends the thread, nobody is left waiting for it.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.queue.end();
    }
}

impl Worker {
    pub(super) fn new(log: Log) -> Self {
        Self { log: Some(log), kept: VecDeque::new() }
    }

    /// Writes one group if nobody else writes.
    pub(super) fn try_turn(shared: &Shared, patience: Patience) -> Taken {
        let mut worker = match shared.worker.try_lock() {
            Ok(worker) => worker,
            // What a panic left of a transaction is rolled back by the next one's failure.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Taken::Busy,
        };
        let group = shared.queue.take();
        shared.came_together(group.awaited());
        match worker.write(shared, group, patience) {
            Ok(()) if worker.log.as_ref().is_some_and(Log::is_far_behind) => Taken::CannotWait,
            Ok(()) => {
                if worker.log.as_ref().is_some_and(Log::is_behind) {
                    shared.queue.look();
                }
                Taken::Done
            }
            Err(group) => {
                shared.queue.put_back(group);
                Taken::CannotWait
            }
        }
    }

    /// The thread's turns: until nobody waits, seen after letting go of the worker, so that a caller who
    /// found it busy is not left. Without `writes` it only moves the anchor, unless somebody waits then.
    /// True: something is kept for another try.
    fn turns(shared: &Shared, mut heads: Option<&mut Heads>, mut writes: bool) -> bool {
        loop {
            let mut worker = shared.worker();
            let mut anchor = None;
            if writes {
                // With all patience no group comes back.
                let _ = worker.write(shared, shared.queue.take(), Patience::Full);
                if let Some(log) = worker.log.as_mut().filter(|log| log.is_behind()) {
                    log.catch_up();
                }
                worker.retry_kept(shared, Patience::Full, false);
            } else {
                anchor = worker.log.as_mut().and_then(Log::take_due_anchor);
            }
            let retry = !worker.kept.is_empty() || shared.lost.load(Ordering::Relaxed) > 0;
            drop(worker);
            // Beside the log, so that no caller finds it busy.
            if let (Some(heads), Some((chain, head))) = (heads.as_deref_mut(), anchor)
                && !matches!(heads.advance(&chain, &head, LOCK_PAUSES), Ok(true))
                && let Some(log) = &mut shared.worker().log
            {
                log.anchor_now();
            }
            if !shared.queue.is_awaited() {
                return retry;
            }
            writes = true;
        }
    }

    fn close(shared: &Shared) {
        let mut worker = shared.worker();
        worker.retry_kept(shared, Patience::Full, true);
        if let Some(log) = worker.log.take() {
            log.close();
        }
    }

    /// Writes a group, or gives it back where that would mean to wait for another process.
    fn write(&mut self, shared: &Shared, group: Group, patience: Patience) -> Result<(), Group> {
        let written = match &mut self.log {
            _ if group.rows.is_empty() => Ok(Vec::new()),
            Some(log) => log.append(&group.rows, patience),
            None => Err(StoreError::WriterGone),
        };
        match written {
            Err(StoreError::Locked { .. }) if patience == Patience::None => return Err(group),
            Ok(positions) => {
                for (reply, position) in group.replies.into_iter().zip(positions) {
                    if let Some(reply) = reply {
                        // The caller may have gone; the row stays.
                        let _ = reply.send(Ok(position));
                    }
                }
                if !group.rows.is_empty() {
                    self.retry_kept(shared, patience, false);
                }
            }
            Err(error) => {
                self.refuse(shared, group.rows, group.replies, error);
                shared.queue.summon();
            }
        }
        for flush in group.flushes {
            let _ = flush.send(());
        }
        Ok(())
    }

    /// Tells everyone who waits, and keeps the rows of those who do not.
    fn refuse(
        &mut self,
        shared: &Shared,
        rows: Vec<Prepared>,
        replies: Vec<Option<super::Reply>>,
        error: StoreError,
    ) {
        tracing::error!(%error, rows = rows.len(), "audit rows could not be committed");
        let error = Arc::new(error);
        for (row, reply) in rows.into_iter().zip(replies) {
            match reply {
                Some(reply) => {
                    let _ = reply.send(Err(StoreError::NotRecorded(Arc::clone(&error))));
                }
                None if self.kept.len() < MAX_KEPT => self.kept.push_back(row),
                None => {
                    give_up(1);
                    shared.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Writes the kept rows in a commit of their own, so that a row which can never be written
    /// does not take others with it. On `last` what still fails is only logged.
    fn retry_kept(&mut self, shared: &Shared, patience: Patience, last: bool) {
        let Some(log) = &mut self.log else { return };
        if !self.kept.is_empty() {
            let rows: Vec<Prepared> = self.kept.drain(..).collect();
            for rows in rows.chunks(MAX_GROUP) {
                match log.append(rows, patience) {
                    Ok(_) => {}
                    Err(error) if last || !error.may_pass() => {
                        tracing::error!(%error, rows = rows.len(), "audit rows are lost");
                        give_up(rows.len());
                        shared.lost.fetch_add(rows.len() as u64, Ordering::Relaxed);
                    }
                    Err(_) => self.kept.extend(rows.iter().cloned()),
                }
            }
        }
        report_gap(log, shared, patience);
    }
}

fn report_gap(log: &mut Log, shared: &Shared, patience: Patience) {
    let lost = shared.lost.swap(0, Ordering::Relaxed);
    if lost == 0 {
        return;
    }
    let row = AuditRow::new(Event::AuditGap).with("lost", lost);
    if log.append(&[Prepared::new(row)], patience).is_err() {
        shared.lost.fetch_add(lost, Ordering::Relaxed);
    }
}
