//! The requests that wait for a reply: own ids, own progress tokens, and an end for each.
//!
//! A request ends by its reply, by the loss of the connection, or by its ticket being dropped
//! (cancel, deadline, a caller that went away). The map sits behind a plain mutex that is never
//! held across an await. Once closed it takes no new request, so none can slip in behind the
//! sweep and wait forever.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use toolgate_wire::Outcome;

use crate::error::RequestError;
use crate::hub::Asked;
use crate::logs::Logs;
use crate::question::{Question, Unplaced};

/// One `notifications/progress` of one request.
#[derive(Debug)]
pub struct Progress {
    /// Its params as the server sent them; `progressToken` in there is Toolgate's own and means
    /// nothing to anybody else.
    pub params: Box<RawValue>,
}

/// How a wait ended from the connection's side.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The server's own answer.
    Outcome(Outcome),
    /// An answer came that cannot be used; its bytes are kept where a caller may salvage parts.
    Unusable { error: RequestError, raw: Option<Vec<u8>> },
}

/// All waiting requests of one connection.
#[derive(Debug)]
pub(crate) struct Pending {
    server: String,
    next: AtomicU64,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    open: HashMap<u64, Slot>,
    closed: Option<String>,
}

#[derive(Debug)]
struct Slot {
    reply: oneshot::Sender<Reply>,
    progress: Option<mpsc::Sender<Progress>>,
    /// Where questions of the server about this request go; none for what is no call.
    questions: Option<mpsc::Sender<Question>>,
    /// Where what the server logs about it goes.
    logs: Option<Logs>,
    shared: Arc<Shared>,
}

/// What the ticket, the slot and the writer all see of one request.
#[derive(Debug)]
pub(crate) struct Shared {
    stage: AtomicU8,
    started: Instant,
    /// Milliseconds after `started` of the last sign of life.
    last_sign: AtomicU64,
    /// Questions of the server about this request that wait for an answer.
    asking: AtomicUsize,
}

/// While it lives, the server waits for an answer and not the other way round.
#[derive(Debug)]
pub(crate) struct Held(Arc<Shared>);

const QUEUED: u8 = 0;
const SENT: u8 = 1;
const WITHDRAWN: u8 = 2;

/// One request's place; dropping it gives the place up.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    pending: &'a Pending,
    pub(crate) id: u64,
    pub(crate) reply: oneshot::Receiver<Reply>,
    pub(crate) shared: Arc<Shared>,
}

impl Pending {
    pub(crate) fn new(server: &str) -> Self {
        Self { server: server.to_owned(), next: AtomicU64::new(1), slots: Mutex::default() }
    }

