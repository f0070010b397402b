//! `tasks/get`, `tasks/update` and `tasks/cancel` of a client that has the extension.
//!
//! Contract: an id is good for the caller it was given to; of anybody else's it is unknown, as is one that
//! never was. Every request is judged like the call that made the task, with the same arguments: what may no
//! longer be called is no longer told of. The answers come from what is observed here, so that a client
//! which asks often costs its server nothing.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use toolgate_config::Server;
use toolgate_plugins::{Document, Hook};
use toolgate_signing::{DefinitionKind, Digest};
use toolgate_store::{AuditRow, CallFacts, Deed, Delivery, Event, GrantQuery, Task, TaskStatus};
use toolgate_wire::{ErrorObject, Id, Outcome, codes, edit};

use super::{Entry, holder, wire};
use crate::Gateway;
use crate::abilities::Abilities;
use crate::ask::By;
use crate::caller::Caller;
use crate::decide::{Ruling, Verdict};
use crate::reply::{self, ErrorCode, ErrorDetails};
use crate::{facts, notes, views};

/// What is told of a task that its server has let go of.
pub(super) const EXPIRED: &str = "the task is past the time for which its server keeps it";

/// What a client asks of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskVerb {
    /// How it stands, with its result where it has one.
    Get,
    /// Answers to its questions.
    Update,
    /// To stop it.
    Cancel,
}

impl TaskVerb {
    /// The verb of a method.
    pub fn of_method(method: &str) -> Option<Self> {
        Some(match method {
            "tasks/get" => Self::Get,
            "tasks/update" => Self::Update,
            "tasks/cancel" => Self::Cancel,
            _ => return None,
        })
    }
}

impl Gateway {
    /// Does what a client asks of one of its tasks. The outcome is era-neutral.
    pub async fn task(
        self: &Arc<Self>,
        caller: &Caller,
        verb: TaskVerb,
        request_id: &Id,
        params: &RawValue,
    ) -> Outcome {
        let Some(id) = edit::get(params.get(), "/taskId").and_then(edit::string) else {
            return Outcome::Error(reply::invalid_params("params.taskId is not a string"));
        };
        let (task, call) = match self.task_of(caller, request_id, &id).await {
            Ok(found) => found,
            Err(refusal) => return refusal,
        };
        match verb {
            TaskVerb::Get => self.show_task(&task, &call),
            TaskVerb::Update => self.update_task(&task, params),
            TaskVerb::Cancel => self.cancel_task(&task),
        }
    }

    /// A task of this caller, of which it may still hear.
    pub(super) async fn task_of(
        self: &Arc<Self>,
        caller: &Caller,
        request_id: &Id,
        id: &str,
    ) -> Result<(Task, CallFacts), Outcome> {
        if !caller.abilities.has(Abilities::TASKS) {
            return Err(Outcome::Error(undeclared()));
        }
        let task = match self.store.task(id) {
            Ok(task) => task.filter(|task| task.handed && task.caller == holder(caller)),
            Err(error) => {
                tracing::error!(%error, "the journal of tasks cannot be read");
                let text =
                    "the journal of tasks cannot be read; the operator finds the reason in Toolgate's log";
                return Err(reply::error(ErrorCode::Internal, text, &ErrorDetails::default()));
            }
        };
        let Some(task) = task else {
            let call = notes::lost_call(caller, Deed::Call, "", None, request_id);
            let reason = "this caller has no task of this id";
            self.note_refusal(AuditRow::denied(&call, "task", None, reason)).await;
            return Err(Outcome::Error(unknown()));
        };
        let call = facts_of(caller, &task, request_id);
        self.judge_task(caller, &task, &call).await?;
        Ok((task, call))
    }

