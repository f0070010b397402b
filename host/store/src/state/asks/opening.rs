//! How an ask begins: planned first, so that it can be announced, and then recorded.
//!
//! Bounds: those of [`super`] for what may wait and for what of it is kept whole.

use std::time::Duration;

use rusqlite::Connection;
use toolgate_base::random_hex;

use super::{Ask, AskAbout, AskBinding, AskState, Recorded};
use crate::error::StoreError;
use crate::state::State;
use crate::state::ask_rows::{close_expired, forget_old, insert, keep_document, open_ask, pending_of};

/// Random bytes of an id.
const ID_BYTES: usize = 8;
/// Pending asks of all sessions of one caller: a session costs its client little.
const MAX_OF_CALLER: usize = 32;
/// The most bytes of the open asks of one caller that are kept whole.
const MAX_OPEN_BYTES: i64 = 32 * 1024 * 1024;

impl State {
    /// The open ask of this call, or the one that would be recorded, which is nowhere yet.
    pub(crate) fn plan_ask(
        &self,
        binding: &AskBinding,
        about: &AskAbout,
        ttl: Duration,
        max_pending: usize,
    ) -> Result<Recorded, StoreError> {
        let now = self.now_ms();
        let mut database = self.database();
        let failed = database.error("look for an ask");
        let transaction = database.write("look for an ask")?;
        close_expired(&transaction, now).map_err(&failed)?;
        let planned = room_for(&transaction, binding, max_pending).map_err(&failed)?;
        // What expired meanwhile stays closed.
        transaction.commit().map_err(&failed)?;
        if let Some(ask) = planned? {
            return Ok(Recorded { ask, is_new: false });
        }
        let ttl = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        let ask = Ask {
            id: format!("ask_{}", random_hex(ID_BYTES)),
            binding: binding.clone(),
            about: about.bounded(),
            state: AskState::Pending,
            created_at_ms: now,
            expires_at_ms: now.saturating_add(ttl),
            answered_by: None,
            surface: None,
        };
        Ok(Recorded { ask, is_new: true })
    }

    /// Records an ask that was planned and has its row, unless the same call has an open one by now.
    pub(crate) fn record_ask(
        &self,
        ask: &Ask,
        about: &AskAbout,
        max_pending: usize,
    ) -> Result<Recorded, StoreError> {
        let now = self.now_ms();
        let mut database = self.database();
        let failed = database.error("record an ask");
        let transaction = database.write("record an ask")?;
        close_expired(&transaction, now).map_err(&failed)?;
        if let Some(ask) = room_for(&transaction, &ask.binding, max_pending).map_err(&failed)?? {
            transaction.commit().map_err(&failed)?;
            return Ok(Recorded { ask, is_new: false });
        }
        insert(&transaction, ask).map_err(&failed)?;
        if ask.about.is_cut() {
            let open = keep_document(&transaction, ask, about).map_err(&failed)?;
            if open > MAX_OPEN_BYTES {
                // Nothing is recorded of an ask that nobody could read to its end.
                return Err(StoreError::AsksTooLong { open, limit: MAX_OPEN_BYTES });
            }
        }
        forget_old(&transaction, now).map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(Recorded { ask: ask.clone(), is_new: true })
    }
}

/// The open ask of this call, or none and room for one more.
fn room_for(
    connection: &Connection,
    binding: &AskBinding,
    max_pending: usize,
) -> rusqlite::Result<Result<Option<Ask>, StoreError>> {
    if let Some(ask) = open_ask(connection, &binding.subject())? {
        return Ok(Ok(Some(ask)));
    }
    let (all, own) = pending_of(connection, &binding.caller, &binding.session)?;
    let limits = [(own, max_pending, "client"), (all, MAX_OF_CALLER.max(max_pending), "credential")];
    let over = limits.into_iter().find(|(pending, limit, _)| pending >= limit);
    Ok(over.map_or(Ok(None), |(pending, limit, of)| Err(StoreError::TooManyAsks { pending, limit, of })))
}
