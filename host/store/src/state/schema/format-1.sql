-- state.db as version 0.1.0's first slice wrote it, with one row of each kind that matters.

CREATE TABLE asks (
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    binding TEXT NOT NULL,
    caller TEXT NOT NULL,
    server_identity TEXT NOT NULL,
    definition TEXT NOT NULL,
    arguments TEXT NOT NULL,
    plugin_set TEXT NOT NULL,
    about TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'granted', 'denied', 'expired', 'spent')),
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    closed_at_ms INTEGER,
    answered_by TEXT,
    expiry_reported INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX asks_open ON asks (subject) WHERE state IN ('pending', 'granted');
CREATE INDEX asks_by_expiry ON asks (state, expires_at_ms);

CREATE TABLE pins (
    identity TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (identity, kind, name)
) STRICT;

CREATE TABLE known_servers (
    identity TEXT PRIMARY KEY,
    server TEXT NOT NULL,
    protocol_revision TEXT NOT NULL,
    revision INTEGER NOT NULL,
    content TEXT NOT NULL,
    pinned_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    persona TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER
) STRICT;

CREATE TABLE eras (
    identity TEXT PRIMARY KEY,
    era TEXT NOT NULL,
    seen_at_ms INTEGER NOT NULL
) STRICT;

INSERT INTO asks VALUES ('ask_0000000000000001', 's', 'b', 'default', 'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', 'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', 'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', 'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', '{"persona":"default","server":"notes","tool":"read","reason":"r","arguments":"{}"}', 'denied', 1, 2, 2, 'operator', 0);
INSERT INTO eras VALUES ('sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', 'modern', 1);
PRAGMA user_version = 1;
