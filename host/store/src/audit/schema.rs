//! The one table of `audit.db` and the triggers that let it only grow (AUD-002).
//!
//! The columns are those of AUD-003..010, with number, chain and hash beside them. A third trigger
//! guards inserts: `INSERT OR REPLACE` would otherwise remove a row without firing the trigger on
//! deletes. Whoever can write the file can also drop the triggers; `verify` then says so.
//!
//! Format 2 adds sealed segments: `audit_segments` says which rows were moved into which file, and
//! `audit_sealed` where each chain stood at that file's end, so that chains go on across the cut. A row
//! can leave the table in that one way only: the trigger lets go of what a segment has sealed.

use crate::database::Format;

/// The format of `audit.db`, and of a sealed segment, which has the same tables.
pub(crate) const FORMAT: Format = Format {
    number: 2,
    create: concat!(include_str!("schema/format-1.sql"), include_str!("schema/format-2.sql")),
    migrate: &[include_str!("schema/format-2.sql")],
};

/// The first format, which a reader may still meet before any writer brought the file up to date.
pub(crate) const FORMAT_1: &str = include_str!("schema/format-1.sql");

/// Inserts one row.
pub(crate) const INSERT: &str = "INSERT INTO audit_log \
    (id, chain, seq, run_id, thread_id, persona_id, action, tool, request_id, details, \
     created_at, created_at_ms, hash) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// The columns of a row, in the order readers use.
pub(crate) const COLUMNS: &str = "id, chain, seq, run_id, thread_id, persona_id, action, tool, \
    request_id, details, created_at, created_at_ms, hash";
