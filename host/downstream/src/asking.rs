//! Requests from here to a client of the initialize era, on its session.
//!
//! **Contract.** Ids are the session's own, so that they meet nobody else's. Each question ends once:
//! with the client's answer, when the session ends or starts over, or when whoever asked no longer
//! wants to know, which the client is told with `notifications/cancelled`.
//!
//! **Bounds.** [`MAX_WAITING`] questions of one session at a time.
//!
//! **Threat.** A client answers what nobody asked, or twice: such a response is let go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use toolgate_gateway::{AskError, Asker};
use toolgate_wire::{Id, Outcome, Request, Response};

use crate::reply;

/// Questions of one session that may wait at a time.
const MAX_WAITING: usize = 64;
/// What our ids begin with.
const PREFIX: &str = "toolgate-";

/// The way to the client: takes a message and tells whether it left.
pub(crate) type Outlet = Arc<dyn Fn(String) -> BoxFuture<'static, bool> + Send + Sync>;

/// The questions of one session that wait.
#[derive(Debug, Default)]
pub(crate) struct Asking(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    waiting: HashMap<u64, oneshot::Sender<Outcome>>,
}

impl Asking {
    /// Hands a response of the client to whoever asked. False if nobody did.
    pub(crate) fn answered(&self, response: Response) -> bool {
        let asked = response.id.as_ref().and_then(number).and_then(|id| self.lock().waiting.remove(&id));
        // Whoever asked may have stopped waiting just now.
        asked.is_some_and(|asked| asked.send(response.outcome).is_ok())
    }

    /// Ends all questions without an answer.
    pub(crate) fn end(&self) {
        self.lock().waiting.clear();
    }

    fn begin(&self) -> Result<(u64, oneshot::Receiver<Outcome>), AskError> {
        let mut table = self.lock();
        if table.waiting.len() >= MAX_WAITING {
            return Err(AskError::NoWay);
        }
        let id = table.next;
        table.next = id.wrapping_add(1);
        let (sender, receiver) = oneshot::channel();
        table.waiting.insert(id, sender);
        Ok((id, receiver))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn id_of(number: u64) -> Id {
    Id::text(format!("{PREFIX}{number}"))
}

fn number(id: &Id) -> Option<u64> {
    let text = serde_json::to_value(id).ok()?;
    text.as_str()?.strip_prefix(PREFIX)?.parse().ok()
}

/// A session and the way to its client.
pub(crate) struct SessionAsker {
    asking: Arc<Asking>,
    outlet: Outlet,
}

impl SessionAsker {
    pub(crate) fn new(asking: Arc<Asking>, outlet: Outlet) -> Arc<Self> {
        Arc::new(Self { asking, outlet })
    }
}

#[async_trait]
impl Asker for SessionAsker {
    async fn ask(&self, method: &str, params: Box<RawValue>) -> Result<Outcome, AskError> {
        let (number, answer) = self.asking.begin()?;
        let mut asked = Asked { asker: self, number, open: true };
        if !(self.outlet)(Request::new(id_of(number), method, Some(params)).to_text()).await {
            return Err(AskError::Gone);
        }
        let answer = answer.await.map_err(|_| AskError::Gone);
        asked.open = false;
        answer
    }
}

/// A question on its way; dropped before its answer it is taken back.
struct Asked<'a> {
    asker: &'a SessionAsker,
    number: u64,
    open: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let waited = self.asker.asking.lock().waiting.remove(&self.number).is_some();
        if !self.open || !waited {
            return;
        }
        let params = format!(r#"{{"requestId":{}}}"#, reply::id_text(&id_of(self.number)));
        let cancelled = (self.asker.outlet)(reply::notification("notifications/cancelled", Some(&params)));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(cancelled);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;
    use toolgate_wire::Message;

    use super::*;

    fn asker() -> (Arc<Asking>, Arc<SessionAsker>, mpsc::Receiver<String>) {
        let asking = Arc::new(Asking::default());
        let (sender, sent) = mpsc::channel(8);
        let outlet: Outlet = Arc::new(move |text| {
            let sender = sender.clone();
            Box::pin(async move { sender.send(text).await.is_ok() })
        });
        (Arc::clone(&asking), SessionAsker::new(asking, outlet), sent)
    }

    fn params() -> Box<RawValue> {
        RawValue::from_string("{}".to_owned()).unwrap()
    }

    #[tokio::test]
    async fn a_question_gets_its_own_answer_and_a_stray_one_is_let_go() {
        let (asking, asker, mut sent) = asker();
        let running = tokio::spawn(async move { asker.ask("elicitation/create", params()).await });
        let Ok(Message::Request(request)) = Message::parse(&sent.recv().await.unwrap()) else { panic!() };
        assert_eq!(request.method, "elicitation/create");
        assert!(!asking.answered(Response::result(Id::text("toolgate-99"), params())));
        assert!(!asking.answered(Response::result(Id::text("x"), params())));
        assert!(asking.answered(Response::result(request.id.clone(), params())));
        assert!(!asking.answered(Response::result(request.id, params())), "a second time");
        assert!(matches!(running.await.unwrap(), Ok(Outcome::Result(_))));
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_is_taken_back_and_the_end_of_a_session_ends_it() {
        let (asking, asker, mut sent) = asker();
        let waited = tokio::time::timeout(Duration::from_millis(10), asker.ask("m", params())).await;
        assert!(waited.is_err());
        sent.recv().await.unwrap();
        assert!(sent.recv().await.unwrap().contains("notifications/cancelled"));
        let running = tokio::spawn(async move { asker.ask("m", params()).await });
        sent.recv().await.unwrap();
        asking.end();
        assert!(matches!(running.await.unwrap(), Err(AskError::Gone)));
    }
}
