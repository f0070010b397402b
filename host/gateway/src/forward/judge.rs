//! The verdict on one request, the ask where a person has to answer, and the turn that a rate limit
//! makes it wait for (steps 5 to 7 of the path of one call).
//!
//! Contract: what waited is judged again. A freeze ends it wherever it is.

use std::sync::Arc;

use serde_json::value::RawValue;
use toolgate_plugins::{Document, Facts, Moment};
use toolgate_store::AuditRow;

use super::{MAX_REVIEWS, Path, Stop};
use crate::ask::{By, Question, Settled};
use crate::decide::{Ruling, Verdict};
use crate::reply::{self, ErrorCode, ErrorDetails};
use crate::{beside, deeds, views};

impl Path {
    /// Steps 5 and 6: the verdict, and the ask where a person has to answer. An answer that came while
    /// the call waited is followed by another verdict, which may have become another.
    pub(super) async fn judge(&self, params: &RawValue, document: &Document) -> Result<By, Stop> {
        self.record(Moment::Policy(deeds::hook(self.deed)), document);
        let facts = self.facts(Some(document.clone()));
        for review in 0..=MAX_REVIEWS {
            let verdict = self.verdict(&facts);
            if review == 0 {
                self.gateway.note_monitored(&self.call, deeds::hook(self.deed), &verdict);
            }
            match verdict.ruling {
                Ruling::Allow => return Ok(By::Policies),
                Ruling::Deny => return Err(self.denied(&verdict).await),
                Ruling::Ask => {}
            }
            let beside =
                beside::of(self.deed, params).map_err(|error| self.refuse(ErrorCode::Denied, &error))?;
            let question = Question { beside, ..self.question(&facts, &verdict) };
            match self.gateway.settle(&question, &self.waiting).await.map_err(Stop)? {
                Settled::Passed(by) => return Ok(by),
                Settled::Answered => {}
            }
        }
        Err(self.refuse(ErrorCode::Denied, "the grant was used up by the same call on another connection"))
    }

    fn verdict(&self, facts: &Arc<Facts>) -> Verdict {
        let binding = self.gateway.binding(&self.caller, &self.handle.server.name);
        let in_force = self.gateway.plugins();
        views::judge(&in_force.views, &in_force.plugins, &binding, deeds::hook(self.deed), facts)
    }

    fn question<'b>(&'b self, facts: &'b Arc<Facts>, verdict: &'b Verdict) -> Question<'b> {
        let beside = String::new();
        Question { caller: &self.caller, handle: &self.handle, facts, verdict, call: &self.call, beside }
    }

    /// After a wait: whether what let the call pass still does. A grant for once is spent already.
    pub(crate) fn still_passes(&self, document: &Document, by: By) -> Result<bool, Stop> {
        let facts = self.facts(Some(document.clone()));
        let verdict = self.verdict(&facts);
        match (verdict.ruling, by) {
            (Ruling::Allow, _) | (Ruling::Ask, By::Once) => Ok(true),
            (Ruling::Ask, By::Wider) => {
                self.gateway.has_grant(&self.question(&facts, &verdict)).map_err(Stop)
            }
            (Ruling::Ask, By::Policies) | (Ruling::Deny, _) => Ok(false),
        }
    }

    /// Step 7: a token of the persona's bucket for this server. Whether the call had to wait for it.
    pub(super) async fn take_token(&self) -> Result<bool, Stop> {
        let deadline = self.handle.server.timeouts.max_total;
        let waiting = self.gateway.rates.take(&self.handle.server, &self.caller.persona);
        tokio::select! {
            biased;
            waited = waiting => Ok(waited),
            () = self.waiting.cancel.cancelled() => {
                self.note(AuditRow::cancelled(&self.call));
                Err(self.refuse(ErrorCode::Cancelled, "it was given up while it waited for its turn"))
            }
            () = self.frozen.cancelled() => Ok(true),
            () = tokio::time::sleep(deadline) => {
                let text = "no turn came within timeouts.max_total; nothing was sent";
                self.gateway.note_refusal(AuditRow::denied(&self.call, "rate_limit", None, text)).await;
                Err(self.refuse(ErrorCode::RateLimited, text))
            }
        }
    }

    async fn denied(&self, verdict: &Verdict) -> Stop {
        self.gateway.note_denial(&self.call, verdict).await;
        let text = format!("Denied by Toolgate: {}", verdict.reason);
        let details = ErrorDetails { by: verdict.by.clone(), ..self.details() };
        Stop(reply::refuse(self.deed, ErrorCode::Denied, &text, &details))
    }

    /// Whether it was a freeze, and not its client, that ended this request.
    pub(super) fn ended_by_freeze(&self) -> bool {
        self.frozen.is_cancelled() && !self.waiting.cancel.is_cancelled()
    }

    /// That its server was frozen, with the operator's reason where the freeze still stands.
    pub(crate) fn frozen_words(&self) -> String {
        let server = &self.handle.server.name;
        let current = self.gateway.watch.current();
        match current.frozen(server) {
            Some((reason, thaw)) => format!(
                "server '{server}' was frozen by the operator: {}. The operator ends it with `toolgate thaw {thaw}`",
                toolgate_base::display::escape(reason)
            ),
            None => format!("server '{server}' was frozen by the operator"),
        }
    }

    /// A freeze that came while the server had the request.
    pub(super) fn cut_off(&self, may_have_run: bool) -> Stop {
        let words = self.frozen_words();
        self.note(AuditRow::cancelled(&self.call).with("reason", words.as_str()));
        let ran = if may_have_run {
            "The request had been sent: it may have run, its server was told to cancel it, and it is not \
             repeated"
        } else {
            "Nothing was sent"
        };
        self.refuse(ErrorCode::Cancelled, &format!("{words}. {ran}."))
    }

    /// A freeze that came after the verdict: judged anew the call is denied, with the operator's reason.
    pub(super) async fn refuse_frozen(&self, document: &Document) -> Result<(), Stop> {
        if !self.frozen.is_cancelled() {
            return Ok(());
        }
        let facts = self.facts(Some(document.clone()));
        Err(self.denied(&self.verdict(&facts)).await)
    }
}
