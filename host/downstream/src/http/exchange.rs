//! One request on its connection: answered as JSON if it is quick and quiet, as a stream otherwise.
//!
//! **Contract.** The form is chosen when it must be: at the first step of progress, or when the call has
//! lasted `stream_after`. Until then nothing is sent, so that a quick error keeps its own status. The
//! request runs in a task of its own; a client that closes its connection cancels it through the guard,
//! and the backend still finishes its bookkeeping.
//!
//! The same holds for the initialize era, where the specification would let a call go on after its
//! connection broke: no events are kept for a later connection, so nobody could ever read the reply, and
//! a call that waits for a person must not run for a caller that has gone.

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_wire::envelope::Era;

use super::Shared;
use super::answer::{self, Reply};
use super::body::Accepts;
use super::sessions::Session;
use super::share::Share;
use super::stream::{self, Item};
use crate::asking::{Outlet, SessionAsker};
use crate::backend::{Client, DroppedReply};
use crate::call::Asked;
use crate::running::Ticket;
use crate::unread::{Lost, Waiting, Waits};
use crate::{call, reply};

/// The place that a running request takes, by which it is also cancelled.
pub(super) enum Hold {
    /// Among those of its session.
    Session(Ticket),
    /// Among those of its token; only its connection cancels it.
    Alone(Share),
}

/// What a running request has to tell.
enum Event {
    Step(Waiting),
    /// The reply and its status; no reply if the request was cancelled.
    Done(StatusCode, Option<Waiting>),
}

/// Runs a request and answers it in a form its client reads.
///
/// `session` is that of a legacy request, whose client can be asked on the stream.
pub(super) async fn run(
    shared: &Arc<Shared>,
    mut asked: Asked,
    accepts: Accepts,
    hold: Hold,
    session: Option<&Session>,
) -> Reply {
    let waits = shared.options.unread.client_named(&asked.caller.credential);
    if waits.is_crowded() {
        return answer::too_many(&waits.crowded_text());
    }
    let cancel = hold.cancelled(shared);
    let guard = cancel.clone().drop_guard();
    let (events, mut told) = mpsc::channel(stream::QUEUE);
    // A question is an event before the reply, which only a stream can hold.
    if let Some(session) = session.filter(|_| accepts.events) {
        asked.client = client_of(session, &events, &waits);
    }
    shared.tasks.spawn(work(Arc::clone(shared), asked, cancel, hold, (events, waits)));
    let patience = tokio::time::sleep(shared.options.stream_after);
    tokio::pin!(patience);
    loop {
        tokio::select! {
            biased;
            event = told.recv() => match event {
                Some(Event::Step(step)) if accepts.events => {
                    return as_stream(shared, Some(Item::Message(step)), told, guard);
                }
                Some(Event::Step(_)) => {}
                Some(Event::Done(status, reply)) => return at_once(status, reply, accepts),
                None => return fault(),
            },
            () = &mut patience, if accepts.events => return as_stream(shared, None, told, guard),
        }
    }
}

/// Runs a request without anybody to tell its steps to; `None` if it was cancelled.
pub(super) async fn run_quietly(shared: &Arc<Shared>, asked: Asked, ticket: Ticket) -> Option<Waiting> {
    let waits = shared.options.unread.client_named(&asked.caller.credential);
    let hold = Hold::Session(ticket);
    let cancel = hold.cancelled(shared);
    let _guard = cancel.clone().drop_guard();
    let (events, mut told) = mpsc::channel(stream::QUEUE);
    shared.tasks.spawn(work(Arc::clone(shared), asked, cancel, hold, (events, waits)));
    loop {
        match told.recv().await? {
            Event::Step(_) => {}
            Event::Done(_, reply) => return reply,
        }
    }
}

/// A finished reply in the form its client reads.
pub(super) fn at_once(status: StatusCode, reply: Option<Waiting>, accepts: Accepts) -> Reply {
    match reply {
        Some(text) if accepts.json => answer::json(status, text),
        None if !accepts.events => answer::empty(StatusCode::NO_CONTENT),
        reply => answer::events(stream::single(reply)),
    }
}

impl Hold {
    fn cancelled(&self, shared: &Shared) -> CancellationToken {
        match self {
            Self::Session(ticket) => ticket.cancelled().clone(),
            Self::Alone(_) => shared.calls.child_token(),
        }
    }

    /// Ends the request. True if it may be answered, false if it was cancelled before.
    fn finish(self) -> bool {
        match self {
            Self::Session(ticket) => ticket.finish(),
            Self::Alone(share) => {
                drop(share);
                true
            }
        }
    }
}

async fn work(
    shared: Arc<Shared>,
    asked: Asked,
    cancel: CancellationToken,
    hold: Hold,
    (events, waits): (mpsc::Sender<Event>, Arc<Waits>),
) {
    let (id, era) = (asked.request.id.clone(), asked.caller.era);
    let (credential, persona) = (asked.caller.credential.clone(), asked.caller.persona.clone());
    let backend = Arc::clone(&shared.backend);
    // Progress may be lost, so it never waits for a client that reads slowly.
    let progress = |step: String| {
        if let Some(step) = waits.may_lose(step) {
            drop(events.try_send(Event::Step(step)));
        }
    };
    let outcome = call::respond(&shared.backend, asked, &cancel, &progress).await;
    let status = if era == Era::Modern { answer::modern_status(&outcome) } else { StatusCode::OK };
    let wanted = hold.finish();
    let mut note = |Lost { id, bytes, limit }: Lost| {
        let (credential, persona) = (credential.clone(), persona.clone());
        backend.note_dropped(DroppedReply { credential, persona, request_id: id, bytes, limit });
    };
    let text = wanted.then(|| reply::response(Some(&id), outcome));
    let text = text.and_then(|text| waits.reply(text, &mut note));
    drop(events.send(Event::Done(status, text)).await);
}

/// The client of a session, asked on the stream of the request at hand: that one is open, and whoever
/// reads it is the one who waits.
fn client_of(session: &Session, events: &mpsc::Sender<Event>, waits: &Arc<Waits>) -> Client {
    let (events, waits) = (events.clone(), Arc::clone(waits));
    let outlet: Outlet = Arc::new(move |text| {
        let (events, text) = (events.clone(), waits.may_lose(text));
        Box::pin(async move {
            match text {
                Some(text) => events.send(Event::Step(text)).await.is_ok(),
                None => false,
            }
        })
    });
    let asker = SessionAsker::new(Arc::clone(&session.asking), outlet);
    Client::session(session.abilities, asker)
}

fn as_stream(shared: &Shared, first: Option<Item>, told: mpsc::Receiver<Event>, guard: DropGuard) -> Reply {
    let (items, queue) = mpsc::channel(stream::QUEUE);
    shared.tasks.spawn(forward(told, items));
    answer::events(stream::body(first, queue, shared.options.keep_alive, Some(guard)))
}

async fn forward(mut told: mpsc::Receiver<Event>, items: mpsc::Sender<Item>) {
    while let Some(event) = told.recv().await {
        let item = match event {
            Event::Step(step) => Item::Message(step),
            Event::Done(_, reply) => Item::Last(reply),
        };
        if items.send(item).await.is_err() {
            return;
        }
    }
}

/// The task that should have answered is gone, which only a defect of ours explains.
fn fault() -> Reply {
    let error = reply::internal("a request ended without an answer");
    answer::error(StatusCode::INTERNAL_SERVER_ERROR, None, error)
}
