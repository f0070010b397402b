//! Asks: questions to a person, stored before anybody hears of them, and the call that waits.
//!
//! Contract: a grant is spent by exactly the call it was given for: same caller, server, definition,
//! arguments, what goes beside them ([`crate::beside`]) and set of plugins, once (design.md 3.6). An answer
//! in a client is for the session that was asked. A wider grant answers the asks it covers. A call is held for `approvals.hold`, with progress where the client asked for it; the answer may come from
//! the client, from another process or from a webhook, and is looked for in the store, so that it makes
//! no difference which. Whoever stops waiting runs nothing: after a grant the call is judged again, and
//! only a call that is still there spends it.
//!
//! Bounds: eight pending asks of a session; one question at a time for each call. What is too long for a
//! form is said to be cut, and is granted where all of it can be read ([`show`]).
//!
//! Threat: an agent asks until somebody is tired, swaps arguments while a person reads, repeats a
//! granted call, or answers by itself. The first meets the bound, the next two the binding, the last
//! only what the operator let its client answer. What is shown is escaped ([`show`]).

mod about;
mod asking;
mod client;
pub(crate) mod round;
pub(crate) mod seal;
mod show;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc;
use toolgate_plugins::Facts;
use toolgate_signing::Digest;
use toolgate_store::{Ask, AskBinding, AskState, AuditRow, CallFacts, Deed, GrantQuery, StoreError};
use toolgate_upstream::Progress;
use toolgate_wire::{Outcome, edit};

use crate::Gateway;
use crate::call::Waiting;
use crate::caller::Caller;
use crate::decide::Verdict;
use crate::deeds;
use crate::find::Handle;
use crate::reply::ErrorCode;
use about::Whole;

/// Pause between two steps of progress of a call that waits.
const STEP: Duration = Duration::from_secs(5);
/// What one step counts. Far below what a server counts, so that the server's own steps go up.
const STEP_SIZE: f64 = 1e-6;

/// What an ask is about.
pub(crate) struct Question<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) handle: &'a Handle,
    pub(crate) facts: &'a Arc<Facts>,
    pub(crate) verdict: &'a Verdict,
    pub(crate) call: &'a CallFacts,
    /// What goes to the server beside the arguments, canonical JSON; empty for nothing.
    pub(crate) beside: String,
}

/// What became of an ask.
pub(crate) enum Settled {
    /// A grant was there: the call passes, by a grant for once or by a wider one.
    Passed(By),
    /// It was granted while the call waited: judge again, and spend then.
    Answered,
}

/// What let a call pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The policies.
    Policies,
    /// A grant for this call, which is spent.
    Once,
    /// A grant for a session or a persona.
    Wider,
}

impl By {
    /// The word in the journal of tasks.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Policies => "policies",
            Self::Once => "once",
            Self::Wider => "wider",
        }
    }

    /// From what [`Self::as_str`] gave; anything else opens nothing that a policy does not.
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "once" => Self::Once,
            "wider" => Self::Wider,
            _ => Self::Policies,
        }
    }
}

enum Woken {
    Granted,
    Rejected(Box<Ask>),
    Expired,
    Parked,
    Cancelled,
}

impl Gateway {
    /// Spends a grant for exactly this call, or asks and waits; the outcome of a call that does not pass
    /// names the ask.
    pub(crate) async fn settle(
        &self,
        question: &Question<'_>,
        waiting: &Waiting,
    ) -> Result<Settled, Outcome> {
        let whole = question.whole()?;
        let binding = self.ask_binding(question, &whole);
        if let Some(round) = waiting.round() {
            self.answer_round(question, &whole, &binding, &round).await?;
        }
        match self.store.spend(&binding) {
            Ok(Some(_)) => return Ok(Settled::Passed(By::Once)),
            Ok(None) => {}
            Err(error) => return Err(question.unreadable(&error)),
        }
        if self.has_grant(question)? {
            return Ok(Settled::Passed(By::Wider));
        }
        let ask = self.recorded(question, &whole, &binding).await?;
        if ask.state == AskState::Granted {
            // Somebody answered between the two looks.
            return Ok(Settled::Answered);
        }
        if let Some(outcome) = self.as_round(question, &whole, &ask, waiting) {
            return Err(outcome);
        }
        match self.hold(question, &whole, &ask, waiting).await? {
            Woken::Granted => Ok(Settled::Answered),
            Woken::Rejected(ask) => Err(question.rejected(&ask)),
            Woken::Expired => Err(question.expired(&ask)),
            Woken::Parked => Err(question.parked(&ask)),
            Woken::Cancelled => {
                // The client hears nothing; the log does.
                self.store.append_detached(AuditRow::cancelled(question.call));
                Err(question.refuse(ErrorCode::Cancelled, "the call was given up while it waited", None))
            }
        }
    }

    /// Whether a grant for the session or the persona covers this.
    pub(crate) fn has_grant(&self, question: &Question<'_>) -> Result<bool, Outcome> {
        let identity = question.handle.server.identity();
        let query = GrantQuery {
            persona: &question.caller.persona,
            session: &question.caller.session,
            server_identity: &identity,
            action: deeds::action(question.call.deed),
            tool: &question.handle.subject,
            definition: &question.handle.item.digest,
        };
        self.store.grant_for(&query).map(|grant| grant.is_some()).map_err(|error| question.unreadable(&error))
    }

