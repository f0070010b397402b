//! The client that a call came from is asked, in either era, and its answer counts for that call.
//!
//! Contract: a question is put to a client where the operator lets it answer, and to no other one: the ask is
//! its session's. An answer opens no more than was offered with the question.

use serde_json::json;
use toolgate_store::{Answer, Ask, AskBinding, AuditRow, StoreError};
use toolgate_wire::{Outcome, edit};

use super::about::Whole;
use super::client::{self, Said};
use super::show::{self, Card};
use super::{Question, round, seal};
use crate::Gateway;
use crate::call::Waiting;
use crate::caller::Caller;
use crate::deeds;
use crate::reply;

impl Gateway {
    /// Whether the client of this caller may be asked (design.md 3.6).
    pub(super) fn may_ask_client(&self, question: &Question<'_>, waiting: &Waiting) -> bool {
        if question.handle.server.trust.host_escape || !waiting.client.shows_forms() {
            return false;
        }
        let persona = self.config.personas.get(&question.caller.persona);
        let stated = persona.and_then(|persona| persona.approvals.in_client);
        stated.unwrap_or(question.caller.credential == "stdio")
    }

    /// Asks on the client's session. `None`: no answer; never resolves where it cannot be asked.
    pub(super) async fn ask_in_client(
        &self,
        question: &Question<'_>,
        whole: &Whole,
        ask: &Ask,
        waiting: &Waiting,
    ) -> Option<bool> {
        let card = self.card(question, whole, ask);
        let form = client::raw_form(&card).filter(|_| self.may_ask_client(question, waiting));
        let (Some(asker), Some(form)) = (waiting.client.asker(), form) else {
            return std::future::pending().await;
        };
        match asker.ask(client::METHOD, form).await {
            Ok(outcome) => match client::said_by(&outcome).within(card.offer) {
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
    pub(super) fn as_round(
        &self,
        question: &Question<'_>,
        whole: &Whole,
        ask: &Ask,
        waiting: &Waiting,
    ) -> Option<Outcome> {
        if !deeds::has_rounds(question.call.deed)
            || !waiting.client.has_rounds()
            || waiting.had_round
            || waiting.hold.is_zero()
            || !self.may_ask_client(question, waiting)
        {
            return None;
        }
        let state = self.seal.make(&ask.id, &question.caller.sealed_for(), ask.expires_at_ms);
        let form = client::form(&self.card(question, whole, ask));
        let request = json!({ "method": client::METHOD, "params": form });
        let result = json!({
            "resultType": "input_required",
            "inputRequests": { (round::KEY): request },
            "requestState": state,
        });
        edit::raw(result.to_string()).ok().map(Outcome::Result)
    }

    /// The ask as the client shows it, and what may be answered there: what does not fit is granted where all
    /// of it can be read, unless the persona's `approvals.cut` says otherwise.
    fn card(&self, question: &Question<'_>, whole: &Whole, ask: &Ask) -> Card {
        let persona = self.config.personas.get(&question.caller.persona);
        show::for_person(ask, whole, persona.map(|persona| persona.approvals.cut).unwrap_or_default())
    }

    /// Applies the answer that came with a repeated call, if it is about the open ask of exactly this
    /// call: other arguments have another ask, which it does not touch.
    pub(super) async fn answer_round(
        &self,
        question: &Question<'_>,
        whole: &Whole,
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
        let grant = match round.said.within(self.card(question, whole, &ask).offer) {
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
    pub(super) async fn answer(&self, ask: &Ask, grant: bool, caller: &Caller) -> Result<(), StoreError> {
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
