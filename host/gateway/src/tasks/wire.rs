//! What a server says of a task: in the result that makes it, in the answer to `tasks/get` and in
//! `notifications/tasks` alike.
//!
//! Bounds: an id of [`MAX_ID`] bytes; of a description longer than [`MAX_SNAPSHOT`] only what the protocol
//! names is kept.
//!
//! Threat: all of it is the server's word. Hidden characters are taken out of what is shown of it; results
//! and questions are judged elsewhere, before anybody gets them.

use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;
use toolgate_base::clock::utc_text;
use toolgate_base::hidden;
use toolgate_store::TaskStatus;
use toolgate_wire::{ErrorObject, edit};

use crate::redact;

/// Bytes of a server's id at most.
const MAX_ID: usize = 1_024;
/// Bytes of what is kept of a description.
const MAX_SNAPSHOT: usize = 16 * 1024;
/// What belongs to one message, or has a place of its own.
const APART: [&str; 7] =
    ["/result", "/error", "/inputRequests", "/requestState", "/resultType", "/_meta", "/jsonrpc"];

/// A task as its server describes it.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) task_id: String,
    pub(super) status: TaskStatus,
    /// What the server says to a person, without hidden characters.
    pub(super) message: Option<String>,
    /// How long the server keeps it after it was made; none: it does not say.
    pub(super) ttl: Option<Duration>,
    /// How often it wants to be asked.
    pub(super) poll: Option<Duration>,
    /// The description without result, error and questions.
    pub(super) snapshot: String,
    pub(super) result: Option<Box<RawValue>>,
    pub(super) error: Option<ErrorObject>,
    /// The questions, a JSON object.
    pub(super) inputs: Option<String>,
}

impl Said {
    /// Reads a description; `Err` says what is wrong with it.
    pub(super) fn read(text: &str, now_ms: u64) -> Result<Self, String> {
        let get = |pointer: &str| edit::get(text, pointer);
        let string = |pointer: &str| get(pointer).and_then(edit::string);
        let task_id = string("/taskId").filter(|id| !id.is_empty() && id.len() <= MAX_ID);
        let task_id = task_id.ok_or("describes a task without a usable id")?;
        let status = string("/status").and_then(|word| TaskStatus::of(&word));
        let status = status
            .filter(|status| !matches!(status, TaskStatus::Expired | TaskStatus::Lost))
            .ok_or("describes a task without a known status")?;
        let error = match (status, get("/error")) {
            (TaskStatus::Failed, Some(error)) => {
                Some(ErrorObject::from_json(error).ok_or("describes a failed task without a usable error")?)
            }
            (TaskStatus::Failed, None) => return Err("describes a failed task without an error".to_owned()),
            _ => None,
        };
        let result = match (status, get("/result")) {
            (TaskStatus::Completed, Some(result)) if result.starts_with('{') => {
                Some(edit::raw(result.to_owned()).map_err(|error| error.to_string())?)
            }
            (TaskStatus::Completed, _) => {
                return Err("describes a completed task without a result".to_owned());
            }
            _ => None,
        };
        Ok(Self {
            status,
            message: string("/statusMessage").map(|text| hidden::strip(&text)),
            ttl: get("/ttlMs").and_then(millis),
            poll: get("/pollIntervalMs").and_then(millis),
            snapshot: snapshot(text, &task_id, status, now_ms)?,
            result,
            error,
            inputs: get("/inputRequests").map(str::to_owned),
            task_id,
        })
    }

