//! Sealing: old rows move into files of their own, and the chains go on across the cut.
//!
//! Contract: a row leaves the table in the transaction that says in which file it is; the file was
//! written, synced, read again and found whole before that. Whatever ends the process in between leaves
//! the log as it was, with at most a file that nothing speaks of. Rows that are not whole are not sealed.
//!
//! Bounds: 50,000 rows a segment, so that a gateway that writes waits for a fraction of a second; as many
//! segments as it takes. The space in `audit.db` is used again and not given back to the disk.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, params};
use serde::Serialize;
use toolgate_base::lock::{FileLock, LockError};
use toolgate_base::{files, random_hex};

use super::heads::Anchors;
use super::verify::pass_over_segment;
use super::{schema, segments};
use crate::database::{Database, Durability};
use crate::error::StoreError;
use crate::{paths, sys};

/// The most rows of a segment.
const MAX_ROWS: i64 = 50_000;
/// How long another `audit archive` is waited for.
const WAIT: Duration = Duration::from_secs(5);

/// One segment that was sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SealedSegment {
    /// Its number.
    pub number: i64,
    /// Its file.
    pub file: PathBuf,
    /// The first row in it.
    pub first_id: i64,
    /// The last row in it.
    pub last_id: i64,
    /// The sha256 of the file.
    pub digest: String,
}

/// Seals every row before the first one that was committed at or after `before` (Unix seconds), and none
/// after row `delivered`, where that is given.
pub(crate) fn archive(
    data_dir: &Path,
    before: i64,
    delivered: Option<i64>,
    now_ms: u64,
) -> Result<Vec<SealedSegment>, StoreError> {
    let directory = data_dir.join(paths::AUDIT_ARCHIVE);
    files::create_private_dir(&directory).map_err(|source| StoreError::io("create", &directory, source))?;
    let _alone = FileLock::exclusive(&directory.join("lock"), WAIT).map_err(|error| match error {
        LockError::Io { path, source } => StoreError::io("lock", &path, source),
        LockError::Busy { path, .. } => StoreError::Locked { doing: "seal rows", path },
    })?;
    let mut database = Database::open(&data_dir.join(paths::AUDIT_DB), &schema::FORMAT, Durability::Disk)?;
    let mut sealed = Vec::new();
    while let Some(range) = next(&database, before, delivered)? {
        sealed.push(seal(&mut database, &directory, range, now_ms)?);
    }
    Ok(sealed)
}

/// Number, first and last row of the next segment.
type Range = (i64, i64, i64);

fn next(database: &Database, before: i64, delivered: Option<i64>) -> Result<Option<Range>, StoreError> {
    let failed = database.error("look for rows to seal");
    let connection = &database.connection;
    let number: i64 = connection
        .query_row("SELECT coalesce(max(number), 0) + 1 FROM audit_segments", [], |row| row.get(0))
        .map_err(&failed)?;
    let first = segments::last_id(connection).map_err(&failed)?.saturating_add(1);
    // Clocks go backwards now and then: what comes after a younger row stays with it.
    let last: i64 = connection
        .query_row(
            "SELECT coalesce((SELECT min(id) - 1 FROM audit_log WHERE created_at >= ?1), \
             (SELECT max(id) FROM audit_log), 0)",
            [before],
            |row| row.get(0),
        )
        .map_err(&failed)?;
    let last = last.min(delivered.unwrap_or(i64::MAX)).min(first.saturating_add(MAX_ROWS - 1));
    Ok((last >= first).then_some((number, first, last)))
}

