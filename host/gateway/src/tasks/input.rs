//! What a task asks while it runs: to the client it came from, through the same questions as everything
//! else that a server asks (ELI-017), and the answers back with `tasks/update`.
//!
//! Contract: a question counts once in the life of a task, whatever the server repeats. Answers are in the
//! audit log, and what let the call pass is compared again, before they leave. What comes when nobody
//! waits is kept for whoever looks, and answered by nobody (TSK-018, TSK-019). Values stay the JSON that
//! the client wrote (TSK-008).
//!
//! Bounds: [`MOST_ROUNDS`] rounds of one task.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinError;
use tokio::time::Instant;
use toolgate_signing::DefinitionKind;
use toolgate_store::{AuditRow, Event};
use toolgate_wire::{Outcome, edit};

use super::tend::{Cancel, End, Tender};
use crate::forward::{Answer, inputs};
use crate::reply::ErrorCode;

const MOST_ROUNDS: usize = 12;
/// How long the server may take to take answers.
const UPDATE_LIMIT: Duration = Duration::from_secs(10);

impl Tender {
    /// Sees to what the server asks now.
    pub(super) async fn input(&mut self, requests: &str) -> Option<End> {
        if self.cancel != Cancel::None {
            return None;
        }
        let server = self.path.handle.server.name.clone();
        let incoming = match inputs(requests, true) {
            Ok(incoming) => incoming,
            Err(fault) => {
                let text = format!("the task of server '{server}' {fault}; it is cancelled");
                return Some(End::Refused(ErrorCode::BadServer, text));
            }
        };
        let open: HashSet<&String> = incoming.iter().map(|one| &one.key).collect();
        // What the server still asks for, it did not get.
        self.answers.retain(|key, _| open.contains(key));
        if !self.answers.is_empty() {
            return self.send_answers().await;
        }
        let new: Vec<_> = incoming.into_iter().filter(|one| !self.asked.contains(&one.key)).collect();
        if new.is_empty() || self.asking.is_some() {
            return None;
        }
        if !self.has_somebody() {
            self.keep_questions(requests);
            return None;
        }
        self.rounds += 1;
        if self.rounds > MOST_ROUNDS {
            let text =
                format!("the task of server '{server}' asked more than {MOST_ROUNDS} times; it is cancelled");
            return Some(End::Refused(ErrorCode::BadServer, text));
        }
        self.asked.extend(new.iter().map(|one| one.key.clone()));
        let path = Arc::clone(&self.path);
        self.asking = Some(tokio::spawn(async move { path.ask_all(new, path.told()).await }));
        None
    }

    /// Whether the client it came from is still there, or comes and asks by itself.
    pub(super) fn has_somebody(&self) -> bool {
        self.is_handed() || (self.reply.is_some() && !self.entry.detached.is_cancelled())
    }

    /// The one who was being asked has gone: the questions wait for whoever looks.
    pub(super) fn left_alone(&mut self) {
        if let Some(asking) = self.asking.take() {
            asking.abort();
            self.asked.clear();
        }
        self.reply = None;
    }

    fn keep_questions(&mut self, requests: &str) {
        let kept = format!(r#"{{"inputRequests":{requests}}}"#);
        if self.pending.as_ref() != Some(&kept) {
            self.pending = Some(kept);
            let row = AuditRow::task(Event::McpTaskInput, &self.path.call, &self.entry.id);
            self.path.note(row.with("delivery", "pending"));
        }
    }

    /// The client answered, or somebody did in its place.
    pub(super) async fn answered(
        &mut self,
        answers: Result<Vec<(String, Answer)>, JoinError>,
    ) -> Option<End> {
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) if error.is_cancelled() => return None,
            Err(error) => {
                tracing::error!(%error, "the questions of a task ended without an answer");
                let text = "the questions of its task ended inside Toolgate; it is cancelled".to_owned();
                return Some(End::Refused(ErrorCode::Internal, text));
            }
        };
        if self.cancel != Cancel::None {
            return None;
        }
        self.entry.view().open.clear();
        self.show_changed();
        for (key, answer) in answers {
            match answer {
                Answer::Result(result) => drop(self.answers.insert(key, result.get().to_owned())),
                Answer::Error(error) => {
                    let text = format!(
                        "the task of server '{}' asked something that was not answered: {}. It is cancelled.",
                        self.path.handle.server.name, error.message
                    );
                    return Some(End::Refused(ErrorCode::Denied, text));
                }
            }
        }
        self.send_answers().await
    }

    async fn send_answers(&mut self) -> Option<End> {
        if !self.still_stands() {
            let text = "what let the call pass changed while its task's question was open, so the answer was \
                        not sent and the task is cancelled. Repeat the call.";
            return Some(End::Refused(ErrorCode::Denied, text.to_owned()));
        }
        let live = match self.connected().await {
            Ok(live) => live,
            Err(reason) => return self.failed(&reason),
        };
        let keys: Vec<&String> = self.answers.keys().collect();
        let row = AuditRow::task(Event::McpTaskInput, &self.path.call, &self.entry.id);
        if let Err(error) = self.path.gateway.store.append(row.with("keys", json!(keys))).await {
            tracing::error!(%error, "the audit log refused a row, so answers were not sent");
            let text = "the audit log could not be written, so the answers of its task were not sent";
            return Some(End::Refused(ErrorCode::Audit, text.to_owned()));
        }
        let members: Vec<String> =
            self.answers.iter().map(|(key, answer)| format!("{}:{answer}", edit::quote(key))).collect();
        let more = format!(r#","inputResponses":{{{}}}"#, members.join(","));
        match self.ask(&live, "tasks/update", &more, UPDATE_LIMIT).await {
            Ok(Outcome::Result(_)) => {
                self.answers.clear();
                self.pending = None;
                self.counters.inputs += 1;
                self.read_soon(Instant::now());
                None
            }
            Ok(Outcome::Error(error)) => {
                let said = toolgate_base::display::escape(&error.message);
                let text = format!("the server of its task does not take the answers: {said}");
                Some(End::Refused(ErrorCode::BadServer, text))
            }
            Err(reason) => self.failed(&reason),
        }
    }

    /// A person took their time: what was judged must still be so.
    fn still_stands(&self) -> bool {
        let path = &self.path;
        let (surface, item) = (path.handle.live.surface.load(), &path.handle.item);
        let now = surface.item(DefinitionKind::Tool, &item.name);
        !path.frozen.is_cancelled()
            && now.is_some_and(|now| now.digest == item.digest && now.pin == item.pin)
            && path.still_passes(&self.document, self.by).is_ok_and(|passes| passes)
    }
}