    /// Whether this caller may still do what made the task.
    async fn judge_task(
        self: &Arc<Self>,
        caller: &Caller,
        task: &Task,
        call: &CallFacts,
    ) -> Result<(), Outcome> {
        let details = ErrorDetails { server: Some(task.server.clone()), ..ErrorDetails::default() };
        let binding = self.binding(caller, &task.server);
        let server = self.servers.get(&task.server).filter(|_| binding.holds());
        let Some(server) = server.filter(|server| server.identity() == task.server_identity) else {
            let reason = "its server is no longer one of this caller's, or has another command or URL";
            self.note_refusal(AuditRow::denied(call, "binding", None, reason)).await;
            return Err(Outcome::Error(unknown()));
        };
        let surface = match self.known_surface(caller, server) {
            Some(surface) => surface,
            None => match self.live(caller, server).await {
                Ok(live) => live.surface.load_full(),
                Err(error) => return Err(reply::error(error.code(), &error.to_string(), &details)),
            },
        };
        let Some(item) = surface.item(DefinitionKind::Tool, &task.about.tool) else {
            let reason = format!("server '{}' does not show its tool any more", task.server);
            self.note_refusal(AuditRow::denied(call, "binding", None, &reason)).await;
            return Err(reply::error(ErrorCode::Denied, &reason, &details));
        };
        let document = Some(Document::new(task.about.arguments.as_str()));
        let about = facts::About { action: "call", subject: &task.about.tool, document };
        let facts = facts::shared(facts::of_item(self, caller, server, &surface, item, about));
        let in_force = self.plugins();
        let verdict = views::judge(&in_force.views, &in_force.plugins, &binding, Hook::Call, &facts);
        let passes = match verdict.ruling {
            Ruling::Allow => true,
            Ruling::Deny => false,
            Ruling::Ask => self.was_granted(task, server, &item.digest),
        };
        if passes { Ok(()) } else { Err(self.deny_task(call, &verdict, details).await) }
    }

    /// A person let the call pass once, and its task is that call; a wider grant must still stand.
    fn was_granted(&self, task: &Task, server: &Server, definition: &Digest) -> bool {
        match By::of(&task.about.passed_by) {
            By::Policies => false,
            By::Once => true,
            By::Wider => {
                let identity = server.identity();
                let query = GrantQuery {
                    persona: &task.about.persona,
                    session: &task.about.session,
                    server_identity: &identity,
                    action: "call",
                    tool: &task.about.tool,
                    definition,
                };
                self.store.grant_for(&query).is_ok_and(|grant| grant.is_some())
            }
        }
    }

    async fn deny_task(&self, call: &CallFacts, verdict: &Verdict, details: ErrorDetails) -> Outcome {
        self.note_denial(call, verdict).await;
        let details = ErrorDetails { by: verdict.by.clone(), ..details };
        reply::error(ErrorCode::Denied, &format!("Denied by Toolgate: {}", verdict.reason), &details)
    }

    fn show_task(&self, task: &Task, call: &CallFacts) -> Outcome {
        if let Some(entry) = self.tasks.find(&task.id) {
            entry.poke.notify_one();
            return shown_now(&entry);
        }
        // It may have ended since it was looked up.
        let Ok(Some(task)) = self.store.task(&task.id) else { return Outcome::Error(unknown()) };
        if task.status == TaskStatus::Expired {
            return Outcome::Error(reply::invalid_params(EXPIRED));
        }
        if task.status.is_over() && task.delivery == Delivery::Pending {
            match self.store.deliver_task(&task.id) {
                Ok(true) => {
                    let row = AuditRow::task(Event::McpTaskDelivered, call, &task.id).with("to", "caller");
                    self.store.append_detached(row);
                }
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "it is not noted that an outcome was handed over"),
            }
        }
        shown_of(&task)
    }

    /// What nobody asked, and what was answered already, is let go.
    fn update_task(&self, task: &Task, params: &RawValue) -> Outcome {
        let given = edit::get(params.get(), "/inputResponses").and_then(|given| edit::members(given).ok());
        let Some(given) = given else {
            return Outcome::Error(reply::invalid_params("params.inputResponses is not an object"));
        };
        if let Some(entry) = self.tasks.find(&task.id) {
            for (key, answer) in given {
                let mut view = entry.view();
                let open = view.open.iter().position(|open| open.key == key).map(|at| view.open.remove(at));
                drop(view);
                if let (Some(open), Ok(answer)) = (open, edit::raw(answer.to_owned())) {
                    // Whoever asked may have stopped waiting just now.
                    let _ = open.reply.send(Outcome::Result(answer));
                    self.tasks.tell(&task.id);
                }
            }
        }
        acknowledged()
    }

    fn cancel_task(&self, task: &Task) -> Outcome {
        if let Some(entry) = self.tasks.find(&task.id) {
            entry.request_cancel("caller");
        } else if let Err(error) = self.store.request_task_cancel(&task.id, "caller") {
            tracing::error!(%error, "a cancellation is not in the journal");
            let text = "the cancellation could not be written down; try again";
            return reply::error(ErrorCode::Internal, text, &ErrorDetails::default());
        }
        acknowledged()
    }
}