    /// As [`Self::read`], for the result that makes a task, which has neither a result nor an error nor
    /// questions yet: a task that is over at once is asked for all the same.
    pub(super) fn created(text: &str, now_ms: u64) -> Result<Self, String> {
        let status = edit::get(text, "/status").and_then(edit::string);
        let over = status.and_then(|word| TaskStatus::of(&word)).is_some_and(TaskStatus::is_over);
        if !over {
            return Self::read(text, now_ms);
        }
        let working = edit::set(text, "/status", r#""working""#).map_err(|error| error.to_string())?;
        Self::read(&working, now_ms)
    }
}

/// The description as a client gets it, under the id that it knows.
pub(super) fn shown(snapshot: &str, id: &str, status: TaskStatus) -> String {
    let (id, status) = (edit::quote(id), edit::quote(status.as_str()));
    let edits = [("/taskId", Some(id.as_str())), ("/status", Some(status.as_str()))];
    edit::set_all(snapshot, &edits).unwrap_or_else(|_| snapshot.to_owned())
}

fn snapshot(text: &str, task_id: &str, status: TaskStatus, now_ms: u64) -> Result<String, String> {
    let plain = edit::drop_all(text, &APART).map_err(|error| error.to_string())?;
    let plain = redact::without_hidden(&plain).map_err(|error| error.to_string())?;
    let known = |pointer: &str| edit::get(&plain, pointer);
    let plain = if plain.len() > MAX_SNAPSHOT {
        let number = |pointer| known(pointer).and_then(millis).map(|time| time.as_millis());
        json!({
            "taskId": task_id,
            "status": status.as_str(),
            "ttlMs": number("/ttlMs").map(|ms| ms.to_string().parse::<u64>().unwrap_or(u64::MAX)),
        })
        .to_string()
    } else {
        plain
    };
    let now = edit::quote(&utc_text(now_ms));
    let wanted = [("/createdAt", now.as_str()), ("/lastUpdatedAt", now.as_str()), ("/ttlMs", "null")];
    let missing: Vec<_> = wanted
        .into_iter()
        .filter(|(pointer, _)| edit::get(&plain, pointer).is_none())
        .map(|(pointer, value)| (pointer, Some(value)))
        .collect();
    edit::set_all(&plain, &missing).map_err(|error| error.to_string())
}

/// Milliseconds as servers write them; what is negative is over, and what is no number is not said.
fn millis(text: &str) -> Option<Duration> {
    match (text.parse::<u64>(), text.parse::<f64>()) {
        (Ok(millis), _) => Some(Duration::from_millis(millis)),
        (Err(_), Ok(millis)) if millis <= 0.0 => Some(Duration::ZERO),
        (Err(_), Ok(millis)) => Duration::try_from_secs_f64(millis / 1_000.0).ok(),
        (Err(_), Err(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_whole_or_refused_for_a_reason() {
        let text = r#"{"resultType":"task","taskId":"t","status":"working","statusMessage":"a\u200bb","ttlMs":1000,"pollIntervalMs":50,"x-own":1.50}"#;
        let said = Said::read(text, 0).unwrap();
        assert_eq!((said.task_id.as_str(), said.status), ("t", TaskStatus::Working));
        assert_eq!((said.ttl, said.poll), (Some(Duration::from_secs(1)), Some(Duration::from_millis(50))));
        assert_eq!(said.message.as_deref(), Some("ab"));
        assert!(said.snapshot.contains(r#""x-own":1.50"#) && !said.snapshot.contains("resultType"));
        assert!(said.snapshot.contains("createdAt"), "{}", said.snapshot);
        let shown = shown(&said.snapshot, "task_1", TaskStatus::InputRequired);
        assert!(shown.contains(r#""taskId":"task_1""#) && shown.contains("input_required"), "{shown}");
        for (text, why) in [
            (r#"{"status":"working"}"#, "id"),
            (r#"{"taskId":"","status":"working"}"#, "id"),
            (r#"{"taskId":"t","status":"lost"}"#, "status"),
            (r#"{"taskId":"t","status":"completed"}"#, "result"),
            (r#"{"taskId":"t","status":"failed"}"#, "error"),
        ] {
            assert!(Said::read(text, 0).unwrap_err().contains(why), "{text}");
        }
        let done = Said::created(r#"{"taskId":"t","status":"completed","ttlMs":null}"#, 0).unwrap();
        assert_eq!((done.status, done.ttl), (TaskStatus::Working, None));
        assert_eq!(
            Said::read(r#"{"taskId":"t","status":"working","ttlMs":-5}"#, 0).unwrap().ttl,
            Some(Duration::ZERO)
        );
    }
}
