//! The port to what answers: exactly the part of the gateway that agents can reach.
//!
//! It is a trait so that the protocol can be tested without servers, plugins or a store, and so that
//! the list of things an agent can reach is short enough to read, and none of them an
//! operator's.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use toolgate_gateway::{Gateway, Lane};
use toolgate_wire::{ErrorObject, Id, ListKind, Outcome};

pub use toolgate_gateway::{
    Abilities, Call, Caller, Change, Client, Deed, DroppedReply, FalseClaim, Offers, Page, Progress,
    Subscriber, TaskVerb, Told,
};

/// What an agent can reach.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// One page of what this caller may see of a kind. The cursor is one this method gave before.
    async fn list(&self, caller: &Caller, kind: ListKind, cursor: Option<&str>) -> Result<Page, ErrorObject>;
    /// Runs one request to its end: a call, a read, a prompt, a completion. Refusals of calls come back
    /// as results; the outcome has no era's envelope.
    async fn forward(&self, caller: &Caller, deed: Deed, call: Call) -> Outcome;
    /// Gives up what `params.uri` names.
    async fn unsubscribe(&self, caller: &Caller, subscriber: &Subscriber, params: &RawValue) -> Outcome;
    /// Does what a client asks of one of its tasks (`tasks/get`, `tasks/update`, `tasks/cancel`).
    async fn task(&self, caller: &Caller, verb: TaskVerb, request_id: &Id, params: &RawValue) -> Outcome;
    /// Has a client told of one of its tasks from now on, beginning with how it stands.
    async fn listen_for_task(
        &self,
        caller: &Caller,
        request_id: &Id,
        id: &str,
        subscriber: &Subscriber,
    ) -> Result<(), ErrorObject>;
    /// How a task stands that a client is to be told of. The error ends the subscription.
    async fn task_told(
        &self,
        caller: &Caller,
        request_id: &Id,
        id: &str,
    ) -> Result<Box<RawValue>, ErrorObject>;
    /// What the servers of this caller can do.
    async fn offers(&self, caller: &Caller) -> Offers;
    /// Text for the model about the servers of this caller.
    async fn instructions(&self, caller: &Caller) -> Option<String>;
    /// Whether the configuration has this persona: a token may be older than that.
    fn has_persona(&self, persona: &str) -> bool;
    /// Whether a server exists for this persona in this lane. What exists for others is not told apart from
    /// what does not exist at all.
    fn has_server(&self, persona: &str, lane: Lane, server: &str) -> bool;
    /// A reply was dropped because its client does not read; it is written down.
    fn note_dropped(&self, dropped: DroppedReply);
    /// A client claimed to be somebody else and is refused; it is written down.
    fn note_false_claim(&self, claim: FalseClaim);
    /// A session has ended: what was opened for it alone may be closed.
    fn end_session(&self, session: &str);
    /// Gives up connections that are still being opened, and opens no more: the service ends.
    fn stop_opening(&self);
    /// Waits until what happened so far is in the log.
    async fn settle(&self);
    /// Tells of every change of what callers see. A receiver that lags has missed changes, not facts.
    fn changes(&self) -> broadcast::Receiver<Change>;
}

/// The gateway itself, as it is shared between front doors.
#[async_trait]
impl Backend for Arc<Gateway> {
    async fn list(&self, caller: &Caller, kind: ListKind, cursor: Option<&str>) -> Result<Page, ErrorObject> {
        Gateway::list(self, caller, kind, cursor).await
    }

    async fn forward(&self, caller: &Caller, deed: Deed, call: Call) -> Outcome {
        Gateway::forward(self, caller, deed, call).await
    }

    async fn unsubscribe(&self, caller: &Caller, subscriber: &Subscriber, params: &RawValue) -> Outcome {
        Gateway::unsubscribe(self, caller, subscriber, params).await
    }

    async fn task(&self, caller: &Caller, verb: TaskVerb, request_id: &Id, params: &RawValue) -> Outcome {
        Gateway::task(self, caller, verb, request_id, params).await
    }

    async fn listen_for_task(
        &self,
        caller: &Caller,
        request_id: &Id,
        id: &str,
        subscriber: &Subscriber,
    ) -> Result<(), ErrorObject> {
        Gateway::listen_for_task(self, caller, request_id, id, subscriber).await
    }

    async fn task_told(
        &self,
        caller: &Caller,
        request_id: &Id,
        id: &str,
    ) -> Result<Box<RawValue>, ErrorObject> {
        Gateway::task_told(self, caller, request_id, id).await
    }

    async fn offers(&self, caller: &Caller) -> Offers {
        Gateway::offers(self, caller).await
    }

    async fn instructions(&self, caller: &Caller) -> Option<String> {
        Gateway::instructions(self, caller)
    }

    fn has_persona(&self, persona: &str) -> bool {
        self.config().personas.contains_key(persona)
    }

    fn has_server(&self, persona: &str, lane: Lane, server: &str) -> bool {
        Gateway::has_server(self, persona, lane, server)
    }

    fn note_dropped(&self, dropped: DroppedReply) {
        Gateway::note_dropped(self, dropped);
    }

    fn note_false_claim(&self, claim: FalseClaim) {
        Gateway::note_false_claim(self, claim);
    }

    fn end_session(&self, session: &str) {
        Gateway::end_session(self, session);
    }

    fn stop_opening(&self) {
        Gateway::stop_opening(self);
    }

    async fn settle(&self) {
        Gateway::flush_log(self).await;
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        Gateway::changes(self)
    }
}