    /// A place for a new request under a fresh id, or the news that the connection is over.
    pub(crate) fn open(
        &self,
        progress: Option<mpsc::Sender<Progress>>,
        questions: Option<mpsc::Sender<Question>>,
        logs: Option<Logs>,
    ) -> Result<Ticket<'_>, RequestError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let shared = Arc::new(Shared::new());
        let slot = Slot { reply: sender, progress, questions, logs, shared: Arc::clone(&shared) };
        let mut slots = self.lock();
        if let Some(reason) = &slots.closed {
            return Err(RequestError::NotSent { server: self.server.clone(), detail: reason.clone() });
        }
        slots.open.insert(id, slot);
        Ok(Ticket { pending: self, id, reply: receiver, shared })
    }

    /// Gives a reply to the request that waits for it. False: nobody waits under this id.
    pub(crate) fn resolve(&self, id: u64, reply: Reply) -> bool {
        let slot = self.lock().open.remove(&id);
        slot.is_some_and(|slot| slot.reply.send(reply).is_ok())
    }

    /// Passes progress on and counts it as a sign of life. A caller that does not keep up loses
    /// steps, never the reply. False: nobody waits under this token.
    pub(crate) fn progress(&self, token: u64, params: Box<RawValue>) -> bool {
        let slots = self.lock();
        let Some(slot) = slots.open.get(&token) else {
            return false;
        };
        slot.shared.touch();
        if let Some(progress) = &slot.progress {
            let _ = progress.try_send(Progress { params });
        }
        true
    }

    /// The call that a question which came at `asked` belongs to, if that is certain.
    pub(crate) fn call_of(&self, asked: Asked) -> Result<(mpsc::Sender<Question>, Arc<Shared>), Unplaced> {
        let slots = self.lock();
        let call = |slot: &Slot| {
            let questions = slot.questions.clone().filter(|_| slot.shared.is_sent())?;
            Some((questions, Arc::clone(&slot.shared)))
        };
        if let Asked::Body(id) | Asked::Event(id) = asked {
            return slots.open.get(&id).and_then(call).ok_or(Unplaced::NoCall);
        }
        let mut calls = slots.open.values().filter_map(call);
        match (calls.next(), calls.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(Unplaced::NoCall),
            (Some(_), Some(_)) => Err(Unplaced::SeveralCalls),
        }
    }

    /// Passes a log message that came at `asked` to the call it belongs to, if that is certain and wanted.
    pub(crate) fn log(&self, asked: Asked, params: Box<RawValue>) {
        let slots = self.lock();
        let slot = match asked {
            Asked::Body(id) | Asked::Event(id) => slots.open.get(&id),
            Asked::Nobody => {
                let is_call = |slot: &&Slot| slot.questions.is_some() && slot.shared.is_sent();
                let mut calls = slots.open.values().filter(is_call);
                calls.next().filter(|_| calls.next().is_none())
            }
        };
        if let Some(logs) = slot.and_then(|slot| slot.logs.as_ref()) {
            logs.take(params);
        }
    }

    /// Whether the request still waits.
    pub(crate) fn waits(&self, id: u64) -> bool {
        self.lock().open.contains_key(&id)
    }

    /// The only request that waits, if it is just one.
    pub(crate) fn only(&self) -> Option<u64> {
        let slots = self.lock();
        let mut ids = slots.open.keys();
        match (ids.next(), ids.next()) {
            (Some(id), None) => Some(*id),
            _ => None,
        }
    }

    /// Ends every request for `reason` and takes no more. The first reason stays.
    pub(crate) fn close(&self, reason: &str) {
        let open = {
            let mut slots = self.lock();
            slots.closed.get_or_insert_with(|| reason.to_owned());
            std::mem::take(&mut slots.open)
        };
        for slot in open.into_values() {
            let error = self.lost(slot.shared.withdraw(), reason);
            let _ = slot.reply.send(Reply::Unusable { error, raw: None });
        }
    }

    /// Why the connection is over, if it is.
    pub(crate) fn closed(&self) -> Option<String> {
        self.lock().closed.clone()
    }

    fn lost(&self, sent: bool, reason: &str) -> RequestError {
        let (server, detail) = (self.server.clone(), reason.to_owned());
        if sent {
            RequestError::MayHaveRun { server, detail }
        } else {
            RequestError::NotSent { server, detail }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn new() -> Self {
        Self {
            stage: AtomicU8::new(QUEUED),
            started: Instant::now(),
            last_sign: AtomicU64::new(0),
            asking: AtomicUsize::new(0),
        }
    }

    /// To be called right before the first byte leaves. False: withdrawn, do not send.
    pub(crate) fn begin(&self) -> bool {
        let before = self.stage.compare_exchange(QUEUED, SENT, Ordering::AcqRel, Ordering::Acquire);
        before.is_ok_and(|_| true) || before == Err(SENT)
    }

    /// Takes back that anything was sent: the server certainly turned the request away.
    pub(crate) fn turned_away(&self) {
        self.stage.store(QUEUED, Ordering::Release);
    }

    fn is_sent(&self) -> bool {
        self.stage.load(Ordering::Acquire) == SENT
    }

    /// Stops the clock of the server's silence until what is returned is dropped.
    pub(crate) fn hold(shared: &Arc<Self>) -> Held {
        shared.asking.fetch_add(1, Ordering::AcqRel);
        Held(Arc::clone(shared))
    }

    /// Keeps an unsent request from being sent. True: too late, it had been sent.
    pub(crate) fn withdraw(&self) -> bool {
        let before = self.stage.compare_exchange(QUEUED, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire);
        before == Err(SENT)
    }

    /// A sign of life of the server for this request.
    pub(crate) fn touch(&self) {
        let elapsed = self.started.elapsed().as_millis();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        self.last_sign.fetch_max(elapsed, Ordering::Relaxed);
    }

    /// Resolves when `idle` has passed without a sign of life or `total` has passed in all, and
    /// says which (HT-23: signs extend the first, never the second).
    pub(crate) async fn expired(&self, idle: Duration, total: Duration) -> (&'static str, Duration) {
        loop {
            if self.asking.load(Ordering::Acquire) > 0 {
                self.touch();
            }
            let sign = Duration::from_millis(self.last_sign.load(Ordering::Relaxed));
            let idle_end = sign.saturating_add(idle);
            let end = idle_end.min(total);
            let elapsed = self.started.elapsed();
            if elapsed >= end {
                return if total <= idle_end { ("max_total", total) } else { ("call", idle) };
            }
            tokio::time::sleep(end.saturating_sub(elapsed)).await;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.touch();
        self.0.asking.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.pending.lock().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests;
