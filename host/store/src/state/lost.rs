//! A `state.db` that is not there although its data directory was in use.
//!
//! Contract: no `state.db` is made beside an audit log that has rows, anchors of rows, sealed rows or
//! pinned servers. What was denied, frozen and pinned stood in the file that is gone, and a new one would
//! say that nothing is. The way back is a copy, or [`recover`], which the operator asks for: it makes a file
//! that holds from its first moment on what the audit log remembers of freezes, denials and asks.
//!
//! A file is lost too where it is empty: whatever made it so, SQLite takes it for a new one.

use std::cell::Cell;
use std::path::Path;

use rusqlite::{Connection, params};
use toolgate_signing::Digest;

use super::known::{self, Entry};
use super::schema;
use super::standing::{Freeze, StandingDecision};
use crate::audit::memory;
use crate::database::{Database, Durability};
use crate::error::StoreError;
use crate::paths;

/// Refuses where the directory was in use. Asked by whoever is about to make a `state.db`.
pub(super) fn refuse(data_dir: &Path) -> Result<(), StoreError> {
    match evidence(data_dir)? {
        None => Ok(()),
        Some(evidence) => Err(StoreError::StateLost { path: data_dir.join(paths::STATE_DB), evidence }),
    }
}

/// What says that the directory was in use.
fn evidence(data_dir: &Path) -> Result<Option<String>, StoreError> {
    if memory::has_rows(data_dir)? {
        return Ok(Some(format!("{} has rows", paths::AUDIT_DB)));
    }
    if let Some(evidence) = memory::log_is_gone(data_dir)? {
        return Ok(Some(evidence));
    }
    let known = !known::read(data_dir)?.is_empty();
    Ok(known.then(|| format!("{} names pinned servers", paths::PINS_KNOWN)))
}

/// Whether there is a `state.db` with tables.
pub(crate) fn is_there(data_dir: &Path) -> Result<bool, StoreError> {
    let path = data_dir.join(paths::STATE_DB);
    if !std::fs::metadata(&path).is_ok_and(|found| found.len() > 0) {
        return Ok(false);
    }
    Ok(Database::open_read_only(&path, &schema::FORMAT)?.format_number()? > 0)
}

/// Makes the lost file anew with these freezes and decisions in it. False, and nothing is changed, where
/// it is not lost.
pub(crate) fn recover(
    data_dir: &Path,
    frozen: &[Freeze],
    standing: &[StandingDecision],
    now_ms: i64,
) -> Result<bool, StoreError> {
    let path = data_dir.join(paths::STATE_DB);
    let made = Cell::new(false);
    Database::open_filled(&path, &schema::FORMAT, Durability::Disk, &|connection| {
        fill(connection, frozen, standing, now_ms)
            .map_err(|source| StoreError::sqlite("write what the audit log remembers", &path, source))?;
        made.set(true);
        Ok(())
    })?;
    Ok(made.get())
}

/// Notes servers as pinned once, so that none of them is a first use; what is noted already stays.
pub(crate) fn remember_pinned(data_dir: &Path, servers: &[(Digest, String)]) -> Result<(), StoreError> {
    known::change(data_dir, |entries| {
        let before = entries.len();
        for (identity, name) in servers {
            let entry = Entry {
                revision: 1,
                // No pins have this digest: whatever is found under it was not accepted.
                content: Digest::of(b"lost"),
                server: toolgate_base::display::escape(name),
            };
            entries.entry(identity.to_string()).or_insert(entry);
        }
        entries.len() > before
    })
}

fn fill(
    connection: &Connection,
    frozen: &[Freeze],
    standing: &[StandingDecision],
    now_ms: i64,
) -> rusqlite::Result<()> {
    for freeze in frozen {
        let (kind, name) = freeze.what.columns();
        connection.execute(
            "INSERT INTO frozen (kind, name, reason, frozen_by, frozen_at_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![kind, name, freeze.reason, freeze.frozen_by, now_ms],
        )?;
    }
    for decision in standing {
        connection.execute(
            "INSERT INTO standing (persona, pattern, decision, read_only, decided_by, decided_at_ms) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                decision.persona,
                decision.pattern,
                decision.decision.as_str(),
                decision.read_only,
                decision.decided_by,
                now_ms
            ],
        )?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
