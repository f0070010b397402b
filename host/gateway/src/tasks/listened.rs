//! Clients that listen for their tasks: `taskIds` of `subscriptions/listen`, `notifications/tasks` to them.
//!
//! Contract: an id is taken for the caller it was given to and for nobody else, and each time the task
//! changes its state is judged again like a request for it; a denial ends the subscription. What is told is
//! the state as it is when it is told, so that changes which come together are one notification. Nothing
//! waits for a client that does not read. A client hears of the present state at once: what changed between
//! its call and its listening is not missed.
//!
//! Bounds: as many tasks as one client may be subscribed to resources; see [`crate::subscriptions`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::value::RawValue;
use toolgate_store::{AuditRow, Delivery, Event, TaskStatus};
use toolgate_wire::{ErrorObject, Id, Outcome, codes};

use super::requests::{described, shown_now, shown_of};
use super::wire;
use crate::Gateway;
use crate::caller::Caller;
use crate::subscriptions::{Inbox, Subscriber};

/// Who listens for which task.
#[derive(Default)]
pub(super) struct Listeners {
    of: Mutex<HashMap<String, Vec<Weak<Inbox>>>>,
}

impl Listeners {
    fn add(&self, id: &str, inbox: &Arc<Inbox>) {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let its = of.entry(id.to_owned()).or_default();
        its.retain(|other| other.strong_count() > 0 && !std::ptr::eq(other.as_ptr(), Arc::as_ptr(inbox)));
        its.push(Arc::downgrade(inbox));
    }

    /// Takes a client away from all tasks.
    pub(super) fn leave(&self, inbox: &Arc<Inbox>) {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.retain(|_, its| {
            its.retain(|other| other.strong_count() > 0 && !std::ptr::eq(other.as_ptr(), Arc::as_ptr(inbox)));
            !its.is_empty()
        });
    }

    /// How a task stands has changed.
    pub(super) fn tell(&self, id: &str) {
        let of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        for inbox in of.get(id).into_iter().flatten().filter_map(Weak::upgrade) {
            inbox.task_changed(id);
        }
    }
}

impl Gateway {
    /// A client that is gone listens for no task.
    pub(crate) fn leave_tasks(&self, inbox: &Arc<Inbox>) {
        self.tasks.shared.listeners.leave(inbox);
    }

    /// Has a client told of one of its tasks from now on, beginning with how it stands.
    ///
    /// # Errors
    /// What `tasks/get` would answer: the id is unknown to this caller, or the call that made the task would
    /// not pass any more.
    pub async fn listen_for_task(
        self: &Arc<Self>,
        caller: &Caller,
        request_id: &Id,
        id: &str,
        subscriber: &Subscriber,
    ) -> Result<(), ErrorObject> {
        let (task, _) = self.task_of(caller, request_id, id).await.map_err(as_error)?;
        subscriber.belongs_to(self);
        self.tasks.shared.listeners.add(&task.id, &subscriber.inbox);
        subscriber.inbox.task_changed(&task.id);
        Ok(())
    }

    /// How a task stands now that a client was told has changed: the parameters of `notifications/tasks`
    /// without the id of the subscription.
    ///
    /// # Errors
    /// As [`Self::listen_for_task`].
    pub async fn task_told(
        self: &Arc<Self>,
        caller: &Caller,
        request_id: &Id,
        id: &str,
    ) -> Result<Box<RawValue>, ErrorObject> {
        let (task, call) = self.task_of(caller, request_id, id).await.map_err(as_error)?;
        if let Some(entry) = self.tasks.find(&task.id) {
            return as_told(shown_now(&entry));
        }
        // It may have ended since it was looked up.
        let task = self.store.task(&task.id).ok().flatten().unwrap_or(task);
        if task.status == TaskStatus::Expired {
            let error = ErrorObject::new(codes::INVALID_PARAMS, super::requests::EXPIRED);
            let snapshot = wire::shown(&task.snapshot, &task.id, TaskStatus::Failed);
            return as_told(described(snapshot, Some(("/error", error.to_json()))));
        }
        // Its result goes with it. That it arrives is not known, and it can be asked for as before.
        let is_new = task.status.is_over() && task.delivery == Delivery::Pending;
        if is_new && self.store.deliver_task(&task.id).is_ok_and(|noted| noted) {
            let row = AuditRow::task(Event::McpTaskDelivered, &call, &task.id);
            self.store.append_detached(row.with("to", "subscription"));
        }
        as_told(shown_of(&task))
    }
}

fn as_told(outcome: Outcome) -> Result<Box<RawValue>, ErrorObject> {
    match outcome {
        Outcome::Result(state) => Ok(state),
        Outcome::Error(error) => Err(error),
    }
}

/// The error of a refusal: about a task it is never a result.
fn as_error(outcome: Outcome) -> ErrorObject {
    as_told(outcome).err().unwrap_or_else(|| ErrorObject::new(codes::INTERNAL_ERROR, "refused"))
}

#[cfg(test)]
mod tests;
