//! What the operator decided beforehand with `mcp allow|ask|deny`, and what is frozen.
//!
//! Both are facts and no decisions: the gateway hands the first to the policies as it hands them the
//! labels of toolgate.yaml, and the second to the binding. They are read as a whole when
//! [`version`](State::version) says that another process changed something.
//!
//! Bounds: 10,000 standing decisions, 1,000 frozen things.

use rusqlite::params;
use serde::Serialize;

use super::State;
use crate::error::StoreError;

const MAX_STANDING: i64 = 10_000;
const MAX_FROZEN: i64 = 1_000;

/// What was decided beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It passes without an ask.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not pass.
    Deny,
}

/// One standing decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StandingDecision {
    /// For which persona.
    pub persona: String,
    /// For what, as a label pattern: `mcp.call:notes/read`.
    pub pattern: String,
    /// What.
    pub decision: Standing,
    /// Only for tools that say of themselves that they only read.
    pub read_only: bool,
    /// Who decided, and how that was proven.
    pub decided_by: String,
}

/// What a freeze is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "name")]
pub enum Frozen {
    /// Everything.
    All,
    /// One server.
    Server(String),
    /// One plugin: a policy then denies all it guards, an adapter fails its server's calls.
    Plugin(String),
}

/// One freeze.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Freeze {
    /// About what.
    pub what: Frozen,
    /// Why, in the operator's words.
    pub reason: String,
    /// Who.
    pub frozen_by: String,
}

impl Standing {
    /// The word in the database and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl Frozen {
    fn columns(&self) -> (&'static str, &str) {
        match self {
            Self::All => ("all", ""),
            Self::Server(name) => ("server", name),
            Self::Plugin(name) => ("plugin", name),
        }
    }
}

impl std::fmt::Display for Frozen {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => formatter.write_str("everything"),
            Self::Server(name) => write!(formatter, "server {name}"),
            Self::Plugin(name) => write!(formatter, "plugin {name}"),
        }
    }
}

impl State {
    /// A number that changes when another connection changed the database.
    pub(crate) fn version(&self) -> Result<i64, StoreError> {
        let database = self.database();
        database
            .connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(database.error("look for changes"))
    }

    /// Sets or replaces a standing decision.
    pub(crate) fn set_standing(&self, decision: &StandingDecision) -> Result<(), StoreError> {
        let now = self.now_ms();
        let mut database = self.database();
        let failed = database.error("record a standing decision");
        let transaction = database.write("record a standing decision")?;
        transaction
            .execute(
                "INSERT OR REPLACE INTO standing \
                 (persona, pattern, decision, read_only, decided_by, decided_at_ms) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    decision.persona,
                    decision.pattern,
                    decision.decision.as_str(),
                    decision.read_only,
                    decision.decided_by,
                    now
                ],
            )
            .map_err(&failed)?;
        transaction.commit().map_err(&failed)
    }

    /// Every standing decision, in a stable order.
    pub(crate) fn standing(&self) -> Result<Vec<StandingDecision>, StoreError> {
        let database = self.database();
        let all = || -> rusqlite::Result<Vec<StandingDecision>> {
            let mut statement = database.connection.prepare_cached(
                "SELECT persona, pattern, decision, read_only, decided_by FROM standing \
                 ORDER BY persona, pattern LIMIT ?1",
            )?;
            statement
                .query_map([MAX_STANDING], |row| {
                    let word: String = row.get(2)?;
                    let decision = match word.as_str() {
                        "allow" => Standing::Allow,
                        "ask" => Standing::Ask,
                        // Anything else is the narrowest there is.
                        _ => Standing::Deny,
                    };
                    Ok(StandingDecision {
                        persona: row.get(0)?,
                        pattern: row.get(1)?,
                        decision,
                        read_only: row.get(3)?,
                        decided_by: row.get(4)?,
                    })
                })?
                .collect()
        };
        all().map_err(database.error("read the standing decisions"))
    }

    /// Freezes; a second freeze of the same thing keeps the later reason.
    pub(crate) fn freeze(&self, freeze: &Freeze) -> Result<(), StoreError> {
        let now = self.now_ms();
        let (kind, name) = freeze.what.columns();
        let mut database = self.database();
        let failed = database.error("freeze");
        let transaction = database.write("freeze")?;
        transaction
            .execute(
                "INSERT OR REPLACE INTO frozen (kind, name, reason, frozen_by, frozen_at_ms) \
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![kind, name, freeze.reason, freeze.frozen_by, now],
            )
            .map_err(&failed)?;
        transaction.commit().map_err(&failed)
    }

    /// Ends a freeze; whether there was one.
    pub(crate) fn thaw(&self, what: &Frozen) -> Result<bool, StoreError> {
        let (kind, name) = what.columns();
        let mut database = self.database();
        let failed = database.error("thaw");
        let transaction = database.write("thaw")?;
        let ended = transaction
            .execute("DELETE FROM frozen WHERE kind = ?1 AND name = ?2", params![kind, name])
            .map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(ended == 1)
    }

    /// Everything that is frozen.
    pub(crate) fn frozen(&self) -> Result<Vec<Freeze>, StoreError> {
        let database = self.database();
        let all = || -> rusqlite::Result<Vec<Freeze>> {
            let mut statement = database.connection.prepare_cached(
                "SELECT kind, name, reason, frozen_by FROM frozen ORDER BY kind, name LIMIT ?1",
            )?;
            statement
                .query_map([MAX_FROZEN], |row| {
                    let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
                    let what = match kind.as_str() {
                        "server" => Frozen::Server(name),
                        "plugin" => Frozen::Plugin(name),
                        _ => Frozen::All,
                    };
                    Ok(Freeze { what, reason: row.get(2)?, frozen_by: row.get(3)? })
                })?
                .collect()
        };
        all().map_err(database.error("read what is frozen"))
    }
}

#[cfg(test)]
mod tests;