fn seal(
    database: &mut Database,
    directory: &Path,
    (number, first_id, last_id): Range,
    now_ms: u64,
) -> Result<SealedSegment, StoreError> {
    let file = segments::file(directory, number);
    let unfinished = directory.join(format!(".{}", random_hex(8)));
    let written = write(database, &unfinished, (number, first_id, last_id))
        .and_then(|()| check(&unfinished))
        .and_then(|()| {
            let io = |source| StoreError::io("write", &unfinished, source);
            std::fs::File::open(&unfinished).and_then(|open| open.sync_all()).map_err(io)?;
            let digest = segments::digest_of(&unfinished).map_err(io)?.to_string();
            std::fs::rename(&unfinished, &file).map_err(io)?;
            std::fs::File::open(directory).and_then(|open| open.sync_all()).map_err(io)?;
            Ok(digest)
        });
    let digest = match written {
        Ok(digest) => digest,
        Err(error) => {
            // Nothing speaks of it.
            let _ = std::fs::remove_file(&unfinished);
            return Err(error);
        }
    };
    let failed = database.error("seal rows");
    let transaction = database.write("seal rows")?;
    cut(&transaction, (number, first_id, last_id), &digest, now_ms).map_err(&failed)?;
    transaction.commit().map_err(&failed)?;
    Ok(SealedSegment { number, file, first_id, last_id, digest })
}

/// Copies the rows into a file of the same tables, with what was sealed before them.
fn write(database: &Database, path: &Path, (number, first_id, last_id): Range) -> Result<(), StoreError> {
    drop(sys::open_private(path).map_err(|source| StoreError::io("create", path, source))?);
    let made = |source| StoreError::sqlite("make the segment", path, source);
    let segment = Connection::open(path).map_err(made)?;
    segment.execute_batch(schema::FORMAT.create).map_err(made)?;
    segment.pragma_update(None, "user_version", schema::FORMAT.number).map_err(made)?;
    drop(segment);
    let failed = database.error("copy rows into a segment");
    let connection = &database.connection;
    connection.execute("ATTACH DATABASE ?1 AS segment", [path.to_string_lossy()]).map_err(&failed)?;
    let copied = copy(connection, number, first_id, last_id);
    connection.execute_batch("DETACH DATABASE segment").map_err(&failed)?;
    copied.map_err(failed)
}

fn copy(connection: &Connection, number: i64, first_id: i64, last_id: i64) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    for table in ["audit_segments ORDER BY number", "audit_sealed ORDER BY segment, chain"] {
        let name = table.split(' ').next().unwrap_or_default();
        transaction.execute(&format!("INSERT INTO segment.{name} SELECT * FROM main.{table}"), [])?;
    }
    let rows = transaction.execute(
        "INSERT INTO segment.audit_log SELECT * FROM main.audit_log WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
        params![first_id, last_id],
    )?;
    if i64::try_from(rows) != Ok(last_id - first_id + 1) {
        tracing::error!(segment = number, rows, first_id, last_id, "rows are missing between these");
    }
    transaction.commit()
}

/// The copy, read again, against the heads before it.
fn check(path: &Path) -> Result<(), StoreError> {
    match pass_over_segment(path, Anchors::Slots(Vec::new()))?.findings.first() {
        None => Ok(()),
        Some(finding) => Err(StoreError::Damaged {
            path: path.to_owned(),
            what: format!("the rows are not whole and are not sealed: {finding}"),
            repair: "run `toolgate audit verify`, and keep a copy of audit.db and audit.heads",
        }),
    }
}

/// Says where the rows are, and lets them go.
fn cut(
    connection: &Connection,
    (number, first_id, last_id): Range,
    digest: &str,
    now_ms: u64,
) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO audit_segments (number, first_id, last_id, sealed_at_ms, digest) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![number, first_id, last_id, i64::try_from(now_ms).unwrap_or(i64::MAX), digest],
    )?;
    // With max(), SQLite takes the other columns from the row that has it.
    connection.execute(
        "INSERT INTO audit_sealed (segment, chain, seq, hash) \
         SELECT ?1, chain, seq, hash FROM (SELECT chain, max(seq) AS seq, hash FROM audit_log \
         WHERE id BETWEEN ?2 AND ?3 GROUP BY chain)",
        params![number, first_id, last_id],
    )?;
    connection.execute("DELETE FROM audit_log WHERE id BETWEEN ?1 AND ?2", params![first_id, last_id])?;
    Ok(())
}

#[cfg(test)]
mod tests;