    fn ask_binding(&self, question: &Question<'_>, whole: &Whole) -> AskBinding {
        // What a person granted of one deed opens no other: not a subscription where a read was meant. Canonical
        // JSON has no line breaks, so the parts cannot run into each other.
        let arguments = match (question.call.deed, whole.beside.as_str()) {
            (Deed::Call, "") => Digest::of(whole.arguments.as_bytes()),
            (deed, "") => {
                Digest::of_parts(&[deeds::method(deed).as_bytes(), b"\n", whole.arguments.as_bytes()])
            }
            (deed, beside) => Digest::of_parts(&[
                deeds::method(deed).as_bytes(),
                b"\n",
                whole.arguments.as_bytes(),
                b"\n",
                beside.as_bytes(),
            ]),
        };
        AskBinding {
            caller: question.caller.binding(),
            session: question.caller.asks_as().to_owned(),
            server_identity: question.handle.server.identity(),
            definition: question.handle.item.digest,
            arguments,
            plugin_set: self.plugins().plugins.set_digest(),
        }
    }

    async fn recorded(
        &self,
        question: &Question<'_>,
        whole: &Whole,
        binding: &AskBinding,
    ) -> Result<Ask, Outcome> {
        let max = toolgate_store::DEFAULT_MAX_PENDING_ASKS;
        let row = |ask: &Ask| {
            let expires = u64::try_from(ask.expires_at_ms).unwrap_or(0);
            AuditRow::asked(question.call, &ask.id, &question.verdict.reason, expires)
        };
        let about = question.about(whole);
        match self.store.record_ask(binding, &about, self.config.approvals.timeout, max, row).await {
            Ok(recorded) => Ok(recorded.ask),
            Err(error) if error.is_unrecorded() => Err(question.unrecorded(&error)),
            Err(error @ (StoreError::TooManyAsks { .. } | StoreError::AsksTooLong { .. })) => {
                let row = AuditRow::denied(question.call, "too_many_asks", None, &error.to_string());
                self.note_refusal(row).await;
                Err(question.refuse(ErrorCode::TooManyAsks, &error.to_string(), None))
            }
            Err(error) => Err(question.unreadable(&error)),
        }
    }

    /// Waits for an answer from anywhere, at most for `approvals.hold`.
    async fn hold(
        &self,
        question: &Question<'_>,
        whole: &Whole,
        ask: &Ask,
        waiting: &Waiting,
    ) -> Result<Woken, Outcome> {
        let begun = Instant::now();
        let mut changes = self.watch.changes();
        let asking = self.ask_in_client(question, whole, ask, waiting);
        tokio::pin!(asking);
        let mut may_ask = true;
        let mut steps = 0.0;
        loop {
            // Looked at after the receiver exists, so that no change falls between.
            changes.mark_unchanged();
            if let Some(woken) = self.answer_of(question, ask)? {
                return Ok(woken);
            }
            let left = waiting.hold.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(Woken::Parked);
            }
            tokio::select! {
                () = waiting.cancel.cancelled() => return Ok(Woken::Cancelled),
                said = &mut asking, if may_ask => {
                    may_ask = false;
                    if let Some(grant) = said {
                        self.answer(ask, grant, question.caller).await.map_err(|error| question.unreadable(&error))?;
                    }
                }
                _ = changes.changed() => {}
                () = tokio::time::sleep(left.min(STEP)) => {
                    steps += STEP_SIZE;
                    tell(waiting.progress.as_ref(), ask, steps);
                }
            }
        }
    }

    /// How an ask stands now; `None` while nobody answered.
    fn answer_of(&self, question: &Question<'_>, ask: &Ask) -> Result<Option<Woken>, Outcome> {
        let now = match self.store.ask(&ask.id) {
            Ok(now) => now,
            Err(error) => return Err(question.unreadable(&error)),
        };
        Ok(match now {
            Some(now) => match now.state {
                AskState::Pending => None,
                // Spent by the same call on another connection: judged again, it asks again.
                AskState::Granted | AskState::Spent => Some(Woken::Granted),
                AskState::Denied => Some(Woken::Rejected(Box::new(now))),
                AskState::Expired => {
                    if let Err(error) = self.store.report_expired_asks() {
                        tracing::error!(%error, "an expired ask is not in the audit log yet");
                    }
                    Some(Woken::Expired)
                }
            },
            None => Some(Woken::Expired),
        })
    }
}

/// A step of progress, so that a client that waits does not give up. It may be lost.
fn tell(progress: Option<&mpsc::Sender<Progress>>, ask: &Ask, step: f64) {
    let Some(progress) = progress else { return };
    let message = format!("waiting for a person to answer {}", ask.id);
    if let Ok(params) = edit::raw(json!({ "progress": step, "message": message }).to_string()) {
        let _ = progress.try_send(Progress { params });
    }
}
