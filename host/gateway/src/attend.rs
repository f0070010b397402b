//! A call of a client of the stateless era that is asked something while it runs.
//!
//! Contract: the call runs in a task of its own. Whoever waits for it gets its outcome, or its questions
//! as a result of the kind `input_required`; then the call is parked, still running at its server, until
//! the client repeats the request with the answers and the state it was given. A state opens one parked
//! call, once, for the caller and the request it was made for, before it expires; each refusal says which
//! of these was not so. The call is sent to its server once, however often its client repeats it.
//! A client that gives up its request, or does not come back, has its questions cancelled.
//!
//! A client may know what it will be asked and send the answers along unasked. They count for what the
//! server asks first, each for the question of its key, after that question was judged like any other;
//! what fits no question is ignored (spec 2026-07-28, multi-round-trip requests).
//!
//! Bounds: [`MAX_PARKED`] calls, [`MAX_OF_CALLER`] of one caller, each until the time for its questions
//! is over.
//!
//! Threat: the state travels through the client, which may alter it, keep it, hand it to somebody else,
//! use it twice or for another request. Nothing of the call stands in it but a name, and a parked call is
//! looked up only after the seal held. An answer that was sent along cannot confirm what a person must see
//! first: questions of Toolgate's own have keys that it does not reach.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_signing::{Digest, canonical_json};
use toolgate_store::{AuditRow, Deed};
use toolgate_upstream::Progress;
use toolgate_wire::{Outcome, edit};

use crate::Gateway;
use crate::ask::round::Round;
use crate::ask::seal;
use crate::call::Call;
use crate::caller::Caller;
use crate::forward::{Path, Stop};
use crate::reply::{self, ErrorCode, ErrorDetails};
use crate::{deeds, notes, rewrite};

/// Parked calls at a time, and those of one caller.
const MAX_PARKED: usize = 1_024;
const MAX_OF_CALLER: usize = 16;
/// Turns and steps of one call that may wait to be taken.
const QUEUE: usize = 32;
/// Keys of questions that Toolgate asks itself begin so.
const OWN_KEYS: &str = "toolgate_";
/// How long a call whose questions were cancelled may take to end by itself before it is given up.
const GRACE: Duration = Duration::from_secs(2);

/// One question on its way to the client.
pub(crate) struct Open {
    /// Its key in `inputRequests`.
    pub(crate) key: String,
    pub(crate) method: &'static str,
    pub(crate) params: Box<RawValue>,
    /// Takes the answer; dropped where none will come.
    pub(crate) reply: oneshot::Sender<Outcome>,
}

/// Questions that are asked together.
pub(crate) struct Turn {
    pub(crate) open: Vec<Open>,
    /// How long they may take.
    pub(crate) within: Duration,
}

/// Whose request it is, and which: what a state is bound to.
#[derive(Clone)]
struct Bound {
    caller: String,
    session: String,
    deed: Deed,
    request: Digest,
}

/// A call that runs on its own.
struct Running {
    turns: mpsc::Receiver<Turn>,
    steps: mpsc::Receiver<Progress>,
    done: JoinHandle<Outcome>,
    cancel: CancellationToken,
    /// Answers that came with the request; they are spent with the first questions.
    offered: Option<String>,
    /// Whoever drops this gives the call up.
    _alive: DropGuard,
}

struct Parked {
    bound: Bound,
    open: Vec<Open>,
    until: Instant,
    running: Running,
}

/// All parked calls.
#[derive(Default)]
pub(crate) struct Parks(Mutex<HashMap<String, Parked>>);

impl Parks {
    /// Gives the calls of one session up.
    pub(crate) fn end_session(&self, session: &str) {
        // What is dropped here may run code of its own, so not under the lock.
        let ended: Vec<Parked> =
            self.lock().extract_if(|_, parked| parked.bound.session == session).map(|(_, it)| it).collect();
        drop(ended);
    }

    /// Keeps a call; `Err` gives it back where there is no room.
    fn park(&self, id: String, parked: Parked) -> Result<(), Box<Parked>> {
        let mut all = self.lock();
        let own = all.values().filter(|other| other.bound.caller == parked.bound.caller).count();
        if all.len() >= MAX_PARKED || own >= MAX_OF_CALLER {
            return Err(Box::new(parked));
        }
        all.insert(id, parked);
        Ok(())
    }

