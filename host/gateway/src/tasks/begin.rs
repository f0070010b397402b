//! From the result that makes a task to a task that is observed, and the wait of a client that gets the
//! plain result.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use toolgate_base::{Clock as _, SystemClock, random_hex};
use toolgate_plugins::Document;
use toolgate_store::{AuditRow, Deed, Event, NewTask, TaskAbout};
use toolgate_upstream::RequestOptions;
use toolgate_wire::envelope::{self, ResultKind};
use toolgate_wire::{Outcome, edit};

use super::tend::{Begun, Tender};
use super::wire::{self, Said};
use super::{Entry, Place, holder};
use crate::abilities::Abilities;
use crate::ask::By;
use crate::call::Call;
use crate::forward::{Path, Stop};
use crate::reply::ErrorCode;

/// What a server tells of one task that may wait to be looked at.
pub(super) const PUSHES: usize = 8;
/// Turns of questions that may wait to be shown.
const TURNS: usize = 32;
/// How long one cancellation may take that nobody waits for.
pub(super) const CANCEL_LIMIT: Duration = Duration::from_secs(5);
/// Where a call carries an id by which its server can tell a repetition (TSK-002).
const INVOCATION: &str = "/_meta/toolgate~1invocationId";

/// An id for one call, the same however often it is sent.
pub(crate) fn invocation() -> String {
    format!("inv_{}", random_hex(16))
}

/// The parameters with the id of the call in them.
pub(crate) fn with_invocation(params: &str, invocation: &str) -> Option<String> {
    edit::ensure(params, INVOCATION, &edit::quote(invocation)).ok()
}

/// Whether a result makes a task; only that of a call can.
pub(crate) fn is_one(deed: Deed, result: &RawValue) -> bool {
    deed == Deed::Call
        && matches!(envelope::result_kind(result.get()), ResultKind::Other(kind) if kind == "task")
}

/// The time that the journal counts in.
pub(super) fn now_ms() -> u64 {
    SystemClock.now_ms()
}

/// `created` later by `ttl`.
pub(super) fn expiry(created_ms: i64, ttl: Option<Duration>) -> Option<i64> {
    let ttl = i64::try_from(ttl?.as_millis()).unwrap_or(i64::MAX);
    Some(created_ms.saturating_add(ttl))
}

impl Path {
    /// Waits for a place where the tool is known to make tasks (TSK-013). Whether that took a wait.
    pub(crate) async fn take_place(&self, place: &mut Option<Place>) -> Result<bool, Stop> {
        if place.is_some() || !self.may_make_a_task() {
            return Ok(false);
        }
        let Some(mut own) = self.gateway.tasks.shared.slots.enter(&self.handle.server.name) else {
            let text = self.too_many();
            self.gateway.note_refusal(AuditRow::denied(&self.call, "tasks", None, &text)).await;
            return Err(self.refuse(ErrorCode::TooManyTasks, &text));
        };
        let waited = !own.is_taken();
        let deadline = self.handle.server.timeouts.max_total;
        tokio::select! {
            biased;
            () = own.taken() => {}
            () = self.waiting.cancel.cancelled() => {
                self.note(AuditRow::cancelled(&self.call));
                return Err(self.refuse(ErrorCode::Cancelled, "it was given up while it waited for its turn"));
            }
            () = self.frozen.cancelled() => {}
            () = tokio::time::sleep(deadline) => {
                let text = "no task of its server ended within timeouts.max_total; nothing was sent";
                self.gateway.note_refusal(AuditRow::denied(&self.call, "tasks", None, text)).await;
                return Err(self.refuse(ErrorCode::TooManyTasks, text));
            }
        }
        *place = Some(own);
        Ok(waited)
    }

    fn may_make_a_task(&self) -> bool {
        if self.deed != Deed::Call || !self.handle.live.connection.has_tasks() {
            return false;
        }
        let stated = edit::get(self.handle.item.definition.text(), "/execution/taskSupport");
        stated.and_then(edit::string).as_deref() == Some("required")
            || self.gateway.tasks.shared.is_maker(&self.handle.server.name, &self.handle.subject)
    }

