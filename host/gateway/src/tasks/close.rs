//! The end of a task: judged like any result, handed to whoever waits, or kept.

use std::sync::Arc;

use toolgate_store::{AuditRow, Delivery, Event, TaskStatus, TaskUpdate};
use toolgate_wire::{ErrorObject, Outcome, codes, edit};

use super::begin::CANCEL_LIMIT;
use super::tend::{Cancel, End, Tender};
use crate::forward::Stop;
use crate::reply::ErrorCode;

/// Where a result says which task brought it (TSK-021).
const RELATED: &str = "/_meta/io.modelcontextprotocol~1related-task";

impl Tender {
    pub(super) async fn close(&mut self, end: End) {
        if let Some(live) = &self.live {
            live.connection.watch_task(&self.entry.task_id, false);
        }
        if let End::Refused(..) = end {
            self.stop().await;
        }
        let Some((status, outcome, why)) = self.outcome_of(end).await else {
            self.keep();
            return;
        };
        self.status = status;
        let event = match status {
            TaskStatus::Expired | TaskStatus::Lost => Event::McpTaskExpired,
            _ => Event::McpTaskCompleted,
        };
        let row = AuditRow::task(event, &self.path.call, &self.entry.id).with("status", status.as_str());
        self.path.note(match why {
            Some(why) => row.with("reason", why),
            None => row,
        });
        let (delivery, kept) = self.deliver(status, outcome);
        let update = TaskUpdate {
            status,
            snapshot: &self.snapshot,
            outcome: kept.as_deref(),
            delivery,
            counters: self.counters,
            expires_at_ms: self.expires_at_ms,
        };
        if let Err(error) = self.path.gateway.store.update_task(&self.entry.id, &update) {
            tracing::error!(%error, task = self.entry.id, "the end of a task is not in the journal");
        }
    }

    /// What the end means: a status, what comes of it, and why; `None` where the next gateway goes on.
    async fn outcome_of(&mut self, end: End) -> Option<(TaskStatus, Option<Outcome>, Option<String>)> {
        let path = Arc::clone(&self.path);
        let server = &path.handle.server.name;
        let refused = |code, text: &str| {
            path.note(AuditRow::failed(&path.call, text));
            let Stop(outcome) = path.refuse(code, text);
            Some(outcome)
        };
        Some(match end {
            End::Left => return None,
            End::Completed(result) => {
                (TaskStatus::Completed, Some(path.received(Outcome::Result(result)).await), None)
            }
            End::Failed(error) => {
                (TaskStatus::Failed, Some(path.received(Outcome::Error(error)).await), None)
            }
            End::Cancelled if self.cancel == Cancel::None => {
                let text = format!("server '{server}' cancelled the task of this call");
                (TaskStatus::Cancelled, refused(ErrorCode::Cancelled, &text), Some(text))
            }
            End::Cancelled if self.has_somebody() && !self.is_handed() => {
                let text = format!("the task of this call was cancelled (by: {})", self.entry.cancelled_by());
                (TaskStatus::Cancelled, refused(ErrorCode::Cancelled, &text), None)
            }
            End::Cancelled => (TaskStatus::Cancelled, None, None),
            End::Expired => {
                let text = format!(
                    "the task of this call was not done within the time for which server '{server}' keeps it; \
                     it may have run"
                );
                (TaskStatus::Expired, refused(ErrorCode::TimedOut, &text), Some(text))
            }
            End::Lost(reason) => {
                let text =
                    format!("the task of this call is lost at server '{server}', and may have run: {reason}");
                let text = path.handle.server.without_secrets(&text);
                (TaskStatus::Lost, refused(ErrorCode::MayHaveRun, &text), Some(text))
            }
            End::Refused(code, text) => (TaskStatus::Cancelled, refused(code, &text), Some(text)),
        })
    }

    /// Hands the outcome over, or says what is kept of it.
    fn deliver(&mut self, status: TaskStatus, outcome: Option<Outcome>) -> (Delivery, Option<String>) {
        let Some(outcome) = outcome else { return (Delivery::None, None) };
        let has_gone = self.entry.detached.is_cancelled();
        let outcome = match self.reply.take().filter(|_| !has_gone) {
            None => outcome,
            Some(reply) => match reply.send(with_related(outcome, &self.entry.id)) {
                Ok(()) => {
                    let row = AuditRow::task(Event::McpTaskDelivered, &self.path.call, &self.entry.id);
                    self.path.note(row.with("to", "caller"));
                    return (Delivery::Delivered, None);
                }
                // It went at the same moment.
                Err(outcome) => outcome,
            },
        };
        match status {
            TaskStatus::Completed | TaskStatus::Failed => (Delivery::Pending, Some(kept(&outcome))),
            TaskStatus::Lost if self.is_handed() => {
                let text = "the task is lost at its server, and may have run";
                let error = ErrorObject::new(codes::UPSTREAM_UNAVAILABLE, text);
                (Delivery::Pending, Some(kept(&Outcome::Error(error))))
            }
            _ => (Delivery::None, None),
        }
    }

    /// Tells the server of a task that cannot go on; once, since what happens then is its own.
    async fn stop(&mut self) {
        if self.cancel != Cancel::None {
            return;
        }
        let store = &self.path.gateway.store;
        if let Err(error) = store.request_task_cancel(&self.entry.id, "toolgate") {
            tracing::error!(%error, "a cancellation is not in the journal; it is sent all the same");
        }
        let row = AuditRow::task(Event::McpTaskCancelled, &self.path.call, &self.entry.id);
        self.path.gateway.note_refusal(row.with("by", "toolgate")).await;
        self.cancel = Cancel::Sent;
        let Ok(live) = self.connected().await else { return };
        if let Err(reason) = self.ask(&live, "tasks/cancel", "", CANCEL_LIMIT).await {
            tracing::warn!(task = self.entry.id, reason, "a task that cannot go on could not be cancelled");
        }
    }
}

/// An outcome as the journal keeps it.
fn kept(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Result(result) => format!(r#"{{"result":{}}}"#, result.get()),
        Outcome::Error(error) => format!(r#"{{"error":{}}}"#, error.to_json()),
    }
}

/// The plain result, with the id of its task beside it.
fn with_related(outcome: Outcome, id: &str) -> Outcome {
    let Outcome::Result(result) = outcome else { return outcome };
    let related = format!(r#"{{"taskId":{}}}"#, edit::quote(id));
    let marked = edit::ensure(result.get(), RELATED, &related).and_then(edit::raw);
    Outcome::Result(marked.unwrap_or(result))
}