    /// Takes a call out for exactly this request.
    fn take(&self, id: &str, bound: &Bound) -> Result<Parked, &'static str> {
        let mut all = self.lock();
        let parked = all.get(id).ok_or("it was used already, or its call has ended")?;
        if parked.bound.request != bound.request {
            return Err("it answers a question about another request; repeat that one");
        }
        all.remove(id).ok_or("it was used already, or its call has ended")
    }

    fn drop(&self, id: &str) {
        let parked = self.lock().remove(id);
        drop(parked);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Runs a call that may be asked something, until its outcome or its first questions.
    pub(crate) async fn attend(
        self: &Arc<Self>,
        mut path: Path,
        mut call: Call,
        offered: Option<String>,
    ) -> Outcome {
        let bound = match Bound::of(&path.caller, path.deed, &call.params) {
            Ok(bound) => bound,
            Err(text) => return Outcome::Error(reply::invalid_params(text)),
        };
        let cancel = CancellationToken::new();
        let (turn, turns) = mpsc::channel(QUEUE);
        let (step, steps) = mpsc::channel(QUEUE);
        let client_cancel = std::mem::replace(&mut call.cancel, cancel.clone());
        let progress = call.progress.take();
        call.progress = progress.is_some().then_some(step);
        path.waiting.cancel = cancel.clone();
        path.waiting.progress.clone_from(&call.progress);
        path.waiting.turns = Some(turn);
        let done = tokio::spawn(async move {
            match path.run(call).await {
                Ok(outcome) | Err(Stop(outcome)) => outcome,
            }
        });
        let alive = cancel.clone().drop_guard();
        let running = Running { turns, steps, done, cancel, offered, _alive: alive };
        self.follow(running, bound, &client_cancel, progress.as_ref()).await
    }

    /// Takes up a parked call with the answers that came along.
    pub(crate) async fn resume(
        self: &Arc<Self>,
        caller: &Caller,
        deed: Deed,
        call: Call,
        round: Round,
    ) -> Outcome {
        let found = Bound::of(caller, deed, &call.params).and_then(|bound| {
            let id = self.seal.check(&round.state, &bound.caller, seal::now_ms())?;
            self.parks.take(&id, &bound).map_err(str::to_owned)
        });
        let mut parked = match found {
            Ok(parked) => parked,
            Err(reason) => return self.refuse_state(caller, deed, &call, &reason).await,
        };
        // What has no answer is asked again, as the specification has it.
        let left = answered(parked.open, |key| round.responses.as_deref().and_then(|all| member(all, key)));
        if !left.is_empty() {
            parked.open = left;
            return self.park(parked);
        }
        self.follow(parked.running, parked.bound, &call.cancel, call.progress.as_ref()).await
    }

    /// Waits for a call, as long as its client does.
    async fn follow(
        self: &Arc<Self>,
        mut running: Running,
        bound: Bound,
        client_cancel: &CancellationToken,
        progress: Option<&mpsc::Sender<Progress>>,
    ) -> Outcome {
        let tell = |step| drop(progress.map(|progress| progress.try_send(step)));
        loop {
            tokio::select! {
                biased;
                Some(step) = running.steps.recv() => tell(step),
                outcome = &mut running.done => {
                    while let Ok(step) = running.steps.try_recv() {
                        tell(step);
                    }
                    return outcome.unwrap_or_else(|error| ended(bound.deed, &error));
                }
                Some(turn) = running.turns.recv() => {
                    let mut open = turn.open;
                    while let Ok(more) = running.turns.try_recv() {
                        open.extend(more.open);
                    }
                    if let Some(offered) = running.offered.take() {
                        open = answered(open, |key| offered_for(&offered, key));
                        if open.is_empty() {
                            continue;
                        }
                    }
                    let until = Instant::now() + turn.within;
                    return self.park(Parked { bound, open, until, running });
                }
                () = client_cancel.cancelled() => {
                    running.cancel.cancel();
                    return (&mut running.done).await.unwrap_or_else(|error| ended(bound.deed, &error));
                }
            }
        }
    }

    /// Parks a call and asks its client by the result.
    fn park(self: &Arc<Self>, parked: Parked) -> Outcome {
        let id = seal::parked_id();
        let within = parked.until.saturating_duration_since(Instant::now());
        let until = seal::now_ms().saturating_add(i64::try_from(within.as_millis()).unwrap_or(i64::MAX));
        let state = self.seal.make(&id, &parked.bound.caller, until);
        let requests: Map<String, Value> = parked
            .open
            .iter()
            .map(|open| (open.key.clone(), json!({ "method": open.method, "params": open.params })))
            .collect();
        let deed = parked.bound.deed;
        if self.parks.park(id.clone(), parked).is_err() {
            // Dropped by now: its server is told that nobody answers, and its caller why.
            let text = format!(
                "its server asks a question, and {MAX_OF_CALLER} requests of this client wait for answers already, so it \
                 was given up; it may have run. Answer the others first."
            );
            return reply::refuse(deed, ErrorCode::TooManyAsks, &text, &ErrorDetails::default());
        }
        let gateway = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(within + GRACE).await;
            if let Some(gateway) = gateway.upgrade() {
                gateway.parks.drop(&id);
            }
        });
        let result =
            json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state });
        match edit::raw(result.to_string()) {
            Ok(result) => Outcome::Result(result),
            Err(error) => Outcome::Error(reply::invalid_params(error.to_string())),
        }
    }

    /// A refusal of a state leaves a row: it may be an attempt.
    async fn refuse_state(&self, caller: &Caller, deed: Deed, call: &Call, reason: &str) -> Outcome {
        let params = call.params.get();
        let name = edit::get(params, rewrite::subject_pointer(deed, params)).and_then(edit::string);
        let facts =
            notes::lost_call(caller, deed, name.as_deref().unwrap_or_default(), None, &call.request_id);
        self.note_refusal(AuditRow::denied(&facts, "request_state", None, reason)).await;
        let text =
            format!("params.requestState is not accepted: {reason}. Nothing was sent for this request.");
        Outcome::Error(reply::invalid_params(text))
    }
}

