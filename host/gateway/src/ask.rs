//! Asks: questions to a person, stored before anybody hears of them, and the call that waits.
//!
//! Contract: a grant is spent by exactly the call it was given for: same caller, server, definition,
//! arguments and set of plugins, once (design.md 3.6). A wider grant answers the asks it covers. A call
//! is held for `approvals.hold`, with progress where the client asked for it; the answer may come from
//! the client, from another process or from a webhook, and is looked for in the store, so that it makes
//! no difference which. Whoever stops waiting runs nothing: after a grant the call is judged again, and
//! only a call that is still there spends it.
//!
//! Bounds: eight pending asks of a caller; one question at a time for each call.
//!
//! Threat: an agent asks until somebody is tired, swaps arguments while a person reads, repeats a
//! granted call, or answers by itself. The first meets the bound, the next two the binding, the last
//! only what the operator let its client answer. What is shown is escaped ([`show`]).

mod client;
pub(crate) mod round;
pub(crate) mod seal;
mod show;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc;
use toolgate_plugins::{Document, Facts};
use toolgate_signing::{Digest, canonical_json};
use toolgate_store::{
    Answer, Ask, AskAbout, AskBinding, AskState, AuditRow, CallFacts, Deed, GrantQuery, StoreError,
};
use toolgate_upstream::Progress;
use toolgate_wire::{Outcome, edit};

