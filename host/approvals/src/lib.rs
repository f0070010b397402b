//! Asks on their way to a webhook (`approvals.webhook`), and its signed answers on their way back.
//!
//! ```text
//! state.db ── pending asks ──▶ one task an ask ── POST, signed by HMAC ──▶ webhook ──▶ a person
//!     ◀── answer, row first ── envelope signed by a key of the operator ◀────────────────┘
//!     ── closed elsewhere ───────────── POST, signed by HMAC ──▶ webhook closes its card
//! ```
//!
//! Contract: each pending ask is shown to the webhook until it is answered there or elsewhere, or expires.
//! 200 carries the answer, 202 says that there is none yet; anything else is tried again, after 1 s
//! doubling to 60 s. An answer counts when a key under `approvals.webhook.keys` signed it for exactly this
//! ask and this call. It grants the call once and never more. Nothing here decides what passes: the call
//! that waits, or its repetition, is judged again and spends the grant. An ask that was shown and ended
//! elsewhere (another surface, time, a freeze) is told as closed, also when an answer of the webhook's came
//! too late to count. What ends while no gateway is served is told to nobody: a card has its expiry.
//!
//! Bounds: 64 asks on their way, 90 s an exchange, 256 KiB each of arguments and of what goes beside them, 64 KiB of an answer; 64 closed asks on their way, each
//! told eight times at most.
//!
//! Threat: an agent with a shell can read the operator's secrets, and could answer its own asks with them.
//! So the shared secret only proves to the webhook who asks; what answers is a private key that is not on
//! this machine. A captured answer is of no use for another ask, because ask and call stand in it.

mod answer;
mod exchange;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_base::Backoff;
use toolgate_config::ApprovalWebhook;
use toolgate_store::{Answer, Ask, AskState, AuditRow, Store, StoreError};

pub use self::answer::{ANSWER_TYPE, AnswerError, Said, read_answer};
use self::exchange::{Exchange, Reply};

/// How often the store is asked for new asks.
const LOOK: Duration = Duration::from_millis(300);
/// Asks that are on their way at a time. More wait until one is closed.
const MAX_OPEN: usize = 64;
/// Closed asks that are on their way at a time; more are not told.
const MAX_CLOSED: usize = 64;
/// How often a webhook that does not take it is told that an ask is closed.
const MAX_TOLD: usize = 8;
/// How long the end waits for what the webhook has to be told.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The surface of these answers in rows and in `approvals list`.
const SURFACE: &str = "webhook";
/// The name in the audit log of what writes here.
const WRITER: &str = "webhook";

/// Why asks do not go to the webhook at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// A variable that its entry names is not set.
    #[error("approvals.webhook needs {0}, which is not set")]
    Missing(String),
    /// The entry cannot be used.
    #[error("approvals.webhook: {0}")]
    Unusable(String),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The task that shows asks, until it is stopped.