    fn too_many(&self) -> String {
        format!(
            "server '{}' has {} tasks, and {} calls wait for one of them to end, which is the limit; \
             nothing more is sent to it. Try again later.",
            self.handle.server.name,
            super::slots::ACTIVE,
            super::slots::QUEUED
        )
    }

    /// Writes the task down, has it observed, and answers as the client understands it.
    pub(crate) async fn into_task(
        mut self,
        call: &Call,
        created: &RawValue,
        document: Document,
        by: By,
        place: Option<Place>,
    ) -> Result<Outcome, Stop> {
        let gateway = Arc::clone(&self.gateway);
        let server = self.handle.server.name.clone();
        let said = Said::created(created.get(), now_ms()).map_err(|fault| {
            self.note(AuditRow::failed(&self.call, &fault));
            let text = format!("server '{server}' {fault}; the call may have run");
            self.refuse(ErrorCode::BadServer, &text)
        })?;
        gateway.tasks.shared.note_maker(&server, &self.handle.subject);
        let Some(place) = place.or_else(|| gateway.tasks.shared.slots.enter(&server)) else {
            let text = self.too_many();
            return Err(self.give_back(said.task_id, ErrorCode::TooManyTasks, &text));
        };
        let handed =
            self.waiting.client.has_rounds() && self.waiting.client.abilities().has(Abilities::TASKS);
        let id = format!("task_{}", random_hex(16));
        let coming = gateway.tasks.shared.coming(&id);
        if let Err(text) = self.write_down(&id, &said, handed, &document, by) {
            tracing::error!(server, error = text, "a task could not be written down, so it is cancelled");
            let text = format!(
                "server '{server}' made a task of the call, which could not be written down, so it is \
                 cancelled: {text}"
            );
            return Err(self.give_back(said.task_id, ErrorCode::Internal, &text));
        }
        self.note(AuditRow::task(Event::McpTaskCreated, &self.call, &id).with("handed", handed));
        let (pushed, told) = mpsc::channel(PUSHES);
        let mut turns = None;
        if handed {
            // The request ends now; the task does not, and asks by its own state.
            let (turn, received) = mpsc::channel(TURNS);
            self.waiting.turns = Some(turn);
            self.waiting.progress = None;
            turns = Some(received);
        }
        let entry = Arc::new(Entry::new(
            id.clone(),
            server,
            said.task_id.clone(),
            said.status,
            said.snapshot.clone(),
            pushed,
        ));
        gateway.tasks.add(&entry);
        drop(coming);
        let shown = wire::shown(&said.snapshot, &id, said.status);
        let (reply, outcome) = oneshot::channel();
        let path = Arc::new(self);
        let begun = Begun { said, place, document, by, reply: (!handed).then_some(reply) };
        let live = Arc::clone(&path.handle.live);
        let tender = Tender::new(Arc::clone(&path), Arc::clone(&entry), begun, Some(live), told, turns);
        tokio::spawn(tender.run());
        if handed {
            return edit::set(&shown, "/resultType", r#""task""#)
                .and_then(edit::raw)
                .map(Outcome::Result)
                .map_err(|error| path.refuse(ErrorCode::Internal, &error.to_string()));
        }
        path.wait_for_task(&entry, call, outcome).await
    }

    /// The plain result, as long as the client waits and no longer than `timeouts.max_total`.
    async fn wait_for_task(
        &self,
        entry: &Entry,
        call: &Call,
        outcome: oneshot::Receiver<Outcome>,
    ) -> Result<Outcome, Stop> {
        let server = &self.handle.server;
        let limit = call.timeout.unwrap_or(server.timeouts.max_total);
        // Whoever drops the call gives its task up as well.
        let left = Left { entry, armed: true };
        tokio::select! {
            biased;
            outcome = outcome => {
                left.disarm();
                // The observer ends without a word only together with the gateway.
                outcome.map_err(|_| self.refuse(ErrorCode::MayHaveRun, &self.goes_on(entry, "Toolgate is ending")))
            }
            () = call.cancel.cancelled() => {
                self.note(AuditRow::cancelled(&self.call));
                Err(self.refuse(ErrorCode::Cancelled, "it was given up while its server worked on it"))
            }
            () = self.frozen.cancelled() => {
                entry.request_cancel("freeze");
                left.disarm();
                entry.detached.cancel();
                let text = format!("{}. The task is cancelled; it may have run.", self.frozen_words());
                self.gateway.note_refusal(AuditRow::denied(&self.call, "freeze", None, &text)).await;
                Err(self.refuse(ErrorCode::Denied, &text))
            }
            () = tokio::time::sleep(limit) => {
                left.disarm();
                entry.detached.cancel();
                let text = self.goes_on(entry, &format!("it is not done after {} s", limit.as_secs_f32()));
                self.note(AuditRow::failed(&self.call, &text));
                Err(self.refuse(ErrorCode::TaskRunning, &text))
            }
        }
    }

    pub(super) fn goes_on(&self, entry: &Entry, why: &str) -> String {
        format!(
            "Server '{}' works on this as a task: {why}. It was not cancelled and may still run. What comes \
             of it is kept; the operator reads it with `toolgate mcp tasks {}`. Do not repeat the call unless \
             your user tells you to.",
            self.handle.server.name, entry.id
        )
    }

    fn write_down(
        &self,
        id: &str,
        said: &Said,
        handed: bool,
        document: &Document,
        by: By,
    ) -> Result<(), String> {
        let (caller, item) = (&self.caller, &self.handle.item);
        let about = TaskAbout {
            persona: caller.persona.clone(),
            lane: caller.lane.as_str().to_owned(),
            credential: caller.credential.clone(),
            session: caller.session.clone(),
            run_id: caller.run_id.clone(),
            thread_id: caller.thread_id.clone(),
            abilities: caller.abilities.bits(),
            server_only: caller.server_only.clone(),
            plain_names: caller.plain_names,
            tool: self.handle.subject.clone(),
            exposed: self.used.clone(),
            request_id: self.call.request_id.clone(),
            arguments: document.text().to_owned(),
            definition: item.digest.to_string(),
            passed_by: by.as_str().to_owned(),
            invocation: self.invocation.clone().unwrap_or_default(),
        };
        let now = i64::try_from(now_ms()).unwrap_or(i64::MAX);
        let owner = self.gateway.tasks.owner(&self.gateway.config.data_dir)?;
        let task = NewTask {
            id,
            owner: &owner,
            server: &self.handle.server.name,
            server_identity: &self.handle.server.identity(),
            task_id: &said.task_id,
            about: &about,
            caller: &holder(caller),
            handed,
            status: said.status,
            snapshot: &said.snapshot,
            expires_at_ms: expiry(now, said.ttl),
        };
        self.gateway.store.add_task(&task).map_err(|error| error.to_string())
    }

    /// Refuses a task that was made already: its server is told to stop, once.
    fn give_back(&self, task_id: String, code: ErrorCode, text: &str) -> Stop {
        self.note(AuditRow::failed(&self.call, text));
        let connection = self.handle.live.connection.clone();
        tokio::spawn(async move {
            let params = edit::raw(format!(r#"{{"taskId":{}}}"#, edit::quote(&task_id))).ok();
            let options = RequestOptions { timeout: Some(CANCEL_LIMIT), ..RequestOptions::default() };
            if let Err(error) = connection.request("tasks/cancel", params, options).await {
                tracing::warn!(%error, "a task that was refused could not be cancelled");
            }
        });
        self.refuse(code, text)
    }
}

/// A client that waits; dropped before its outcome, it has gone.
struct Left<'a> {
    entry: &'a Entry,
    armed: bool,
}

impl Left<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.entry.request_cancel("caller");
            self.entry.detached.cancel();
        }
    }
}
