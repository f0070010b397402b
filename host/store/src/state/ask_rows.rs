//! The rows of asks: the statements, and reading a row without trusting it.

use rusqlite::{Connection, OptionalExtension, Row, params};
use toolgate_signing::Digest;

use super::asks::{Ask, AskAbout, AskBinding, AskDocument, AskState};

/// How long closed asks are kept for `approvals list`.
const KEEP_CLOSED_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// The columns that [`read`] reads.
pub(super) const COLUMNS: &str = "id, binding, caller, server_identity, definition, arguments, plugin_set, \
    about, state, created_at_ms, expires_at_ms, answered_by, surface, session";

pub(super) fn insert(connection: &Connection, ask: &Ask) -> rusqlite::Result<()> {
    let about = serde_json::to_string(&ask.about)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection
        .prepare_cached(
            "INSERT INTO asks (id, subject, binding, caller, server_identity, definition, \
             arguments, plugin_set, about, state, created_at_ms, expires_at_ms, session) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
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
            ask.binding.session,
        ])
        .map(drop)
}

/// Keeps what is longer than an ask shows, until the ask is closed (a trigger sees to that). Gives the bytes
/// that all open asks of this caller keep so.
pub(super) fn keep_document(connection: &Connection, ask: &Ask, about: &AskAbout) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("INSERT INTO ask_documents (ask, arguments, beside) VALUES (?1, ?2, ?3)")?
        .execute(params![ask.id, about.arguments, about.beside])?;
    connection
        .prepare_cached(
            "SELECT coalesce(sum(octet_length(d.arguments) + octet_length(d.beside)), 0) \
             FROM ask_documents d JOIN asks a ON a.id = d.ask WHERE a.caller = ?1",
        )?
        .query_row([&ask.binding.caller], |row| row.get(0))
}

/// What was kept of an ask because it is longer than the ask shows.
pub(super) fn document(connection: &Connection, ask: &str) -> rusqlite::Result<Option<AskDocument>> {
    connection
        .prepare_cached("SELECT arguments, beside FROM ask_documents WHERE ask = ?1")?
        .query_row([ask], |row| Ok(AskDocument { arguments: row.get(0)?, beside: row.get(1)? }))
        .optional()
}

/// The granted ask that opens a call with this binding, the session's own before another's. One that cannot
/// be read is an error: it may be the one.
pub(super) fn granted_to(
    connection: &Connection,
    binding: &AskBinding,
    now: i64,
) -> rusqlite::Result<Option<Ask>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM asks WHERE state = 'granted' AND expires_at_ms > ?2 AND caller = ?1 \
         ORDER BY session = ?3 DESC, created_at_ms, id"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    for ask in statement.query_map(params![binding.caller, now, binding.session], read)? {
        let ask = ask?;
        if ask.opens(binding) {
            return Ok(Some(ask));
        }
    }
    Ok(None)
}

pub(super) fn open_ask(connection: &Connection, subject: &str) -> rusqlite::Result<Option<Ask>> {
    let sql = format!("SELECT {COLUMNS} FROM asks WHERE subject = ?1 AND state IN ('pending', 'granted')");
    connection.prepare_cached(&sql)?.query_row([subject], read).optional()
}

/// How many asks of a caller are pending, and how many of these are of one session.
pub(super) fn pending_of(
    connection: &Connection,
    caller: &str,
    session: &str,
) -> rusqlite::Result<(usize, usize)> {
    let count = |row: &Row<'_>, index: usize| -> rusqlite::Result<usize> {
        row.get(index).map(|count: i64| usize::try_from(count).unwrap_or(usize::MAX))
    };
    connection
        .prepare_cached(
            "SELECT count(*), count(*) FILTER (WHERE session = ?2) FROM asks \
             WHERE state = 'pending' AND caller = ?1",
        )?
        .query_row([caller, session], |row| Ok((count(row, 0)?, count(row, 1)?)))
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
            session: row.get(13)?,
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
