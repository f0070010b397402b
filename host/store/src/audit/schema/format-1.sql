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