/// A task that is observed here.
pub(super) fn shown_now(entry: &Entry) -> Outcome {
    let view = entry.view();
    if view.open.is_empty() {
        // Without a question that the client could answer, it only waits.
        return described(wire::shown(&view.snapshot, &entry.id, TaskStatus::Working), None);
    }
    let requests: serde_json::Map<String, serde_json::Value> = view
        .open
        .iter()
        .map(|open| (open.key.clone(), json!({ "method": open.method, "params": open.params })))
        .collect();
    let snapshot = wire::shown(&view.snapshot, &entry.id, TaskStatus::InputRequired);
    described(snapshot, Some(("/inputRequests", json!(requests).to_string())))
}

/// A task from the journal.
pub(super) fn shown_of(task: &Task) -> Outcome {
    let outcome = task.outcome.as_deref().unwrap_or("{}");
    let (result, error) = (edit::get(outcome, "/result"), edit::get(outcome, "/error"));
    let (status, more) = match (result, error) {
        (Some(result), _) => (TaskStatus::Completed, Some(("/result", result.to_owned()))),
        (None, Some(error)) => (TaskStatus::Failed, Some(("/error", error.to_owned()))),
        (None, None) if task.status.is_over() => (TaskStatus::Cancelled, None),
        (None, None) => (TaskStatus::Working, None),
    };
    described(wire::shown(&task.snapshot, &task.id, status), more)
}

pub(super) fn described(snapshot: String, more: Option<(&str, String)>) -> Outcome {
    let text = match more {
        None => Ok(snapshot),
        Some((pointer, value)) => edit::set(&snapshot, pointer, &value),
    };
    match text.and_then(edit::raw) {
        Ok(text) => Outcome::Result(text),
        Err(error) => reply::error(ErrorCode::Internal, &error.to_string(), &ErrorDetails::default()),
    }
}

fn acknowledged() -> Outcome {
    match edit::raw("{}".to_owned()) {
        Ok(empty) => Outcome::Result(empty),
        Err(error) => reply::error(ErrorCode::Internal, &error.to_string(), &ErrorDetails::default()),
    }
}

fn facts_of(caller: &Caller, task: &Task, request_id: &Id) -> CallFacts {
    CallFacts {
        tool: Some(task.about.tool.clone()),
        ..notes::lost_call(caller, Deed::Call, &task.about.exposed, Some(&task.server), request_id)
    }
}

fn unknown() -> ErrorObject {
    reply::invalid_params("unknown task: use an id as it was given to you; ids end with their tasks")
}

/// The error for a request that needs the extension and did not declare it.
pub fn undeclared() -> ErrorObject {
    let text =
        "tasks need the extension io.modelcontextprotocol/tasks in the client capabilities of the request";
    let data = json!({ "requiredCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } } });
    let mut error = ErrorObject::new(codes::MISSING_CLIENT_CAPABILITY, text);
    error.data = edit::raw(data.to_string()).ok();
    error
}
