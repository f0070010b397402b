//! The rows that wait, and what wakes the writer thread.
//!
//! One mutex, held for a few moves of pointers. The thread sleeps until it is summoned; once a row
//! came that nobody awaits, it looks every [`LINGER`] until nothing has come for a while, so that such
//! rows cost no wake-up each. It writes only those that an earlier look has seen: in a busy log the next
//! caller takes the others along, and a commit of their own would cost as much as a dozen rows.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{MAX_GROUP, MAX_QUEUED, Reply, give_up};
use crate::audit::prepare::Prepared;

/// How long, and at most twice as long, rows that nobody awaits wait for company.
const LINGER: Duration = Duration::from_millis(3);
/// How soon kept rows are tried again when nothing else is written.
const RETRY: Duration = Duration::from_millis(500);
/// Looks without a row after which the thread sleeps.
const IDLE_LOOKS: u32 = 40;

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rows: VecDeque<(Prepared, Option<Reply>)>,
    /// How many of `rows` somebody waits for.
    awaited: usize,
    flushes: Vec<oneshot::Sender<()>>,
    summoned: bool,
    /// Set while the thread looks by itself: how often in a row it found nothing.
    looks: Option<u32>,
    /// How many of the first rows were there at the last look.
    seen: usize,
    life: Life,
}

/// What the thread was woken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Woken {
    /// It is to end, after what waits.
    pub(super) ends: bool,
    /// It is to write what waits, and not only to see to the rest.
    pub(super) writes: bool,
}

/// Whether there is a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Life {
    #[default]
    Running,
    /// It is to end, after what waits.
    Stopping,
    Ended,
}

/// Why a row was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// [`MAX_QUEUED`] rows wait already.
    Full,
    /// There is no writer any more.
    Ended,
}

/// Jobs taken together.
#[derive(Default)]
pub(super) struct Group {
    pub(super) rows: Vec<Prepared>,
    pub(super) replies: Vec<Option<Reply>>,
    pub(super) flushes: Vec<oneshot::Sender<()>>,
}

impl Group {
    /// How many of its rows somebody waits for.
    pub(super) fn awaited(&self) -> usize {
        self.replies.iter().filter(|reply| reply.is_some()).count()
    }
}

impl Queue {
    /// Adds a row. One that nobody awaits has the thread look for it.
    pub(super) fn push(&self, row: Prepared, reply: Option<Reply>) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.life == Life::Ended {
            return Err(Refused::Ended);
        }
        if state.rows.len() >= MAX_QUEUED {
            return Err(Refused::Full);
        }
        let detached = reply.is_none();
        state.awaited += usize::from(!detached);
        state.rows.push_back((row, reply));
        if detached {
            self.begin_to_look(state);
        }
        Ok(())
    }

    /// Has the thread look within [`LINGER`], where it does not look by itself already.
    pub(super) fn look(&self) {
        self.begin_to_look(self.lock());
    }

    /// Has the thread tell when everything that waits now was tried.
    pub(super) fn push_flush(&self, done: oneshot::Sender<()>) {
        let mut state = self.lock();
        if state.life != Life::Ended {
            state.flushes.push(done);
            drop(state);
            self.summon();
        }
    }

    /// Calls the thread.
    pub(super) fn summon(&self) {
        self.lock().summoned = true;
        self.wake.notify_one();
    }

    /// Ends the thread once the queue is empty.
    pub(super) fn stop(&self) {
        {
            let mut state = self.lock();
            if state.life == Life::Running {
                state.life = Life::Stopping;
            }
        }
        self.wake.notify_one();
    }

    /// Nobody writes any more: all who wait are let go, and nothing more is taken.
    pub(super) fn end(&self) {
        let left = {
            let mut state = self.lock();
            let left = std::mem::take(&mut *state);
            state.life = Life::Ended;
            left
        };
        if !left.rows.is_empty() {
            give_up(left.rows.iter().filter(|(_, reply)| reply.is_none()).count());
            tracing::error!(rows = left.rows.len(), "the audit writer has ended: rows are not written");
        }
    }

    /// Whether somebody waits for a row or a flush.
    pub(super) fn is_awaited(&self) -> bool {
        let state = self.lock();
        state.awaited > 0 || !state.flushes.is_empty()
    }

    /// Takes the rows of one commit. To be called by the holder of the worker only, or rows would be
    /// written in another order than they came in.
    pub(super) fn take(&self) -> Group {
        let mut state = self.lock();
        let count = state.rows.len().min(MAX_GROUP);
        let mut group = Group {
            rows: Vec::with_capacity(count),
            replies: Vec::with_capacity(count),
            // A flush waits for all rows before it; taken with the last of them.
            flushes: if count == state.rows.len() { std::mem::take(&mut state.flushes) } else { Vec::new() },
        };
        for (row, reply) in state.rows.drain(..count) {
            group.rows.push(row);
            group.replies.push(reply);
        }
        state.awaited = state.awaited.saturating_sub(group.awaited());
        state.seen = state.seen.saturating_sub(count);
        group
    }

    /// Puts a group back in front of all others.
    pub(super) fn put_back(&self, group: Group) {
        let mut state = self.lock();
        state.awaited += group.awaited();
        state.seen += group.rows.len();
        for both in group.rows.into_iter().zip(group.replies).rev() {
            state.rows.push_front(both);
        }
        state.flushes.extend(group.flushes);
    }

    /// Blocks the thread until there is something to do. `retry`: something is kept for another try.
    pub(super) fn sleep(&self, retry: bool) -> Woken {
        let mut state = self.lock();
        if let Some(looks) = state.looks {
            let looks = if state.rows.is_empty() { looks + 1 } else { 0 };
            state.looks = (looks <= IDLE_LOOKS).then_some(looks);
        }
        let mut until = retry.then(|| Instant::now() + RETRY);
        while !state.summoned && state.life == Life::Running {
            // What is kept for another try sets the pace for all: a commit just failed.
            if state.looks.is_some() && until.is_none() {
                until = Some(Instant::now() + LINGER);
            }
            let Some(when) = until else {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let rest = when.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            state = self.wake.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        let ends = state.life != Life::Running;
        let writes = std::mem::take(&mut state.summoned) || ends || retry || state.seen > 0;
        state.seen = state.rows.len();
        Woken { ends, writes }
    }

    /// Whether no row and no flush waits.
    pub(super) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.rows.is_empty() && state.flushes.is_empty()
    }

    fn begin_to_look(&self, mut state: MutexGuard<'_, State>) {
        if state.looks.is_none() {
            state.looks = Some(0);
            drop(state);
            self.wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
