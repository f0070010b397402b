//! The rows of asks: the statements, and reading a row without trusting it.

use rusqlite::{Connection, OptionalExtension, Row, params};
use toolgate_signing::Digest;

use super::asks::{Ask, AskBinding, AskState};

/// How long closed asks are kept for `approvals list`.
const KEEP_CLOSED_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// The columns that [`read`] reads.
pub(super) const COLUMNS: &str = "id, binding, caller, server_identity, definition, arguments, plugin_set, \
    about, state, created_at_ms, expires_at_ms, answered_by, surface";

pub(super) fn insert(connection: &Connection, ask: &Ask) -> rusqlite::Result<()> {
    let about = serde_json::to_string(&ask.about)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection
        .prepare_cached(
            "INSERT INTO asks (id, subject, binding, caller, server_identity, definition, \
             arguments, plugin_set, about, state, created_at_ms, expires_at_ms) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            ask.id,
            ask.binding.subject(),
            ask.binding.with_expiry(ask.expires_at_ms),
            ask.binding.caller,
            ask.binding.server_identity.to_string(),
            ask.binding.definition.to_string(),
            ask.binding.arguments.to_string(),
            ask.binding.plugin_set.to_string(),
            about,
            ask.state.as_str(),
            ask.created_at_ms,
            ask.expires_at_ms,
        ])
        .map(drop)
}

pub(super) fn open_ask(connection: &Connection, subject: &str) -> rusqlite::Result<Option<Ask>> {
    let sql = format!("SELECT {COLUMNS} FROM asks WHERE subject = ?1 AND state IN ('pending', 'granted')");
    connection.prepare_cached(&sql)?.query_row([subject], read).optional()
}

pub(super) fn pending_of(connection: &Connection, caller: &str) -> rusqlite::Result<usize> {
    let pending: i64 = connection
        .prepare_cached("SELECT count(*) FROM asks WHERE state = 'pending' AND caller = ?1")?
        .query_row([caller], |row| row.get(0))?;
    Ok(usize::try_from(pending).unwrap_or(usize::MAX))
}

pub(super) fn close_expired(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE asks SET state = 'expired', closed_at_ms = ?1 \
             WHERE state IN ('pending', 'granted') AND expires_at_ms <= ?1",
        )?
        .execute([now])
        .map(drop)
}

/// Forgets what was closed long ago; an expiry that nobody has audited yet stays.
pub(super) fn forget_old(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM asks WHERE closed_at_ms < ?1 \
             AND (state <> 'expired' OR expiry_reported = 1)",
        )?
        .execute([now.saturating_sub(KEEP_CLOSED_MS)])
        .map(drop)
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Ask> {
    let about: String = row.get(7)?;
    let state: String = row.get(8)?;
    Ok(Ask {
        id: row.get(0)?,
        binding: AskBinding {
            caller: row.get(2)?,
            server_identity: digest(row, 3)?,
            definition: digest(row, 4)?,
            arguments: digest(row, 5)?,
            plugin_set: digest(row, 6)?,
        },
        about: serde_json::from_str(&about).map_err(|error| unreadable(7, error))?,
        state: AskState::parse(&state)
            .ok_or_else(|| unreadable(8, format!("`{state}` is no state of an ask")))?,
        created_at_ms: row.get(9)?,
        expires_at_ms: row.get(10)?,
        answered_by: row.get(11)?,
        surface: row.get(12)?,
    })
}

/// A digest column.
pub(super) fn digest(row: &Row<'_>, index: usize) -> rusqlite::Result<Digest> {
    let text: String = row.get(index)?;
    text.parse().map_err(|_| unreadable(index, format!("`{text}` is no digest")))
}

/// A column whose text is not what was written there.
fn unreadable(index: usize, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, error.into())
}
