//! Asks on their way to a webhook (`approvals.webhook`), and its signed answers on their way back.
//!
//! ```text
//! state.db ── pending asks ──▶ one task an ask ── POST, signed by HMAC ──▶ webhook ──▶ a person
//!     ◀── answer, row first ── envelope signed by a key of the operator ◀────────────────┘
//! ```
//!
//! Contract: each pending ask is shown to the webhook until it is answered there or elsewhere, or expires.
//! 200 carries the answer, 202 says that there is none yet; anything else is tried again, after 1 s
//! doubling to 60 s. An answer counts when a key under `approvals.webhook.keys` signed it for exactly this
//! ask and this call. It grants the call once and never more. Nothing here decides what passes: the call
//! that waits, or its repetition, is judged again and spends the grant.
//!
//! Bounds: 64 asks on their way, 90 s an exchange, 64 KiB of an answer.
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

/// Shows what is pending, each ask in a task of its own.
async fn show_all(courier: Arc<Courier>, stop: CancellationToken) {
    let mut open: HashSet<String> = HashSet::new();
    let mut tasks: JoinSet<String> = JoinSet::new();
    loop {
        match courier.store.asks(Some(AskState::Pending)) {
            Ok(pending) => {
                let new = pending.into_iter().filter(|ask| !open.contains(&ask.id)).collect::<Vec<_>>();
                for ask in new.into_iter().take(MAX_OPEN.saturating_sub(open.len())) {
                    open.insert(ask.id.clone());
                    let courier = Arc::clone(&courier);
                    tasks.spawn(async move {
                        courier.show(&ask).await;
                        ask.id
                    });
                }
            }
            Err(error) => tracing::error!(%error, "asks cannot be read, so the webhook is not asked"),
        }
        tokio::select! {
            () = stop.cancelled() => break,
            Some(Ok(closed)) = tasks.join_next() => { open.remove(&closed); }
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    tasks.shutdown().await;
}

struct Courier {
    exchange: Exchange,
    store: Store,
    keys: Vec<toolgate_signing::PublicKey>,
}

impl Courier {
    /// Shows one ask until it is no longer pending.
    async fn show(&self, ask: &Ask) {
        let mut backoff = Backoff::default();
        let mut warned = false;
        while self.is_pending(ask) {
            let pause = match self.turn(ask).await {
                Ok(Some(pause)) => {
                    backoff = Backoff::default();
                    pause
                }
                Ok(None) => return,
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
            tokio::time::sleep(pause).await;
        }
    }

    /// One exchange. `Ok(Some)`: nobody answered yet, ask again after so long; `Ok(None)`: it is settled.
    async fn turn(&self, ask: &Ask) -> Result<Option<Duration>, String> {
        let envelope = match self.exchange.post(ask).await? {
            Reply::Later(pause) => return Ok(Some(pause)),
            Reply::Answer(envelope) => envelope,
        };
        match read_answer(&envelope, ask, &self.keys) {
            Ok(said) => self.settle(ask, said).await.map(|()| None),
            Err(error) => {
                let reason = error.to_string();
                if let Err(error) = self.store.append(AuditRow::answer_refused(ask, SURFACE, &reason)).await {
                    tracing::error!(%error, "a refused answer is not in the audit log");
                }
                Err(format!("its answer does not count: {reason}"))
            }
        }
    }

    async fn settle(&self, ask: &Ask, said: Said) -> Result<(), String> {
        let answer = Answer { grant: said.grant, by: said.by, surface: SURFACE };
        match self.store.answer_ask(&ask.id, &answer).await {
            // Somebody was faster; theirs counts.
            Ok(_) | Err(StoreError::AskClosed { .. }) => Ok(()),
            Err(error) => Err(format!("its answer cannot be recorded: {error}")),
        }
    }

    fn is_pending(&self, ask: &Ask) -> bool {
        match self.store.ask(&ask.id) {
            Ok(now) => now.is_some_and(|now| now.state == AskState::Pending),
            Err(error) => {
                tracing::error!(%error, ask = ask.id, "an ask cannot be read");
                true
            }
        }
    }
}
