//! The tables of `state.db`.

use crate::database::Format;

/// The tables that format 2 added, for a new file and for one that is brought forward.
macro_rules! tables_of_format_2 {
    () => {
        "
CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    ask TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('session', 'persona')),
    persona TEXT NOT NULL,
    session TEXT,
    server TEXT NOT NULL,
    server_identity TEXT NOT NULL,
    action TEXT NOT NULL,
    tool TEXT NOT NULL,
    definition TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    surface TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    revoked_at_ms INTEGER
) STRICT;
CREATE INDEX grants_by_subject ON grants (server_identity, tool, persona);

CREATE TABLE standing (
    persona TEXT NOT NULL,
    pattern TEXT NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('allow', 'ask', 'deny')),
    read_only INTEGER NOT NULL,
    decided_by TEXT NOT NULL,
    decided_at_ms INTEGER NOT NULL,
    PRIMARY KEY (persona, pattern)
) STRICT;

CREATE TABLE frozen (
    kind TEXT NOT NULL CHECK (kind IN ('all', 'server', 'plugin')),
    name TEXT NOT NULL,
    reason TEXT NOT NULL,
    frozen_by TEXT NOT NULL,
    frozen_at_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT;
"
    };
}

/// The journal of tasks, for a new file and for one that is brought forward.
macro_rules! tables_of_tasks {
    () => {
        "
CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    server TEXT NOT NULL,
    server_identity TEXT NOT NULL,
    task_id TEXT NOT NULL,
    about TEXT NOT NULL,
    caller TEXT NOT NULL,
    handed INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN
        ('working', 'input_required', 'completed', 'failed', 'cancelled', 'expired', 'lost')),
    snapshot TEXT NOT NULL,
    outcome TEXT,
    delivery TEXT NOT NULL CHECK (delivery IN ('waiting', 'pending', 'delivered', 'none')),
    cancel_requested_at_ms INTEGER,
    cancel_requested_by TEXT,
    recoveries INTEGER NOT NULL DEFAULT 0,
    retries INTEGER NOT NULL DEFAULT 0,
    reads INTEGER NOT NULL DEFAULT 0,
    pushes INTEGER NOT NULL DEFAULT 0,
    inputs INTEGER NOT NULL DEFAULT 0,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    closed_at_ms INTEGER
) STRICT;
CREATE INDEX tasks_by_end ON tasks (closed_at_ms);
"
    };
}

/// What of an open ask is longer than its row shows, for a new file and for one that is brought forward. It
/// goes when the ask is closed, however that comes.
macro_rules! documents_of_asks {
    () => {
        "
CREATE TABLE ask_documents (
    ask TEXT PRIMARY KEY,
    arguments TEXT NOT NULL,
    beside TEXT NOT NULL
) STRICT;
CREATE TRIGGER ask_closed AFTER UPDATE OF state ON asks WHEN NEW.state NOT IN ('pending', 'granted')
BEGIN DELETE FROM ask_documents WHERE ask = NEW.id; END;
"
    };
}

/// The format of `state.db`.
pub(crate) const FORMAT: Format = Format {
    number: 5,
    create: concat!(
        "
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
    expiry_reported INTEGER NOT NULL DEFAULT 0,
    surface TEXT,
    session TEXT NOT NULL DEFAULT ''
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
    revoked_at_ms INTEGER,
    lane TEXT NOT NULL DEFAULT 'main'
) STRICT;

CREATE TABLE eras (
    identity TEXT PRIMARY KEY,
    era TEXT NOT NULL,
    seen_at_ms INTEGER NOT NULL
) STRICT;
",
        tables_of_format_2!(),
        tables_of_tasks!(),
        documents_of_asks!()
    ),
    migrate: &[TO_2, TO_3, WITH_TASKS, TO_5],
};

/// Format 2: where an ask was answered, wider grants, standing decisions, what is frozen.
const TO_2: &str = concat!(
    "
ALTER TABLE asks ADD COLUMN surface TEXT;
",
    tables_of_format_2!()
);

/// Format 3: the lane of a token.
const TO_3: &str = "
ALTER TABLE tokens ADD COLUMN lane TEXT NOT NULL DEFAULT 'main';
";

/// Format 4: the journal of tasks.
const WITH_TASKS: &str = tables_of_tasks!();

/// Format 5: the session of an ask, and all of what it is about. What was open does not say which client
/// asked, so it ends.
const TO_5: &str = concat!(
    "
ALTER TABLE asks ADD COLUMN session TEXT NOT NULL DEFAULT '';
UPDATE asks SET state = 'expired', closed_at_ms = coalesce(closed_at_ms, created_at_ms)
WHERE state IN ('pending', 'granted');
",
    documents_of_asks!()
);

#[cfg(test)]
mod tests;
