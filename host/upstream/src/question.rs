//! What a legacy server asks in the middle of a call, and the way its answer takes back.
//!
//! Contract: a question is handed to exactly one running call, or to nobody. On a response stream it
//! belongs to the request that the stream answers; on a pipe or a standing stream only a single running
//! call makes that certain, and where two could be meant nothing is guessed (design.md 3.2). Each
//! question is answered once: a [`Question`] that is dropped answers with an error, so that a server
//! never waits for ever. One that the server takes back is not answered.
//!
//! Bounds: [`MAX_OPEN`] questions of one connection at a time.
//!
//! Threat: the server chooses ids, methods and times. Ids meet nobody else's; a flood meets the bound.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_wire::{ErrorObject, Id, Message, Outcome, Request, Response, codes, edit};

use crate::pending::{Held, Shared};

/// Questions of one connection that may be open at a time.
const MAX_OPEN: usize = 64;

/// The methods that ask something of a client or its person. Nothing else is handed on.
pub(crate) const METHODS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

/// Takes an answer, one line, and never waits.
pub(crate) type Outlet = Box<dyn Fn(String) + Send + Sync>;

/// One request of the server's own that belongs to a call.
#[derive(Debug)]
pub struct Question {
    /// One of `elicitation/create`, `sampling/createMessage`, `roots/list`.
    pub method: String,
    /// Its parameters as the server wrote them; an empty object where there were none.
    pub params: Box<RawValue>,
    answering: Answering,
}

/// Why a question belongs to no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplaced {
    /// Nothing runs that it could be about.
    NoCall,
    /// Several calls run, and nothing says which of them it is about.
    SeveralCalls,
    /// Too many questions are open.
    TooMany,
}

impl Unplaced {
    /// The reason in words, for the server and for the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoCall => "no call is running that it could belong to",
            Self::SeveralCalls => "it fits more than one running call, and none is guessed",
            Self::TooMany => "too many questions of this server are open",
        }
    }
}

impl Question {
    /// Fires when the server no longer wants the answer, or the connection is over.
    pub fn withdrawn(&self) -> CancellationToken {
        self.answering.withdrawn.clone()
    }

    /// Sends the answer.
    pub fn answer(mut self, outcome: Outcome) {
        self.answering.send(outcome);
    }
}

/// The right to answer one question.
struct Answering {
    questions: Arc<Questions>,
    id: Id,
    withdrawn: CancellationToken,
    open: bool,
    /// While a person thinks, the silence of the server is no silence.
    _held: Held,
}

impl Answering {
    fn send(&mut self, outcome: Outcome) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let wanted = self.questions.close(&self.id, &self.withdrawn);
        if wanted && let Some(outlet) = self.questions.outlet.get() {
            outlet(Message::Response(Response { id: Some(self.id.clone()), outcome }).to_text());
        }
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Answering").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let text = "the call that this belonged to has ended, and nobody answered";
        self.send(Outcome::Error(ErrorObject::new(codes::INTERNAL_ERROR, text)));
    }
}

/// The open questions of one connection and the way for their answers.
#[derive(Default)]
pub(crate) struct Questions {
    outlet: OnceLock<Outlet>,
    open: Mutex<HashMap<Id, CancellationToken>>,
}

impl Questions {
    /// Where answers go; set once by the transport.
    pub(crate) fn set_outlet(&self, outlet: Outlet) {
        let _ = self.outlet.set(outlet);
    }

    /// A question for the call behind `shared`; `None` where too many are open, or the id is in use.
    pub(crate) fn begin(self: &Arc<Self>, request: Request, shared: &Arc<Shared>) -> Option<Question> {
        let withdrawn = CancellationToken::new();
        {
            let mut open = self.lock();
            if open.len() >= MAX_OPEN || open.contains_key(&request.id) {
                return None;
            }
            open.insert(request.id.clone(), withdrawn.clone());
        }
        let answering = Answering {
            questions: Arc::clone(self),
            id: request.id,
            withdrawn,
            open: true,
            _held: Shared::hold(shared),
        };
        let params = request.params.or_else(|| edit::raw("{}".to_owned()).ok())?;
        Some(Question { method: request.method, params, answering })
    }

    /// The server no longer wants an answer.
    pub(crate) fn withdraw(&self, id: &Id) {
        if let Some(withdrawn) = self.lock().remove(id) {
            withdrawn.cancel();
        }
    }

    /// Whether the question was still open. An id may be used again, so the token must be its own.
    fn close(&self, id: &Id, withdrawn: &CancellationToken) -> bool {
        if withdrawn.is_cancelled() {
            return false;
        }
        self.lock().remove(id).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Questions").field("open", &self.lock().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
