//! One look at a task: the connection, a cancellation that was not sent, what the server says, and what
//! becomes of a look that failed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;
use toolgate_store::{AuditRow, TaskStatus};
use toolgate_upstream::{RequestOptions, State};
use toolgate_wire::{Outcome, codes, edit};

use super::begin::{CANCEL_LIMIT, expiry, now_ms};
use super::tend::{Cancel, End, Tender, pause};
use super::wire::Said;
use crate::links::Live;
use crate::reply::ErrorCode;

/// The pause after a failure, doubling.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(5);
/// Failures in a row until nobody is kept waiting.
const PATIENCE: u32 = 6;
/// The pause after those.
const SLOW_RETRY: Duration = Duration::from_secs(30);
/// The pause between two reads of a task of which the server tells.
const TOLD: Duration = Duration::from_secs(5);
const TOLD_LONGEST: Duration = Duration::from_mins(1);
const READ_LIMIT: Duration = Duration::from_secs(10);
/// How long counters may differ from the journal.
const KEEP: Duration = Duration::from_secs(10);

impl Tender {
    /// What is to be done now: a connection, a cancellation that was not sent, a read.
    pub(super) async fn act(&mut self) -> Option<End> {
        let live = match self.connected().await {
            Ok(live) => live,
            Err(reason) => return self.failed(&reason),
        };
        if self.cancel == Cancel::Wanted {
            match self.ask(&live, "tasks/cancel", "", CANCEL_LIMIT).await {
                Ok(Outcome::Result(_)) => {
                    self.cancel = Cancel::Sent;
                    self.entry.settle_cancel();
                }
                // It does not know the task: there is nothing left to stop.
                Ok(Outcome::Error(error)) if error.code == codes::INVALID_PARAMS => {
                    return Some(End::Cancelled);
                }
                Ok(Outcome::Error(error)) => return self.failed(&error.message),
                Err(reason) => return self.failed(&reason),
            }
        }
        self.read(&live).await
    }

    pub(super) async fn read(&mut self, live: &Arc<Live>) -> Option<End> {
        self.counters.reads += 1;
        self.read_at = Instant::now();
        let entry = Arc::clone(&self.entry);
        let asked = tokio::select! {
            biased;
            asked = self.ask(live, "tasks/get", "", READ_LIMIT) => asked,
            // Only a read, which is given up for what is more urgent.
            () = entry.cancel.cancelled(), if self.cancel == Cancel::None => return None,
        };
        match asked {
            Ok(Outcome::Result(said)) => self.take(&said).await,
            Ok(Outcome::Error(error))
                if [codes::INVALID_PARAMS, codes::METHOD_NOT_FOUND, codes::MISSING_CLIENT_CAPABILITY]
                    .contains(&error.code) =>
            {
                if self.is_expired() {
                    return Some(End::Expired);
                }
                let said = toolgate_base::display::escape(&error.message);
                Some(End::Lost(format!("it does not know the task any more: {said}")))
            }
            Ok(Outcome::Error(error)) => {
                self.failed(&format!("it answers with error {}: {}", error.code, error.message))
            }
            Err(reason) => self.failed(&reason),
        }
    }

