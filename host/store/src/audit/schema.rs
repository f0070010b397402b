//! The one table of `audit.db` and the triggers that let it only grow (AUD-002).
//!
//! The columns are those of AUD-003..010, with number, chain and hash beside them. A third trigger
//! guards inserts: `INSERT OR REPLACE` would otherwise remove a row without firing the trigger on
//! deletes. Whoever can write the file can also drop the triggers; `verify` then says so.

use crate::database::Format;

/// The format of `audit.db`.
pub(crate) const FORMAT: Format = Format {
    number: 1,
    migrate: &[],
    create: "
CREATE TABLE audit_log (
    id INTEGER PRIMARY KEY,
    chain TEXT NOT NULL,
    seq INTEGER NOT NULL,
    run_id TEXT,
    thread_id TEXT,
    persona_id TEXT,
    action TEXT NOT NULL,
    tool TEXT,
    request_id TEXT,
    details TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    UNIQUE (chain, seq)
) STRICT;

CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log
BEGIN SELECT RAISE(ABORT, 'audit_log is append-only: no row changes'); END;

CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log
BEGIN SELECT RAISE(ABORT, 'audit_log is append-only: no row goes'); END;

CREATE TRIGGER audit_log_grows_at_its_end BEFORE INSERT ON audit_log
WHEN NEW.id IS NOT (SELECT coalesce(max(id), 0) + 1 FROM audit_log)
  OR NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM audit_log WHERE chain = NEW.chain)
BEGIN SELECT RAISE(ABORT, 'audit_log is append-only: it grows at its end'); END;
",
};

/// Inserts one row.
pub(crate) const INSERT: &str = "INSERT INTO audit_log \
    (id, chain, seq, run_id, thread_id, persona_id, action, tool, request_id, details, \
     created_at, created_at_ms, hash) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// The columns of a row, in the order readers use.
pub(crate) const COLUMNS: &str = "id, chain, seq, run_id, thread_id, persona_id, action, tool, \
    request_id, details, created_at, created_at_ms, hash";
