//! What a server says while it works on a call: the steps of its progress, and its log.
//!
//! Contract: both are words that a person or a model reads, so they pass the hook result like the answer
//! that they come before, as the document `{"method": …, "params": …}`. What a policy denies is not passed
//! on, and what it redacts is passed on redacted. A step that is numbers alone holds no words and is passed
//! on at once.
//!
//! Bounds: [`QUEUE`] messages of each kind wait; a full queue loses messages, never the answer. A call
//! leaves one row about what was withheld and one about what was hidden, however much its server says.

use std::future::pending;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use toolgate_plugins::Document;
use toolgate_store::AuditRow;
use toolgate_store::Event;
use toolgate_upstream::{LogMessage, Logs, Progress};
use toolgate_wire::edit;

use super::Path;
use crate::decide::Ruling;
use crate::redact;

/// Messages of each kind that may wait to be judged.
const QUEUE: usize = 32;
/// Members of a step without words.
const NUMBERS: [&str; 3] = ["progressToken", "progress", "total"];

/// Both kinds on their way from one server to one client.
pub(super) struct Messages {
    steps: Option<(mpsc::Receiver<Progress>, mpsc::Sender<Progress>)>,
    log: Option<(mpsc::Receiver<LogMessage>, Logs)>,
    noted_withheld: bool,
    noted_hidden: bool,
}

/// One message.
pub(super) enum Said {
    Step(Progress),
    Log(LogMessage),
}

impl Messages {
    /// For a client that wants these; with what the server's side is to be given instead.
    pub(super) fn of(
        progress: Option<mpsc::Sender<Progress>>,
        logs: Option<Logs>,
    ) -> (Self, Option<mpsc::Sender<Progress>>, Option<Logs>) {
        let (steps, progress) = match progress {
            Some(out) => {
                let (sender, receiver) = mpsc::channel(QUEUE);
                (Some((receiver, out)), Some(sender))
            }
            None => (None, None),
        };
        let (log, logs) = match logs {
            Some(out) => {
                let (sender, receiver) = mpsc::channel(QUEUE);
                let inner = Logs { level: out.level, out: sender };
                (Some((receiver, out)), Some(inner))
            }
            None => (None, None),
        };
        (Self { steps, log, noted_withheld: false, noted_hidden: false }, progress, logs)
    }

    /// The next message; never, where there will be none.
    pub(super) async fn next(&mut self) -> Said {
        let step = async {
            match self.steps.as_mut() {
                Some((receiver, _)) => receiver.recv().await,
                None => None,
            }
        };
        let line = async {
            match self.log.as_mut() {
                Some((receiver, _)) => receiver.recv().await,
                None => None,
            }
        };
        tokio::select! {
            biased;
            Some(step) = step => Said::Step(step),
            Some(line) = line => Said::Log(line),
            else => pending().await,
        }
    }

    /// A message that is here already.
    pub(super) fn waiting(&mut self) -> Option<Said> {
        let step = self.steps.as_mut().and_then(|(receiver, _)| receiver.try_recv().ok());
        step.map(Said::Step).or_else(|| self.log.as_mut()?.0.try_recv().ok().map(Said::Log))
    }

    /// Passes a message on as the result policies leave it.
    pub(super) fn pass(&mut self, path: &Path, said: Said) {
        match said {
            Said::Step(step) => {
                let params = self.judged(path, "notifications/progress", step.params);
                if let (Some(params), Some((_, out))) = (params, &self.steps) {
                    let _ = out.try_send(Progress { params });
                }
            }
            Said::Log(line) => {
                let params = self.judged(path, "notifications/message", line.params);
                if let (Some(params), Some((_, logs))) = (params, &self.log) {
                    let _ = logs.out.try_send(LogMessage { params });
                }
            }
        }
    }

    fn judged(&mut self, path: &Path, method: &str, params: Box<RawValue>) -> Option<Box<RawValue>> {
        if is_numbers(params.get()) || !path.is_judged() {
            return Some(params);
        }
        let document =
            Document::new(format!(r#"{{"method":{},"params":{}}}"#, edit::quote(method), params.get()));
        let verdict = path.result_verdict(&document);
        if !self.noted_hidden {
            self.noted_hidden = path.gateway.note_hidden_result(&path.call, &document);
        }
        let left = match verdict.ruling {
            Ruling::Allow if verdict.redactions.is_empty() => return Some(params),
            Ruling::Allow => redact::redact(document.text(), &verdict.redactions)
                .map_err(|error| error.to_string())
                .and_then(|text| params_of(&text).ok_or_else(|| "a policy left nothing of it".to_owned())),
            Ruling::Ask | Ruling::Deny => Err(verdict.reason.clone()),
        };
        left.map_err(|reason| self.note_withheld(path, method, verdict.by.as_deref(), &reason)).ok()
    }

    fn note_withheld(&mut self, path: &Path, method: &str, by: Option<&str>, reason: &str) {
        if std::mem::replace(&mut self.noted_withheld, true) {
            return;
        }
        let event = Event::McpMessageWithheld;
        let row = AuditRow::about_call(event, &path.call).with_action(event.action());
        let row = row.with("method", method).with("by", by).with("reason", reason);
        path.note(row);
    }
}

/// Whether a step has no member that words could stand in.
fn is_numbers(params: &str) -> bool {
    edit::members(params).is_ok_and(|members| members.iter().all(|(key, _)| NUMBERS.contains(&key.as_str())))
}

fn params_of(text: &str) -> Option<Box<RawValue>> {
    edit::get(text, "/params")
        .filter(|params| params.starts_with('{'))
        .and_then(|params| edit::raw(params.to_owned()).ok())
}

#[cfg(test)]
mod tests {
    use super::is_numbers;

    #[test]
    fn a_step_of_numbers_alone_has_no_words() {
        assert!(is_numbers(r#"{"progressToken":"a","progress":1,"total":2}"#));
        assert!(!is_numbers(r#"{"progressToken":1,"progress":1,"message":"done"}"#));
        assert!(!is_numbers(r#"{"level":"info","data":1}"#));
    }
}