#[derive(Debug)]
pub struct Running {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

/// Starts to show asks. Needs a Tokio runtime.
///
/// # Errors
/// [`WebhookError`]; asks are then answered elsewhere or not at all.
pub fn start(data_dir: &Path, webhook: &ApprovalWebhook) -> Result<Running, WebhookError> {
    if let Some(missing) = webhook.missing.first() {
        return Err(WebhookError::Missing(missing.clone()));
    }
    let courier = Arc::new(Courier {
        exchange: Exchange::new(webhook).map_err(WebhookError::Unusable)?,
        // A connection of its own: the gateway notices what another one writes.
        store: Store::open(data_dir, WRITER)?,
        keys: webhook.keys.clone(),
    });
    let stop = CancellationToken::new();
    let task = tokio::spawn(show_all(courier, stop.clone()));
    Ok(Running { stop, task })
}

impl Running {
    /// Ends the task. An exchange that is on its way is given up; its ask stays as it is.
    pub async fn finish(self) {
        self.stop.cancel();
        // A task that panicked has said so.
        let _ = self.task.await;
    }
}

/// Shows what is pending, each ask in a task of its own, and tells what was closed elsewhere.
async fn show_all(courier: Arc<Courier>, stop: CancellationToken) {
    let mut open: HashSet<String> = HashSet::new();
    let mut tasks: JoinSet<(String, Option<Ask>)> = JoinSet::new();
    let mut closings: JoinSet<()> = JoinSet::new();
    loop {
        match courier.store.asks(Some(AskState::Pending)) {
            Ok(pending) => {
                let new = pending.into_iter().filter(|ask| !open.contains(&ask.id)).collect::<Vec<_>>();
                for ask in new.into_iter().take(MAX_OPEN.saturating_sub(open.len())) {
                    open.insert(ask.id.clone());
                    let courier = Arc::clone(&courier);
                    tasks.spawn(async move {
                        let closed = courier.show(&ask).await;
                        (ask.id, closed)
                    });
                }
            }
            Err(error) => tracing::error!(%error, "asks cannot be read, so the webhook is not asked"),
        }
        tokio::select! {
            () = stop.cancelled() => break,
            Some(Ok((id, closed))) = tasks.join_next() => {
                open.remove(&id);
                if let Some(ask) = closed {
                    tell(&courier, &mut closings, ask);
                }
            }
            Some(_) = closings.join_next() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    tasks.shutdown().await;
    let told = async { while closings.join_next().await.is_some() {} };
    // What was not told by then is closed by the expiry that the webhook knows.
    let _ = tokio::time::timeout(LAST_WORDS, told).await;
}

fn tell(courier: &Arc<Courier>, closings: &mut JoinSet<()>, ask: Ask) {
    if closings.len() >= MAX_CLOSED {
        tracing::warn!(
            ask = ask.id,
            "the approvals webhook is not told that an ask is closed: too many wait"
        );
        return;
    }
    let courier = Arc::clone(courier);
    closings.spawn(async move { courier.tell_closed(&ask).await });
}

struct Courier {
    exchange: Exchange,
    store: Store,
    keys: Vec<toolgate_signing::PublicKey>,
}

impl Courier {
    /// Shows one ask until it is no longer pending. Gives it as it then stands, where the webhook saw it and
    /// does not know how it ended.
    async fn show(&self, ask: &Ask) -> Option<Ask> {
        let mut backoff = Backoff::default();
        let (mut seen, mut warned) = (false, false);
        // Kept only while the ask is open; where it cannot be read, what is sent says that it is cut.
        let document = self.store.ask_document(&ask.id).unwrap_or_else(|error| {
            tracing::error!(%error, ask = ask.id, "what an ask is about cannot be read");
            None
        });
        loop {
            if let Some(ended) = self.ended(ask) {
                return seen.then_some(ended);
            }
            // A webhook may hold its reply for as long as a person reads, and is not waited for then.
            let reply = tokio::select! {
                reply = self.exchange.post(ask, document.as_ref()) => reply,
                () = self.until_ended(ask) => Ok(Reply::Later(Duration::ZERO)),
            };
            seen = true;
            let pause = match self.take(ask, reply).await {
                Ok(Turn::Again(pause)) => {
                    backoff = Backoff::default();
                    pause
                }
                Ok(Turn::Settled) => return None,
                Ok(Turn::TooLate) => Duration::ZERO,
                Err(problem) => {
                    if !warned {
                        tracing::warn!(
                            ask = ask.id,
                            problem,
                            "the approvals webhook gives no answer; it is asked again"
                        );
                        warned = true;
                    }
                    backoff.pause()
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.until_ended(ask) => {}
            }
        }
    }

    /// Tells how an ask ended, until the webhook takes it or was told often enough.
    async fn tell_closed(&self, ask: &Ask) {
        let mut backoff = Backoff::default();
        for told in 1..=MAX_TOLD {
            match self.exchange.close(ask).await {
                Ok(()) => return,
                Err(problem) if told == MAX_TOLD => {
                    tracing::warn!(
                        ask = ask.id,
                        problem,
                        "the approvals webhook does not take that an ask is closed"
                    );
                }
                Err(_) => tokio::time::sleep(backoff.pause()).await,
            }
        }
    }

    /// What one reply comes to.
    async fn take(&self, ask: &Ask, reply: Result<Reply, String>) -> Result<Turn, String> {
        let envelope = match reply? {
            Reply::Later(pause) => return Ok(Turn::Again(pause)),
            Reply::Answer(envelope) => envelope,
        };
        match read_answer(&envelope, ask, &self.keys) {
            Ok(said) => self.settle(ask, said).await,
            Err(error) => {
                let reason = error.to_string();
                if let Err(error) = self.store.append(AuditRow::answer_refused(ask, SURFACE, &reason)).await {
                    tracing::error!(%error, "a refused answer is not in the audit log");
                }
                Err(format!("its answer does not count: {reason}"))
            }
        }
    }

    async fn settle(&self, ask: &Ask, said: Said) -> Result<Turn, String> {
        let answer = Answer { grant: said.grant, by: said.by, surface: SURFACE };
        match self.store.answer_ask(&ask.id, &answer).await {
            Ok(_) => Ok(Turn::Settled),
            // Somebody was faster; theirs counts, and the webhook is told so.
            Err(StoreError::AskClosed { .. }) => Ok(Turn::TooLate),
            Err(error) => Err(format!("its answer cannot be recorded: {error}")),
        }
    }

    async fn until_ended(&self, ask: &Ask) {
        while self.ended(ask).is_none() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The ask as it stands when it is pending no more.
    fn ended(&self, ask: &Ask) -> Option<Ask> {
        match self.store.ask(&ask.id) {
            Ok(Some(now)) => (now.state != AskState::Pending).then_some(now),
            Ok(None) => Some(Ask { state: AskState::Expired, ..ask.clone() }),
            Err(error) => {
                tracing::error!(%error, ask = ask.id, "an ask cannot be read");
                None
            }
        }
    }
}

/// What one exchange came to.
enum Turn {
    /// Nobody answered yet; ask again after so long.
    Again(Duration),
    /// The webhook's answer counts.
    Settled,
    /// It came after another one.
    TooLate,
}
