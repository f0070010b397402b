
CREATE TABLE audit_segments (
    number INTEGER PRIMARY KEY,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL CHECK (last_id >= first_id),
    sealed_at_ms INTEGER NOT NULL,
    digest TEXT NOT NULL
) STRICT;

CREATE TABLE audit_sealed (
    segment INTEGER NOT NULL,
    chain TEXT NOT NULL,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (chain, segment)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER audit_segments_no_update BEFORE UPDATE ON audit_segments
BEGIN SELECT RAISE(ABORT, 'audit_segments is append-only: no row changes'); END;

CREATE TRIGGER audit_segments_no_delete BEFORE DELETE ON audit_segments
BEGIN SELECT RAISE(ABORT, 'audit_segments is append-only: no row goes'); END;

CREATE TRIGGER audit_segments_follow_each_other BEFORE INSERT ON audit_segments
WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM audit_segments)
  OR NEW.first_id IS NOT (SELECT coalesce(max(last_id), 0) + 1 FROM audit_segments)
BEGIN SELECT RAISE(ABORT, 'audit_segments is append-only: it grows at its end'); END;

CREATE TRIGGER audit_sealed_no_update BEFORE UPDATE ON audit_sealed
BEGIN SELECT RAISE(ABORT, 'audit_sealed is append-only: no row changes'); END;

CREATE TRIGGER audit_sealed_no_delete BEFORE DELETE ON audit_sealed
BEGIN SELECT RAISE(ABORT, 'audit_sealed is append-only: no row goes'); END;

CREATE TRIGGER audit_sealed_follow_each_other BEFORE INSERT ON audit_sealed
WHEN NEW.seq <= (SELECT coalesce(max(seq), 0) FROM audit_sealed WHERE chain = NEW.chain)
BEGIN SELECT RAISE(ABORT, 'audit_sealed is append-only: it grows at its end'); END;

DROP TRIGGER audit_log_no_delete;

CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log
WHEN OLD.id > (SELECT coalesce(max(last_id), 0) FROM audit_segments)
BEGIN SELECT RAISE(ABORT, 'audit_log is append-only: no row goes that no segment has sealed'); END;

DROP TRIGGER audit_log_grows_at_its_end;

CREATE TRIGGER audit_log_grows_at_its_end BEFORE INSERT ON audit_log
WHEN NEW.id IS NOT (
    SELECT coalesce(max(id), (SELECT max(last_id) FROM audit_segments), 0) + 1 FROM audit_log)
  OR NEW.seq IS NOT (
    SELECT coalesce(max(seq), (SELECT max(seq) FROM audit_sealed WHERE chain = NEW.chain), 0) + 1
    FROM audit_log WHERE chain = NEW.chain)
BEGIN SELECT RAISE(ABORT, 'audit_log is append-only: it grows at its end'); END;
