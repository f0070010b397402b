//! What is known of a task, told to whoever waits, and written down.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolgate_store::{AuditRow, Delivery, Event, TaskUpdate};
use toolgate_upstream::Progress;
use toolgate_wire::edit;

use super::tend::{SHORTEST, Tender};

/// The pause between two steps of progress.
pub(super) const STEP: Duration = Duration::from_secs(5);
/// Rows that changes of one task leave.
const MOST_ROWS: usize = 64;

impl Tender {
    /// Steps of progress for a client that waits and asked for them.
    pub(super) fn tell(&mut self) {
        self.step_due = Instant::now() + STEP;
        let Some(progress) = self.path.waiting.progress.as_ref().filter(|_| self.reply.is_some()) else {
            return;
        };
        self.step += 1.0;
        let said = self.message.as_deref().map(|said| format!(": {said}")).unwrap_or_default();
        let message = format!("task {} ({}){said}", self.entry.id, self.status);
        if let Ok(params) = edit::raw(json!({ "progress": self.step, "message": message }).to_string()) {
            // Progress may be lost.
            let _ = progress.try_send(Progress { params });
        }
    }

    /// What a client of the extension sees from now on.
    pub(super) fn show(&self) {
        let mut view = self.entry.view();
        view.status = self.status;
        view.snapshot.clone_from(&self.snapshot);
    }

    /// Whoever listens for the task hears that something is different.
    pub(super) fn show_changed(&self) {
        self.path.gateway.tasks.tell(&self.entry.id);
    }

    /// Whether its client has its id.
    pub(super) fn is_handed(&self) -> bool {
        self.turns.is_some()
    }

    /// Asks again as soon as a server may have gone on.
    pub(super) fn read_soon(&mut self, now: Instant) {
        self.due = self.due.min(now + SHORTEST);
    }

    /// Writes down what is known now.
    pub(super) fn keep(&mut self) {
        self.kept_at = Instant::now();
        let update = TaskUpdate {
            status: self.status,
            snapshot: &self.snapshot,
            outcome: self.pending.as_deref(),
            delivery: if self.pending.is_some() { Delivery::Pending } else { Delivery::Waiting },
            counters: self.counters,
            expires_at_ms: self.expires_at_ms,
        };
        if let Err(error) = self.path.gateway.store.update_task(&self.entry.id, &update) {
            tracing::error!(%error, task = self.entry.id, "the state of a task is not in the journal");
        }
    }

    pub(super) fn note_change(&mut self, why: &str) {
        self.rows += 1;
        if self.rows <= MOST_ROWS {
            let row = AuditRow::task(Event::McpTaskObserved, &self.path.call, &self.entry.id);
            self.path.note(row.with("status", self.status.as_str()).with("why", why));
        }
    }
}
