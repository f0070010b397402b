//! What was sealed: which rows left the table, into which file, and where the chains stood there.
//!
//! A segment is a SQLite file of the same tables, `segment-000001.db`, whose rows begin where the
//! segment before it ends. The log keeps its number, its range, the sha256 of its file and the head of
//! each chain that it holds. Nothing of this is trusted by [`super::verify`] where the file can be read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use toolgate_signing::Digest;

use super::heads::Head;

/// One sealed range of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) number: i64,
    pub(crate) first_id: i64,
    pub(crate) last_id: i64,
    /// The sha256 of its file, as text.
    pub(crate) digest: String,
}

/// The file of a segment in its directory.
pub(crate) fn file(directory: &Path, number: i64) -> PathBuf {
    directory.join(format!("segment-{number:06}.db"))
}

/// All segments, in their order. None for a file of format 1, which has no such table.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<Segment>> {
    if !knows_segments(connection)? {
        return Ok(Vec::new());
    }
    let mut statement =
        connection.prepare("SELECT number, first_id, last_id, digest FROM audit_segments ORDER BY number")?;
    let segments = statement.query_map([], |row| {
        Ok(Segment { number: row.get(0)?, first_id: row.get(1)?, last_id: row.get(2)?, digest: row.get(3)? })
    })?;
    segments.collect()
}

/// Where each chain stood at the end of the last segment that holds rows of it.
pub(crate) fn heads(connection: &Connection) -> rusqlite::Result<BTreeMap<String, Head>> {
    heads_where(connection, i64::MAX)
}

/// The same at the end of segment `number`.
pub(crate) fn heads_where(connection: &Connection, number: i64) -> rusqlite::Result<BTreeMap<String, Head>> {
    if !knows_segments(connection)? {
        return Ok(BTreeMap::new());
    }
    let mut statement = connection.prepare_cached(
        "SELECT chain, seq, hash FROM audit_sealed WHERE segment <= ?1 ORDER BY chain, segment",
    )?;
    // Later ones replace earlier ones.
    let heads = statement
        .query_map([number], |row| Ok((row.get(0)?, Head { seq: row.get(1)?, hash: row.get(2)? })))?;
    heads.collect()
}

/// The number of the last row that was sealed, 0 where none was.
pub(crate) fn last_id(connection: &Connection) -> rusqlite::Result<i64> {
    if !knows_segments(connection)? {
        return Ok(0);
    }
    connection.query_row("SELECT coalesce(max(last_id), 0) FROM audit_segments", [], |row| row.get(0))
}

/// The sha256 of a file, read in pieces.
pub(crate) fn digest_of(path: &Path) -> std::io::Result<Digest> {
    use sha2::Digest as _;
    let mut hasher = sha2::Sha256::new();
    let mut file = std::fs::File::open(path)?;
    let mut piece = vec![0u8; 256 * 1024];
    loop {
        let read = std::io::Read::read(&mut file, &mut piece)?;
        match piece.get(..read) {
            Some([]) | None => break,
            Some(bytes) => hasher.update(bytes),
        }
    }
    Ok(Digest::from_bytes(hasher.finalize().into()))
}

/// Whether the file has a format that can have segments.
pub(crate) fn knows_segments(connection: &Connection) -> rusqlite::Result<bool> {
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(format >= 2)
}