    /// Takes what the server says of the task, asked or not.
    pub(super) async fn take(&mut self, text: &RawValue) -> Option<End> {
        let said = match Said::read(text.get(), now_ms()) {
            Ok(said) if said.task_id == self.entry.task_id => said,
            Ok(_) => return self.failed("it describes another task"),
            Err(fault) => return self.failed(&format!("it {fault}")),
        };
        self.failures = 0;
        self.failing_since = None;
        self.poll = pause(said.poll);
        self.due = Instant::now() + self.next_pause();
        self.expires_at_ms = expiry(self.created_ms, said.ttl);
        let changed = (self.status, &self.message) != (said.status, &said.message);
        self.status = said.status;
        self.message = said.message;
        self.snapshot = said.snapshot;
        let pending = self.pending.is_some();
        match (said.status, said.result, said.error) {
            (TaskStatus::Completed, Some(result), _) => return Some(End::Completed(result)),
            (TaskStatus::Failed, _, Some(error)) => return Some(End::Failed(error)),
            (TaskStatus::Cancelled, ..) => return Some(End::Cancelled),
            (TaskStatus::InputRequired, ..) => {
                if let Some(end) = self.input(said.inputs.as_deref().unwrap_or("{}")).await {
                    return Some(end);
                }
            }
            _ => {}
        }
        if self.is_expired() {
            return Some(End::Expired);
        }
        if changed {
            self.note_change("said");
            self.tell();
        }
        if let Some(live) = &self.live {
            live.connection.watch_task(&self.entry.task_id, true);
        }
        self.show();
        if changed {
            self.show_changed();
        }
        // Counters alone are worth a write only now and then.
        if changed || pending != self.pending.is_some() || self.kept_at.elapsed() >= KEEP {
            self.keep();
        }
        None
    }

    /// A server that tells of the task is asked now and then all the same: what it tells may be lost.
    fn next_pause(&self) -> Duration {
        let told =
            self.live.as_ref().is_some_and(|live| live.connection.is_task_watched(&self.entry.task_id));
        if told { (self.poll * 5).clamp(TOLD, TOLD_LONGEST) } else { self.poll }
    }

    /// A failure: again after a pause, and at last not at all.
    pub(super) fn failed(&mut self, reason: &str) -> Option<End> {
        if self.is_expired() {
            return Some(End::Expired);
        }
        let reason = self.path.handle.server.without_secrets(reason);
        tracing::debug!(task = self.entry.id, reason, "a task could not be observed");
        self.failures = self.failures.saturating_add(1);
        self.counters.retries += 1;
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.path.handle.server.timeouts.task_lost {
            let text = format!("it could not be asked for too long (timeouts.task_lost): {reason}");
            return Some(End::Lost(text));
        }
        let pause = FIRST_RETRY.saturating_mul(1_u32.checked_shl(self.failures - 1).unwrap_or(u32::MAX));
        self.due = Instant::now() + pause.min(LAST_RETRY);
        if self.failures > PATIENCE {
            self.due = Instant::now() + SLOW_RETRY;
            if let Some(reply) = self.reply.take() {
                let text = self.path.goes_on(&self.entry, &format!("it cannot be observed now ({reason})"));
                self.path.note(AuditRow::failed(&self.path.call, &text));
                // Whoever waited may have gone just now.
                let _ = reply.send(self.path.refuse(ErrorCode::TaskRunning, &text).0);
                self.entry.detached.cancel();
            }
        }
        self.keep();
        None
    }

    pub(super) async fn connected(&mut self) -> Result<Arc<Live>, String> {
        if let Some(live) = &self.live
            && live.connection.state() == State::Connected
        {
            return Ok(Arc::clone(live));
        }
        let path = Arc::clone(&self.path);
        let live =
            path.gateway.live(&path.caller, &path.handle.server).await.map_err(|error| error.to_string())?;
        self.live = Some(Arc::clone(&live));
        self.entry.view().live = Some(Arc::clone(&live));
        self.counters.recoveries += 1;
        self.note_change("recovered");
        Ok(live)
    }

    /// One request about the task; `more` are members beside its id, as JSON text with a comma before.
    pub(super) async fn ask(
        &self,
        live: &Live,
        method: &str,
        more: &str,
        limit: Duration,
    ) -> Result<Outcome, String> {
        let params = format!(r#"{{"taskId":{}{more}}}"#, edit::quote(&self.entry.task_id));
        let params = edit::raw(params).map_err(|error| error.to_string())?;
        let options = RequestOptions {
            timeout: Some(limit),
            max_total: Some(limit),
            capabilities: edit::raw(self.path.told().to_json()).ok(),
            ..RequestOptions::default()
        };
        live.connection.request(method, Some(params), options).await.map_err(|error| error.to_string())
    }
}
