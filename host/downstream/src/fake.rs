//! A backend for tests that remembers what reached it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use toolgate_gateway::Lane;
use toolgate_wire::{ErrorObject, Id, ListKind, Outcome, edit};

use crate::backend::{
    Backend, Call, Caller, Change, Deed, DroppedReply, FalseClaim, Offers, Page, Progress, Subscriber,
    TaskVerb,
};

/// Steps that `chatty` tells, and bytes of each: together more than the buffers of any socket.
pub(crate) const CHATTY_STEPS: usize = 2_000;
const CHATTY_STEP: usize = 16 * 1024;

/// Shared by its clones, so that a test keeps one and hands the other to a front door.
#[derive(Clone)]
pub(crate) struct Fake(Arc<Inner>);

struct Inner {
    calls: Mutex<Vec<(Caller, String)>>,
    cancelled: Mutex<Vec<String>>,
    ended: Mutex<Vec<String>>,
    finished: Mutex<Vec<String>>,
    changes: broadcast::Sender<Change>,
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            calls: Mutex::default(),
            cancelled: Mutex::default(),
            ended: Mutex::default(),
            finished: Mutex::default(),
            changes: broadcast::channel(16).0,
        }))
    }

    /// The calls that came through, with their params.
    pub(crate) fn calls(&self) -> Vec<(Caller, String)> {
        self.0.calls.lock().unwrap().clone()
    }

    /// The tools whose calls were cancelled while they ran.
    pub(crate) fn cancelled(&self) -> Vec<String> {
        self.0.cancelled.lock().unwrap().clone()
    }

    /// The tools whose calls told all their steps.
    pub(crate) fn finished(&self) -> Vec<String> {
        self.0.finished.lock().unwrap().clone()
    }

    /// The sessions that ended.
    pub(crate) fn ended(&self) -> Vec<String> {
        self.0.ended.lock().unwrap().clone()
    }

    /// Something changed, `times` times.
    pub(crate) fn change(&self, times: usize) {
        for _ in 0..times {
            let _ = self.0.changes.send(Change::List(ListKind::Tools));
        }
    }
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn text_result(text: &str) -> Outcome {
    Outcome::Result(raw(&json!({ "content": [{ "type": "text", "text": text }] }).to_string()))
}

#[async_trait]
impl Backend for Fake {
    fn has_persona(&self, _: &str) -> bool {
        true
    }

    async fn list(&self, caller: &Caller, kind: ListKind, cursor: Option<&str>) -> Result<Page, ErrorObject> {
        if kind != ListKind::Tools {
            return Ok(Page { items: Vec::new(), next_cursor: None });
        }
        match cursor {
            None => Ok(Page {
                items: vec![raw(r#"{"name":"echo","inputSchema":{"type":"object"},"x-vendor":1}"#)],
                next_cursor: Some("2".into()),
            }),
            Some("2") => Ok(Page {
                items: vec![raw(&format!(
                    r#"{{"name":"of_{}","inputSchema":{{"type":"object"}}}}"#,
                    caller.persona
                ))],
                next_cursor: None,
            }),
            Some(_) => Err(ErrorObject::new(-32602, "unknown cursor")),
        }
    }

    /// `echo` answers its arguments; `slow` takes 300 ms and tells two steps; `stuck` waits to be
    /// cancelled; `chatty` tells very much; `big` answers with a megabyte.
    async fn forward(&self, caller: &Caller, deed: Deed, call: Call) -> Outcome {
        if deed == Deed::Subscribe {
            return Outcome::Result(raw("{}"));
        }
        let params = call.params.get().to_owned();
        self.0.calls.lock().unwrap().push((caller.clone(), params.clone()));
        let name = edit::get(&params, "/name").and_then(edit::string).unwrap();
        match name.as_str() {
            "echo" => text_result(edit::get(&params, "/arguments").unwrap_or("none")),
            "slow" => {
                for step in 1..=2 {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    if let Some(progress) = &call.progress {
                        let params = raw(&format!(r#"{{"progressToken":"ours","progress":{step}}}"#));
                        progress.send(Progress { params }).await.unwrap();
                    }
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                text_result(edit::get(&params, "/arguments").unwrap_or("none"))
            }
            "stuck" => {
                call.cancel.cancelled().await;
                self.0.cancelled.lock().unwrap().push(name);
                text_result("cancelled")
            }
            "chatty" => {
                let pad = "x".repeat(CHATTY_STEP);
                for step in 0..CHATTY_STEPS {
                    let params = raw(&format!(r#"{{"progress":{step},"message":"{pad}"}}"#));
                    call.progress.as_ref().unwrap().send(Progress { params }).await.unwrap();
                }
                self.0.finished.lock().unwrap().push(name);
                text_result("told")
            }
            "big" => text_result(&"x".repeat(1 << 20)),
            _ => Outcome::Error(ErrorObject::new(-32602, "unknown tool")),
        }
    }

    async fn unsubscribe(&self, _: &Caller, _: &Subscriber, _: &RawValue) -> Outcome {
        Outcome::Result(raw("{}"))
    }

    async fn task(&self, _: &Caller, _: TaskVerb, _: &Id, _: &RawValue) -> Outcome {
        Outcome::Result(raw("{}"))
    }

    async fn listen_for_task(&self, _: &Caller, _: &Id, _: &str, _: &Subscriber) -> Result<(), ErrorObject> {
        Ok(())
    }

    async fn task_told(&self, _: &Caller, _: &Id, _: &str) -> Result<Box<RawValue>, ErrorObject> {
        Ok(raw("{}"))
    }

    async fn offers(&self, _: &Caller) -> Offers {
        Offers::default()
    }

    async fn instructions(&self, caller: &Caller) -> Option<String> {
        Some(format!("for {}", caller.persona))
    }

    fn has_server(&self, _: &str, _: Lane, server: &str) -> bool {
        server != "unknown"
    }

    fn note_dropped(&self, _: DroppedReply) {}

    fn note_false_claim(&self, _: FalseClaim) {}

    fn end_session(&self, session: &str) {
        self.0.ended.lock().unwrap().push(session.to_owned());
    }

    fn stop_opening(&self) {}

    async fn settle(&self) {}

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.0.changes.subscribe()
    }
}
