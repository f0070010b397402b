//! What a client is told without having asked for each: changes of lists and of resources.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_wire::{Id, Outcome};

use super::Session;
use crate::backend::{Caller, Offers};
use crate::changes::ListChanges;
use crate::listening::{self, Listening, Step};
use crate::{legacy, modern};

impl Session {
    /// Starts telling the client of changes, once.
    pub(super) fn announce(self: &Arc<Self>) {
        if self.version().is_none() || self.announcing.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut changes = ListChanges::new(self.backend.changes());
        let session = Arc::clone(self);
        self.tasks.spawn(async move {
            loop {
                let messages = tokio::select! {
                    () = session.streams.cancelled() => return,
                    kinds = changes.next() => match kinds {
                        Some(kinds) => legacy::list_changed(kinds, session.offers()),
                        None => return,
                    },
                    told = session.subscriber.next() => listening::legacy_messages(told),
                };
                for message in messages {
                    session.writer.send(message).await;
                }
            }
        });
    }

    /// A subscription of the modern era. It ends with a result when this side closes, and silently when
    /// the client cancels it.
    pub(super) async fn listen(
        &self,
        caller: &Caller,
        id: &Id,
        params: Option<&RawValue>,
        cancel: &CancellationToken,
    ) -> Outcome {
        let filter = match modern::filter(params) {
            Ok(filter) => filter,
            Err(error) => return Outcome::Error(error),
        };
        let (mut listening, first) = Listening::open(&self.backend, caller, id, filter, cancel).await;
        if !cancel.is_cancelled() {
            self.writer.send(first).await;
        }
        loop {
            let step = tokio::select! {
                () = self.streams.cancelled() => return listening.end(),
                () = cancel.cancelled() => return listening.end(),
                step = listening.next() => step,
            };
            match step {
                Step::End(outcome) => return outcome,
                Step::Tell(messages) => {
                    for message in messages {
                        self.writer.send(message).await;
                    }
                }
            }
        }
    }

    /// What was declared to the client.
    fn offers(&self) -> Offers {
        *self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
