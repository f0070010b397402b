//! `subscriptions/listen` of the stateless era: what a client is told as long as the request stands.
//!
//! **Contract.** The acknowledgement names what is accepted: the kinds of lists that the caller's servers
//! have, and the resources of which each was judged, and taken by its server, like a request of its own.
//! What is left out stands with its reason beside it (`_meta["toolgate/refused"]`). A resource for which
//! a person has to be asked is left out as well: its reason names the ask, and the client listens again.
//! Nothing is told that was not accepted. The request ends with a result when this side closes, and with
//! an error when a subscription ended for another reason; the client listens again for the rest.
//!
//! Tasks are told of as they stand when they are told, each judged like `tasks/get`; a denial ends the
//! request as well.
//!
//! **Bounds.** As many resources as one client may be subscribed to, and as many tasks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_wire::envelope::Era;
use toolgate_wire::{ErrorObject, Id, Outcome};

use crate::backend::{Backend, Call, Caller, Client, Deed, Subscriber, Told};
use crate::changes::ListChanges;
use crate::modern::{self, Filter};
use crate::reply;

/// A subscription that stands.
pub(crate) struct Listening {
    id: Id,
    filter: Filter,
    subscriber: Arc<Subscriber>,
    changes: ListChanges,
    ending: Option<ErrorObject>,
    /// Tasks that are still to be told of.
    tasks: VecDeque<String>,
    backend: Arc<dyn Backend>,
    caller: Caller,
}

/// What comes next of it.
pub(crate) enum Step {
    /// Messages for the client.
    Tell(Vec<String>),
    /// Its reply.
    End(Outcome),
}

impl Listening {
    /// Makes one, and its first message. `wanted` is what the client asked for.
    pub(crate) async fn open(
        backend: &Arc<dyn Backend>,
        caller: &Caller,
        id: &Id,
        mut wanted: Filter,
        cancel: &CancellationToken,
    ) -> (Self, String) {
        let changes = ListChanges::new(backend.changes());
        let subscriber = Subscriber::new();
        let offers = backend.offers(caller).await;
        wanted.narrow(offers);
        let asked = wanted.uris.iter().map(|uri| {
            let call = Call {
                request_id: id.clone(),
                params: params_of(uri),
                progress: None,
                logs: None,
                cancel: cancel.clone(),
                timeout: None,
                param_headers: None,
                hold: Duration::ZERO,
                client: Client::silent(),
                subscriber: Some(Arc::clone(&subscriber)),
            };
            backend.forward(caller, Deed::Subscribe, call)
        });
        let answers = join_all(asked).await;
        let mut refused = serde_json::Map::new();
        let mut accepted = Vec::new();
        for (uri, answer) in std::mem::take(&mut wanted.uris).into_iter().zip(answers) {
            match answer {
                Outcome::Result(_) => accepted.push(uri),
                Outcome::Error(error) => drop(refused.insert(uri, json!(error.message))),
            }
        }
        wanted.uris = accepted;
        let mut accepted = Vec::new();
        for task in std::mem::take(&mut wanted.tasks) {
            match backend.listen_for_task(caller, id, &task, &subscriber).await {
                Ok(()) => accepted.push(task),
                Err(error) => drop(refused.insert(task, json!(error.message))),
            }
        }
        wanted.tasks = accepted;
        let first = modern::acknowledged(id, &wanted, &refused);
        let listening = Self {
            id: id.clone(),
            filter: wanted,
            subscriber,
            changes,
            ending: None,
            tasks: VecDeque::new(),
            backend: Arc::clone(backend),
            caller: caller.clone(),
        };
        (listening, first)
    }

    /// Resolves with something to send. A future that is dropped loses nothing.
    pub(crate) async fn next(&mut self) -> Step {
        if let Some(error) = self.ending.take() {
            return Step::End(Outcome::Error(error));
        }
        if let Some(task) = self.tasks.front() {
            let state = self.backend.task_told(&self.caller, &self.id, task).await;
            self.tasks.pop_front();
            return match state {
                Ok(state) => Step::Tell(vec![modern::task_changed(&self.id, &state)]),
                Err(error) => Step::End(Outcome::Error(error)),
            };
        }
        tokio::select! {
            kinds = self.changes.next() => match kinds {
                None => Step::End(self.end()),
                Some(kinds) => {
                    let wanted = kinds.into_iter().filter(|kind| self.filter.wants(*kind));
                    Step::Tell(wanted.map(|kind| modern::list_changed(&self.id, kind)).collect())
                }
            },
            told = self.subscriber.next() => {
                let mut messages = Vec::new();
                for told in told {
                    match told {
                        Told::Updated(uri) => messages.push(modern::resource_updated(&self.id, &uri)),
                        Told::Task(id) => self.tasks.push_back(id),
                        Told::Ended { error, .. } => drop(self.ending.get_or_insert(error)),
                    }
                }
                Step::Tell(messages)
            }
        }
    }

    /// The reply when this side closes.
    pub(crate) fn end(&self) -> Outcome {
        self.subscriber.end();
        match modern::listen_result(&self.id) {
            Ok(result) => reply::dress(Era::Modern, Outcome::Result(result)),
            Err(error) => Outcome::Error(error),
        }
    }
}

/// What a client of the initialize era is sent of what its subscriber was told. That era has no word for
/// the end of a subscription: the client is told to read again, and the read says what is wrong.
pub(crate) fn legacy_messages(told: Vec<Told>) -> Vec<String> {
    let uris = told.into_iter().filter_map(|told| match told {
        Told::Updated(uri) => Some(uri),
        Told::Ended { uri, error } => {
            tracing::warn!(uri, error = error.message, "a subscription of a client ended");
            Some(uri)
        }
        // That era has no word for it, and nobody of it listens for one.
        Told::Task(_) => None,
    });
    uris.map(|uri| {
        reply::notification("notifications/resources/updated", Some(&json!({ "uri": uri }).to_string()))
    })
    .collect()
}

fn params_of(uri: &str) -> Box<RawValue> {
    let text = json!({ "uri": uri }).to_string();
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
