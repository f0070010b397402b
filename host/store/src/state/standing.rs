//! What the operator decided beforehand with `mcp allow|ask|deny`, and what is frozen.
//!
//! Both are facts and no decisions: the gateway hands the first to the policies as it hands them the
//! labels of toolgate.yaml, and the second to the binding. They are read as a whole when
//! [`version`](State::version) says that another process changed something.
//!
//! Bounds: 10,000 standing decisions, 1,000 frozen things. One more is refused, but for a freeze of
//! everything. Where there are more all the same, they cannot be read: what was left out could be a denial.

use rusqlite::{Connection, params};
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
    /// When, in milliseconds since the Unix epoch; 0 of one that is not recorded yet.
    pub decided_at_ms: i64,
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
    pub(super) fn columns(&self) -> (&'static str, &str) {
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
        self.still_there()?;
        let database = self.database();
        database
            .connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(database.error("look for changes"))
    }

    /// Sets or replaces a standing decision. False, and nothing is changed, where that takes back what was
    /// decided and the operator was not `proven`.
    pub(crate) fn set_standing(&self, decision: &StandingDecision, proven: bool) -> Result<bool, StoreError> {
        let now = self.now_ms();
        let mut database = self.database();
        let failed = database.error("record a standing decision");
        let transaction = database.write("record a standing decision")?;
        room_for_decision(&transaction, &decision.persona, &decision.pattern).map_err(&failed)??;
        if !proven && takes_back(&transaction, decision).map_err(&failed)? {
            return Ok(false);
        }
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
        transaction.commit().map_err(&failed)?;
        Ok(true)
    }

    /// An error where a decision would be one too many.
    pub(crate) fn standing_fits(&self, decision: &StandingDecision) -> Result<(), StoreError> {
        let database = self.database();
        room_for_decision(&database.connection, &decision.persona, &decision.pattern)
            .map_err(database.error("count the standing decisions"))?
    }

    /// The decision about exactly this, if there is one.
    pub(crate) fn standing_of(
        &self,
        persona: &str,
        pattern: &str,
    ) -> Result<Option<StandingDecision>, StoreError> {
        Ok(self.standing()?.into_iter().find(|row| row.persona == persona && row.pattern == pattern))
    }

    /// Takes a decision back, if it is still the one that the caller saw. Whether it did.
    pub(crate) fn forget_standing(&self, decision: &StandingDecision) -> Result<bool, StoreError> {
        let mut database = self.database();
        let failed = database.error("take back a standing decision");
        let transaction = database.write("take back a standing decision")?;
        let forgotten = transaction
            .execute(
                "DELETE FROM standing WHERE persona = ?1 AND pattern = ?2 AND decision = ?3 AND read_only = ?4",
                params![
                    decision.persona,
                    decision.pattern,
                    decision.decision.as_str(),
                    decision.read_only
                ],
            )
            .map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(forgotten == 1)
    }

    /// Whether a decision would take back a part of the one that it replaces.
    pub(crate) fn takes_back(&self, decision: &StandingDecision) -> Result<bool, StoreError> {
        let database = self.database();
        takes_back(&database.connection, decision).map_err(database.error("look for a standing decision"))
    }

    /// Every standing decision, in a stable order.
    pub(crate) fn standing(&self) -> Result<Vec<StandingDecision>, StoreError> {
        let database = self.database();
        let all = || -> rusqlite::Result<Vec<StandingDecision>> {
            let mut statement = database.connection.prepare_cached(
                "SELECT persona, pattern, decision, read_only, decided_by, decided_at_ms FROM standing \
                 ORDER BY persona, pattern LIMIT ?1",
            )?;
            statement
                .query_map([MAX_STANDING + 1], |row| {
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
                        decided_at_ms: row.get(5)?,
                    })
                })?
                .collect()
        };
        let all = all().map_err(database.error("read the standing decisions"))?;
        within(all, "standing decisions", MAX_STANDING)
    }

    /// An error where a freeze would be one too many.
    pub(crate) fn freeze_fits(&self, what: &Frozen) -> Result<(), StoreError> {
        let database = self.database();
        room_for_freeze(&database.connection, what).map_err(database.error("count the freezes"))?
    }

    /// Freezes; a second freeze of the same thing keeps the later reason.
    pub(crate) fn freeze(&self, freeze: &Freeze) -> Result<(), StoreError> {
        let now = self.now_ms();
        let (kind, name) = freeze.what.columns();
        let mut database = self.database();
        let failed = database.error("freeze");
        let transaction = database.write("freeze")?;
        room_for_freeze(&transaction, &freeze.what).map_err(&failed)??;
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
        self.still_there()?;
        let database = self.database();
        let all = || -> rusqlite::Result<Vec<Freeze>> {
            let mut statement = database.connection.prepare_cached(
                "SELECT kind, name, reason, frozen_by FROM frozen ORDER BY kind, name LIMIT ?1",
            )?;
            statement
                .query_map([MAX_FROZEN + 1], |row| {
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
        let all = all().map_err(database.error("read what is frozen"))?;
        within(all, "freezes", MAX_FROZEN)
    }
}

fn room_for_decision(
    connection: &Connection,
    persona: &str,
    pattern: &str,
) -> rusqlite::Result<Result<(), StoreError>> {
    let others: i64 = connection.query_row(
        "SELECT count(*) FROM standing WHERE NOT (persona = ?1 AND pattern = ?2)",
        params![persona, pattern],
        |row| row.get(0),
    )?;
    let error = StoreError::TooManyStanding { what: "standing decisions", limit: MAX_STANDING };
    Ok(if others >= MAX_STANDING { Err(error) } else { Ok(()) })
}

/// Room for a freeze of everything is kept.
fn room_for_freeze(connection: &Connection, what: &Frozen) -> rusqlite::Result<Result<(), StoreError>> {
    let (kind, name) = what.columns();
    let others: i64 = connection.query_row(
        "SELECT count(*) FROM frozen WHERE NOT (kind = ?1 AND name = ?2)",
        params![kind, name],
        |row| row.get(0),
    )?;
    let error = StoreError::TooManyStanding { what: "freezes", limit: MAX_FROZEN - 1 };
    Ok(if others + 1 >= MAX_FROZEN && *what != Frozen::All { Err(error) } else { Ok(()) })
}

/// A decision about tools that only read replaces one about all of them, which takes the rest back: the
/// denial, or the ask. Of what was allowed nothing is kept by any narrower word.
fn takes_back(connection: &Connection, decision: &StandingDecision) -> rusqlite::Result<bool> {
    if !decision.read_only {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM standing WHERE persona = ?1 AND pattern = ?2 \
             AND decision <> 'allow' AND NOT read_only)",
        )?
        .query_row(params![decision.persona, decision.pattern], |row| row.get(0))
}

fn within<T>(all: Vec<T>, what: &'static str, limit: i64) -> Result<Vec<T>, StoreError> {
    match i64::try_from(all.len()) {
        Ok(count) if count <= limit => Ok(all),
        _ => Err(StoreError::TooManyStanding { what, limit }),
    }
}

#[cfg(test)]
mod tests;
