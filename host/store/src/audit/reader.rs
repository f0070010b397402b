//! Reading the log, with a connection that cannot write.
//!
//! Every reader opens the file read-only, sets `query_only`, and fails where that is impossible;
//! it never opens it with more rights (FT-08). A reader works beside a gateway that writes, and
//! from another process. It is `Send` but not `Sync`; asynchronous code moves it to a blocking
//! thread.

use std::path::Path;

use rusqlite::{Row, params};

use super::export::{self, ExportedRow};
use super::filter::{CONDITION, Filter, MAX_ROWS};
use super::row::StoredRow;
use super::verify::VerifyOptions;
use super::{schema, segments, select, verify};
use crate::database::Database;
use crate::error::StoreError;
use crate::paths;
use crate::rows::SelectOutcome;

/// A read-only view of `audit.db`.
#[derive(Debug)]
pub struct AuditReader {
    database: Database,
}

impl AuditReader {
    /// Opens the log of a data directory. A log that does not exist is an error.
    pub fn open(data_dir: &Path) -> Result<Self, StoreError> {
        let path = data_dir.join(paths::AUDIT_DB);
        if let Err(source) = std::fs::metadata(&path) {
            return Err(StoreError::io("find the audit log", &path, source));
        }
        let database = Database::open_read_only(&path, &schema::FORMAT)?;
        Ok(Self { database })
    }

    /// Opens a sealed segment or a copy of a log.
    pub fn open_file(file: &Path) -> Result<Self, StoreError> {
        if let Err(source) = std::fs::metadata(file) {
            return Err(StoreError::io("find", file, source));
        }
        Ok(Self { database: Database::open_copy(file, &schema::FORMAT)? })
    }

    /// The last `limit` rows that fit the filter, oldest first; at most [`MAX_ROWS`].
    pub fn tail(&self, limit: usize, filter: &Filter) -> Result<Vec<StoredRow>, StoreError> {
        let order = format!("{CONDITION} ORDER BY id DESC LIMIT ?7");
        let mut rows = self.rows(&order, filter, limit.min(MAX_ROWS), 0)?;
        rows.reverse();
        Ok(rows)
    }

    /// The rows after row `id` that fit the filter, oldest first, at most [`MAX_ROWS`]: what
    /// `--follow` repeats with the last id it saw.
    pub fn after(&self, id: i64, filter: &Filter) -> Result<Vec<StoredRow>, StoreError> {
        let order = format!("id > ?8 AND {CONDITION} ORDER BY id LIMIT ?7");
        self.rows(&order, filter, MAX_ROWS, id)
    }

    /// The number of the last row, sealed ones included, 0 where there is none: where `--follow` begins.
    pub fn last_id(&self) -> Result<i64, StoreError> {
        let failed = self.database.error("read the audit log");
        let connection = &self.database.connection;
        let live: Option<i64> =
            connection.query_row("SELECT max(id) FROM audit_log", [], |row| row.get(0)).map_err(&failed)?;
        match live {
            Some(id) => Ok(id),
            None => segments::last_id(connection).map_err(failed),
        }
    }

    /// The rows after row `id` as they leave the log, oldest first, at most `limit`.
    pub fn export_after(&self, id: i64, limit: usize) -> Result<Vec<ExportedRow>, StoreError> {
        export::after(&self.database, id, limit)
    }

    /// The number of the last row that was committed before this time, in seconds since the Unix epoch,
    /// and that no younger row precedes.
    pub fn last_before(&self, time: i64) -> Result<i64, StoreError> {
        self.database
            .connection
            .query_row(
                "SELECT coalesce((SELECT min(id) - 1 FROM audit_log WHERE created_at >= ?1), \
                 (SELECT max(id) FROM audit_log), 0)",
                [time],
                |row| row.get(0),
            )
            .map_err(self.database.error("read the audit log"))
    }

    /// Runs one SELECT over `audit_log` (AUD-011), under the bounds of [`super::select`]. The
    /// reader is used up, because the query's restrictions stay on its connection.
    pub fn select(self, sql: &str) -> Result<SelectOutcome, StoreError> {
        select::run(self.database, sql, &select::Bounds::default())
    }

    /// Recomputes every chain and compares it with its anchor. See [`verify::verify`].
    pub fn verify(data_dir: &Path, options: &VerifyOptions) -> Result<verify::VerifyReport, StoreError> {
        verify::verify(data_dir, options)
    }

    /// The same for a file that was taken elsewhere. See [`verify::verify_file`].
    pub fn verify_file(file: &Path, options: &VerifyOptions) -> Result<verify::VerifyReport, StoreError> {
        verify::verify_file(file, options)
    }

    fn rows(
        &self,
        condition: &str,
        filter: &Filter,
        limit: usize,
        after: i64,
    ) -> Result<Vec<StoredRow>, StoreError> {
        let failed = self.database.error("read the audit log");
        // Every parameter has to occur in the statement, whichever of the two it is.
        let sql = format!("SELECT {} FROM audit_log WHERE ?8 IS NOT NULL AND {condition}", schema::COLUMNS);
        let mut statement = self.database.connection.prepare_cached(&sql).map_err(&failed)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement
            .query_map(
                params![
                    filter.server,
                    filter.tool,
                    filter.persona,
                    filter.action,
                    filter.event_prefix,
                    filter.since,
                    limit,
                    after,
                ],
                stored_row,
            )
            .map_err(&failed)?;
        rows.collect::<Result<_, _>>().map_err(&failed)
    }
}

fn stored_row(row: &Row<'_>) -> rusqlite::Result<StoredRow> {
    let details: String = row.get(9)?;
    let hash: [u8; 32] = row.get(12)?;
    Ok(StoredRow {
        id: row.get(0)?,
        chain: row.get(1)?,
        seq: row.get(2)?,
        run_id: row.get(3)?,
        thread_id: row.get(4)?,
        persona_id: row.get(5)?,
        action: row.get(6)?,
        tool: row.get(7)?,
        request_id: row.get(8)?,
        // Details that are no JSON any more are shown as they are; `verify` says what it thinks.
        details: serde_json::from_str(&details).unwrap_or(serde_json::Value::String(details)),
        created_at: row.get(10)?,
        created_at_ms: row.get(11)?,
        hash: hex::encode(hash),
    })
}

#[cfg(test)]
mod tests;
