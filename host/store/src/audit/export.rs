//! Rows on their way out of the log: one JSON object each, with the exact text of its details and the
//! hash before it, so that whoever has the lines can prove them without the database.
//!
//! This is what `audit export` writes, what every sink delivers, and what docs/audit-event.schema.json
//! describes. Bounds: a batch is at most as many rows as the caller asks for, each with 16 KiB of details.

use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::chain::{Columns, Hash};
use super::{schema, segments};
use crate::database::Database;
use crate::error::StoreError;

/// A row as it leaves the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedRow {
    /// Number in the whole log; what a cursor holds.
    pub id: i64,
    /// The chain of its writer.
    pub chain: String,
    /// Number in the chain.
    pub seq: i64,
    /// The agent run, as claimed.
    pub run_id: Option<String>,
    /// The conversation, as claimed.
    pub thread_id: Option<String>,
    /// The executing persona.
    pub persona_id: Option<String>,
    /// Noun and verb.
    pub action: String,
    /// The original tool name.
    pub tool: Option<String>,
    /// The MCP request id as JSON text.
    pub request_id: Option<String>,
    /// The details object, in the very bytes that were hashed.
    pub details: Box<RawValue>,
    /// When it was committed, in seconds since the Unix epoch.
    pub created_at: i64,
    /// The same instant in milliseconds.
    pub created_at_ms: i64,
    /// The hash of the row before it in the chain, 64 hex digits.
    pub previous: String,
    /// The row's hash, 64 hex digits.
    pub hash: String,
}

impl ExportedRow {
    /// The row's hash as bytes; none where it is no hash.
    pub(crate) fn hash(&self) -> Option<Hash> {
        bytes(&self.hash)
    }

    /// The hash before it.
    pub(crate) fn previous(&self) -> Option<Hash> {
        bytes(&self.previous)
    }

    /// What is hashed.
    pub(crate) fn columns(&self) -> Columns<'_> {
        Columns {
            id: self.id,
            chain: self.chain.as_bytes(),
            seq: self.seq,
            run_id: self.run_id.as_deref().map(str::as_bytes),
            thread_id: self.thread_id.as_deref().map(str::as_bytes),
            persona_id: self.persona_id.as_deref().map(str::as_bytes),
            action: self.action.as_bytes(),
            tool: self.tool.as_deref().map(str::as_bytes),
            request_id: self.request_id.as_deref().map(str::as_bytes),
            details: self.details.get().as_bytes(),
            created_at: self.created_at,
            created_at_ms: self.created_at_ms,
        }
    }
}

fn bytes(text: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    hex::decode_to_slice(text, &mut hash).ok()?;
    Some(hash)
}

/// The rows after row `id`, oldest first, at most `limit`.
pub(crate) fn after(database: &Database, id: i64, limit: usize) -> Result<Vec<ExportedRow>, StoreError> {
    let failed = database.error("read the audit log");
    let before = "(SELECT p.hash FROM audit_log p WHERE p.chain = a.chain AND p.seq = a.seq - 1)";
    let sealed = if segments::knows_segments(&database.connection).map_err(&failed)? {
        "(SELECT s.hash FROM audit_sealed s WHERE s.chain = a.chain AND s.seq = a.seq - 1)"
    } else {
        "NULL"
    };
    let sql = format!(
        "SELECT {}, coalesce({before}, {sealed}, zeroblob(32)) FROM audit_log a WHERE id > ?1 ORDER BY id LIMIT ?2",
        schema::COLUMNS
    );
    let mut statement = database.connection.prepare_cached(&sql).map_err(&failed)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![id, limit], exported).map_err(&failed)?;
    rows.collect::<Result<_, _>>().map_err(&failed)
}

fn exported(row: &Row<'_>) -> rusqlite::Result<ExportedRow> {
    let details: String = row.get(9)?;
    let (hash, previous): (Hash, Hash) = (row.get(12)?, row.get(13)?);
    Ok(ExportedRow {
        id: row.get(0)?,
        chain: row.get(1)?,
        seq: row.get(2)?,
        run_id: row.get(3)?,
        thread_id: row.get(4)?,
        persona_id: row.get(5)?,
        action: row.get(6)?,
        tool: row.get(7)?,
        request_id: row.get(8)?,
        details: raw(details),
        created_at: row.get(10)?,
        created_at_ms: row.get(11)?,
        previous: hex::encode(previous),
        hash: hex::encode(hash),
    })
}

/// Details that are no JSON any more leave as a JSON string; `verify` then finds the row.
fn raw(details: String) -> Box<RawValue> {
    let quoted = serde_json::Value::from(details.as_str()).to_string();
    RawValue::from_string(details)
        .or_else(|_| RawValue::from_string(quoted))
        .unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests;
