//! Asks and grants of a store.
//!
//! Contract: each has its row before it counts, and what ends together ends in one step.

use std::time::Duration;

use super::Store;
use crate::audit::event::Event;
use crate::audit::row::AuditRow;
use crate::error::StoreError;
use crate::state::asks::{Answer, Ask, AskAbout, AskBinding, AskDocument, AskState, Recorded};
use crate::state::grants::{Grant, GrantQuery, GrantScope, Revoked};

impl Store {
    /// Records that a call waits for a person, or finds the open ask of the same call in the same session. At
    /// most `max_pending` asks of a session may be pending; `ttl` is the life of a new one.
    ///
    /// The row of a new one is committed before there is anything that could be granted.
    ///
    /// # Errors
    /// [`StoreError::NotRecorded`] and its like where the row cannot be written: there is no ask then.
    pub async fn record_ask(
        &self,
        binding: &AskBinding,
        about: &AskAbout,
        ttl: Duration,
        max_pending: usize,
        row: impl FnOnce(&Ask) -> AuditRow + Send,
    ) -> Result<Recorded, StoreError> {
        let planned = self.state.plan_ask(binding, about, ttl, max_pending);
        self.report_expired_asks()?;
        let planned = planned?;
        if !planned.is_new {
            return Ok(planned);
        }
        let announced = row(&planned.ask);
        self.append(announced.clone()).await?;
        let recorded = self.state.record_ask(&planned.ask, about, max_pending);
        let refused = match &recorded {
            Ok(recorded) if recorded.is_new => return Ok(recorded.clone()),
            // Two requests alike came at once.
            Ok(recorded) => format!("the same call is asked about by {} already", recorded.ask.id),
            Err(error) => error.to_string(),
        };
        self.append_detached(announced.with("refused", refused));
        recorded
    }

    /// An ask by its id, as it stands now.
    pub fn ask(&self, id: &str) -> Result<Option<Ask>, StoreError> {
        self.state.ask(id)
    }

    /// All that an open ask is about, however long; `None` where it is closed or unknown.
    pub fn ask_document(&self, id: &str) -> Result<Option<AskDocument>, StoreError> {
        self.state.ask_document(id)
    }

    /// All asks that are kept, oldest first, or those in one state.
    pub fn asks(&self, state: Option<AskState>) -> Result<Vec<Ask>, StoreError> {
        self.state.asks(state)
    }

    /// Answers a pending ask, and writes who answered and where before the answer counts. Only code
    /// that has proof of the operator, or that shows the ask where the persona allows it, calls this.
    pub async fn answer_ask(&self, id: &str, answer: &Answer) -> Result<Ask, StoreError> {
        let ask = self.pending(id)?;
        self.recorded(AuditRow::answered(&ask, answer), || self.state.answer_ask(id, answer)).await
    }

    /// As [`Self::answer_ask`] with a grant that is wider than the call: the call passes once, and the
    /// grant stands beside it.
    pub async fn grant_wider(
        &self,
        id: &str,
        answer: &Answer,
        scope: GrantScope,
        ttl: Option<Duration>,
    ) -> Result<Grant, StoreError> {
        let ask = self.pending(id)?;
        if ask.about.host_escape && scope == GrantScope::Persona {
            return Err(StoreError::GrantTooWide { server: ask.about.server });
        }
        self.state.grant_fits()?;
        let ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let row = AuditRow::answered(&ask, answer).with("scope", scope.as_str()).with("ttl_ms", ttl_ms);
        let grant =
            self.recorded(row, || self.state.add_grant(&ask, scope, ttl, &answer.by, answer.surface)).await?;
        // The wider grant answers the open call as well; one that nobody waits for any more is no error.
        match self.state.answer_ask(id, answer) {
            Ok(_) | Err(StoreError::AskClosed { .. }) => Ok(grant),
            Err(error) => Err(error),
        }
    }

    /// Takes back what this id stands for and is open: a grant for one call, a wider grant, and where one came
    /// with the other both, so that nothing goes on passing. Its row, which says what ends, is written first.
    /// `None`, and no row, where nothing is open.
    pub async fn revoke(&self, id: &str, by: &str) -> Result<Option<Revoked>, StoreError> {
        let open = self.state.revocable(id)?;
        if open.is_empty() {
            return Ok(None);
        }
        let row = AuditRow::new(Event::ApprovalRevoke)
            .with("grant", id)
            .with("ended", open.ids())
            .with("approver", by);
        // Not so where something was spent, granted or taken back in between.
        self.recorded(row, || {
            if self.state.revoke(id, &open, by)? { Ok(Some(open)) } else { Err(StoreError::Overtaken) }
        })
        .await
    }

    /// Every wider grant that is kept, oldest first.
    pub fn grants(&self) -> Result<Vec<Grant>, StoreError> {
        self.state.grants()
    }

    /// The open grant that covers exactly this.
    pub fn grant_for(&self, query: &GrantQuery<'_>) -> Result<Option<Grant>, StoreError> {
        self.state.grant_for(query)
    }

    /// Spends the grant of exactly this call. `Some` is given once for a grant, whatever number of
    /// processes ask; `None` where there is no grant, or it has expired.
    pub fn spend(&self, binding: &AskBinding) -> Result<Option<Ask>, StoreError> {
        self.state.spend(binding)
    }

    /// Writes an `approval.timeout` row for each ask that expired and was not reported yet, and
    /// returns these (AUD-019). [`Self::record_ask`] and opening do this too; a gateway that waits
    /// for answers calls it when one is due.
    pub fn report_expired_asks(&self) -> Result<Vec<Ask>, StoreError> {
        let expired = self.state.take_expired_asks()?;
        for ask in &expired {
            self.append_detached(AuditRow::ask_timed_out(ask));
        }
        Ok(expired)
    }

    fn pending(&self, id: &str) -> Result<Ask, StoreError> {
        match self.state.ask(id)? {
            Some(ask) if ask.state == AskState::Pending => Ok(ask),
            other => Err(StoreError::AskClosed {
                id: id.to_owned(),
                state: other.map_or_else(|| "unknown".to_owned(), |ask| ask.state.to_string()),
            }),
        }
    }
}