use crate::Gateway;
use crate::call::Waiting;
use crate::caller::Caller;
use crate::decide::Verdict;
use crate::deeds;
use crate::find::Handle;
use crate::reply::{self, ErrorCode, ErrorDetails};
use client::Said;

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
        let binding = self.ask_binding(question)?;
        if let Some(round) = waiting.round() {
            self.answer_round(question, &binding, &round).await?;
        }
        match self.store.spend(&binding) {
            Ok(Some(_)) => return Ok(Settled::Passed(By::Once)),
            Ok(None) => {}
            Err(error) => return Err(question.unreadable(&error)),
        }
        if self.has_grant(question)? {
            return Ok(Settled::Passed(By::Wider));
        }
        let ask = self.recorded(question, &binding).await?;
        if ask.state == AskState::Granted {
            // Somebody answered between the two looks.
            return Ok(Settled::Answered);
        }
        if let Some(outcome) = self.as_round(question, &ask, waiting) {
            return Err(outcome);
        }
        match self.hold(question, &ask, waiting).await? {
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

    fn ask_binding(&self, question: &Question<'_>) -> Result<AskBinding, Outcome> {
        let arguments = question.arguments();
        let canonical = canonical_json(arguments).map_err(|error| {
            let text = format!("the arguments cannot be asked about: {error}");
            question.refuse(ErrorCode::Denied, &text, None)
        })?;
        // What a person granted of one deed opens no other: not a subscription where a read was meant.
        let arguments = match question.call.deed {
            Deed::Call => Digest::of(canonical.as_bytes()),
            other => Digest::of_parts(&[deeds::method(other).as_bytes(), b"\n", canonical.as_bytes()]),
        };
        Ok(AskBinding {
            caller: question.caller.binding(),
            server_identity: question.handle.server.identity(),
            definition: question.handle.item.digest,
            arguments,
            plugin_set: self.plugins().plugins.set_digest(),
        })
    }

    async fn recorded(&self, question: &Question<'_>, binding: &AskBinding) -> Result<Ask, Outcome> {
        let max = toolgate_store::DEFAULT_MAX_PENDING_ASKS;
        match self.store.record_ask(binding, &question.about(), self.config.approvals.timeout, max) {
            Ok(recorded) => {
                let ask = recorded.ask;
                if recorded.is_new {
                    let expires = u64::try_from(ask.expires_at_ms).unwrap_or(0);
                    let row = AuditRow::asked(question.call, &ask.id, &question.verdict.reason, expires);
                    self.note_refusal(row).await;
                }
                Ok(ask)
            }
            Err(error @ StoreError::TooManyAsks { .. }) => {
                let row = AuditRow::denied(question.call, "too_many_asks", None, &error.to_string());
                self.note_refusal(row).await;
                Err(question.refuse(ErrorCode::TooManyAsks, &error.to_string(), None))
            }
            Err(error) => Err(question.unreadable(&error)),
        }
    }

    /// Waits for an answer from anywhere, at most for `approvals.hold`.
    async fn hold(&self, question: &Question<'_>, ask: &Ask, waiting: &Waiting) -> Result<Woken, Outcome> {
        let begun = Instant::now();
        let mut changes = self.watch.changes();
        let asking = self.ask_in_client(question, ask, waiting);
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

    /// Whether the client of this caller may be asked (design.md 3.6).
    fn may_ask_client(&self, question: &Question<'_>, waiting: &Waiting) -> bool {
        if question.handle.server.trust.host_escape || !waiting.client.shows_forms() {
            return false;
        }
        let persona = self.config.personas.get(&question.caller.persona);
        let stated = persona.and_then(|persona| persona.approvals.in_client);
        stated.unwrap_or(question.caller.credential == "stdio")
    }

    /// Asks on the client's session. `None`: no answer; never resolves where it cannot be asked.
    async fn ask_in_client(&self, question: &Question<'_>, ask: &Ask, waiting: &Waiting) -> Option<bool> {
        let form = client::raw_form(ask).filter(|_| self.may_ask_client(question, waiting));
        let (Some(asker), Some(form)) = (waiting.client.asker(), form) else {
            return std::future::pending().await;
        };
        match asker.ask(client::METHOD, form).await {
            Ok(outcome) => match client::said_by(&outcome) {
                Said::Allow => Some(true),
                Said::Deny => Some(false),
                Said::Nothing => None,
            },
            Err(error) => {
                tracing::debug!(%error, ask = %ask.id, "the client gave no answer");
                None
            }
        }
    }

    /// The question as a result that asks for input, for a client of the stateless era.
    fn as_round(&self, question: &Question<'_>, ask: &Ask, waiting: &Waiting) -> Option<Outcome> {
        if !deeds::has_rounds(question.call.deed)
            || !waiting.client.has_rounds()
            || waiting.had_round
            || waiting.hold.is_zero()
            || !self.may_ask_client(question, waiting)
        {
            return None;
        }
        let state = self.seal.make(&ask.id, &question.caller.sealed_for(), ask.expires_at_ms);
        let request = json!({ "method": client::METHOD, "params": client::form(ask) });
        let result = json!({
            "resultType": "input_required",
            "inputRequests": { (round::KEY): request },
            "requestState": state,
        });
        edit::raw(result.to_string()).ok().map(Outcome::Result)
    }

    /// Applies the answer that came with a repeated call, if it is about the open ask of exactly this
    /// call: other arguments have another ask, which it does not touch.
    async fn answer_round(
        &self,
        question: &Question<'_>,
        binding: &AskBinding,
        round: &round::Round,
    ) -> Result<(), Outcome> {
        let id = match self.seal.open(&round.state, &question.caller.sealed_for(), seal::now_ms()) {
            Ok(id) => id,
            Err(reason) => {
                let text =
                    format!("params.requestState is not accepted: {reason}; repeat the call without it");
                return Err(self.answer_refused(question, text).await);
            }
        };
        let ask = self.store.ask(&id).map_err(|error| question.unreadable(&error))?;
        let Some(ask) = ask.filter(|ask| ask.binding == *binding) else {
            let text = "params.requestState answers a question about another call; repeat that call, or \
                        this one without it";
            return Err(self.answer_refused(question, text.to_owned()).await);
        };
        let grant = match round.said {
            Said::Allow => true,
            Said::Deny => false,
            Said::Nothing => return Ok(()),
        };
        self.answer(&ask, grant, question.caller).await.map_err(|error| question.unreadable(&error))?;
        if grant { Ok(()) } else { Err(question.rejected(&ask)) }
    }

    /// An answer that came with a call and is none to it: a replay, somebody else's, or one for other
    /// arguments.
    async fn answer_refused(&self, question: &Question<'_>, text: String) -> Outcome {
        self.note_refusal(AuditRow::denied(question.call, "request_state", None, &text)).await;
        Outcome::Error(reply::invalid_params(text))
    }

    /// Records the answer of the person at the client. One that came too late changes nothing.
    async fn answer(&self, ask: &Ask, grant: bool, caller: &Caller) -> Result<(), StoreError> {
        let by = format!("client of {} ({})", caller.credential, caller.session);
        let answer = Answer { grant, by, surface: "client" };
        let answered = self.store.answer_ask(&ask.id, &answer).await;
        self.watch.wake();
        match answered {
            Ok(_) | Err(StoreError::AskClosed { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Question<'_> {
    fn arguments(&self) -> &str {
        self.facts.document.as_ref().map_or("{}", Document::text)
    }

    fn about(&self) -> AskAbout {
        AskAbout {
            persona: self.caller.persona.clone(),
            server: self.handle.server.name.clone(),
            tool: self.handle.subject.clone(),
            reason: self.verdict.reason.clone(),
            arguments: self.arguments().to_owned(),
            action: deeds::action(self.call.deed).to_owned(),
            session: self.caller.session.clone(),
            host_escape: self.handle.server.trust.host_escape,
            run_id: self.caller.run_id.clone(),
            thread_id: self.caller.thread_id.clone(),
        }
    }

    fn parked(&self, ask: &Ask) -> Outcome {
        let text = show::for_model(self.caller, ask, self.facts, self.verdict);
        self.refuse(ErrorCode::Asked, &text, Some(ask))
    }

    fn rejected(&self, ask: &Ask) -> Outcome {
        let text = match ask.surface.as_deref() {
            Some("freeze") => format!(
                "Ask {} was taken back: what it is about is frozen. Nothing was sent to server '{}'.",
                ask.id, self.handle.server.name
            ),
            _ => format!(
                "A person denied this (ask {}). Nothing was sent to server '{}'. Do not repeat it \
                 unless your user tells you to.",
                ask.id, self.handle.server.name
            ),
        };
        self.refuse(ErrorCode::Denied, &text, Some(ask))
    }

    fn expired(&self, ask: &Ask) -> Outcome {
        let text = format!(
            "Nobody answered ask {} in time, so the call was rejected. Nothing was sent to server '{}'.",
            ask.id, self.handle.server.name
        );
        self.refuse(ErrorCode::Unanswered, &text, Some(ask))
    }

    fn unreadable(&self, error: &StoreError) -> Outcome {
        tracing::error!(%error, "asks cannot be read or written, so the request is refused");
        let text = "the store of approvals cannot be used, so nothing was sent. \
                    The operator finds the reason in Toolgate's log.";
        self.refuse(ErrorCode::Internal, text, None)
    }

    fn refuse(&self, code: ErrorCode, text: &str, ask: Option<&Ask>) -> Outcome {
        let details = ErrorDetails {
            server: Some(self.handle.server.name.clone()),
            ask: ask.map(|ask| ask.id.clone()),
            by: ask.and(self.verdict.by.clone()),
        };
        reply::refuse(self.call.deed, code, text, &details)
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