impl Bound {
    /// Bound are the caller with its session, the deed, and what is asked, in canonical form: a client may
    /// write its request anew, but not another one.
    fn of(caller: &Caller, deed: Deed, params: &RawValue) -> Result<Self, String> {
        let own = if edit::get(params.get(), "/_meta").is_some() {
            edit::drop_all(params.get(), &["/_meta"]).map_err(|error| error.to_string())?
        } else {
            params.get().to_owned()
        };
        let canonical = canonical_json(&own).map_err(|error| error.to_string())?;
        let parts: [&[u8]; 3] = [deeds::method(deed).as_bytes(), b"\n", canonical.as_bytes()];
        Ok(Self {
            caller: caller.sealed_for(),
            session: caller.session.clone(),
            deed,
            request: Digest::of_parts(&parts),
        })
    }
}

/// Answers what has an answer, and gives back the rest.
fn answered<'a>(open: Vec<Open>, answer: impl Fn(&str) -> Option<&'a str>) -> Vec<Open> {
    let mut left = Vec::new();
    for open in open {
        match answer(&open.key).and_then(|answer| edit::raw(answer.to_owned()).ok()) {
            Some(answer) => drop(open.reply.send(Outcome::Result(answer))),
            None => left.push(open),
        }
    }
    left
}

fn member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    edit::get(object, &format!("/{}", key.replace('~', "~0").replace('/', "~1")))
}

/// The answer that was sent along for a server's question; one that cannot be an answer is none.
fn offered_for<'a>(offered: &'a str, key: &str) -> Option<&'a str> {
    let answer = member(offered, key).filter(|_| !key.starts_with(OWN_KEYS))?;
    answer.starts_with('{').then_some(answer)
}

/// The task of a call is gone, which only a defect of ours, or the end of the process, explains.
fn ended(deed: Deed, error: &tokio::task::JoinError) -> Outcome {
    tracing::error!(%error, "a call ended without an outcome");
    let text = "the call ended inside Toolgate; it may have run";
    reply::refuse(deed, ErrorCode::Internal, text, &ErrorDetails::default())
}
