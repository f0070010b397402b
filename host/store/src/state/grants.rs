//! Grants that are wider than one call: for a session, or for a persona.
//!
//! Contract: a grant opens what it was given for and nothing beside it: the same persona (and session),
//! server identity, action, tool and definition. Whatever of these changes, the grant is none. It never
//! decides: it answers the ask that the decision point made.
//!
//! Bounds: 10,000 grants are kept; revoked and expired ones are forgotten after 30 days.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use toolgate_base::random_hex;
use toolgate_signing::Digest;

use super::State;
use super::ask_rows::digest;
use super::asks::Ask;
use crate::error::StoreError;

const ID_BYTES: usize = 8;
const MAX_GRANTS: i64 = 10_000;
const KEEP_MS: i64 = 30 * 24 * 60 * 60 * 1000;
const COLUMNS: &str = "id, ask, scope, persona, session, server, server_identity, action, tool, definition, \
    granted_by, surface, created_at_ms, expires_at_ms, revoked_at_ms";

/// For whom a wider grant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantScope {
    /// The session that asked, as long as it lasts.
    Session,
    /// Every session of the persona.
    Persona,
}

/// A grant that is wider than one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// `grant_` and 16 hex digits.
    pub id: String,
    /// The ask that it answered.
    pub ask: String,
    /// For whom.
    pub scope: GrantScope,
    /// The persona.
    pub persona: String,
    /// The session, for a grant of one.
    pub session: Option<String>,
    /// The server's name, for display.
    pub server: String,
    /// The server.
    pub server_identity: Digest,
    /// `call`, `read`, …
    pub action: String,
    /// The original name.
    pub tool: String,
    /// The definition as it was when it was granted.
    pub definition: Digest,
    /// Who granted, and how that was proven.
    pub granted_by: String,
    /// Where.
    pub surface: String,
    /// When, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// Until when; `None`: until it is revoked.
    pub expires_at_ms: Option<i64>,
    /// When it was revoked.
    pub revoked_at_ms: Option<i64>,
}

/// What was open and was taken back together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Revoked {
    /// The ask that would have let its call pass once.
    pub ask: Option<String>,
    /// The wider grants, by their ids.
    pub grants: Vec<String>,
}

/// What a grant is looked up by: one call that would ask.
#[derive(Debug, Clone)]
pub struct GrantQuery<'a> {
    /// The persona that acts.
    pub persona: &'a str,
    /// The session it acts in.
    pub session: &'a str,
    /// The server.
    pub server_identity: &'a Digest,
    /// `call`, `read`, …
    pub action: &'a str,
    /// The original name.
    pub tool: &'a str,
    /// The definition that would be used.
    pub definition: &'a Digest,
}

impl GrantScope {
    /// The word in the database and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Persona => "persona",
        }
    }
}

impl Revoked {
    /// Every id of it, the ask first.
    pub fn ids(&self) -> Vec<&str> {
        self.ask.iter().chain(&self.grants).map(String::as_str).collect()
    }

    /// Whether nothing was open.
    pub fn is_empty(&self) -> bool {
        self.ask.is_none() && self.grants.is_empty()
    }
}

impl Grant {
    /// Whether it opens anything at this time.
    pub fn is_open(&self, now_ms: i64) -> bool {
        self.revoked_at_ms.is_none() && self.expires_at_ms.is_none_or(|until| until > now_ms)
    }
}

impl State {
    /// Records a wider grant from the ask it answers.
    pub(crate) fn add_grant(
        &self,
        ask: &Ask,
        scope: GrantScope,
        ttl: Option<Duration>,
        by: &str,
        surface: &str,
    ) -> Result<Grant, StoreError> {
        let now = self.now_ms();
        let until = ttl.map(|ttl| now.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)));
        let grant = Grant {
            id: format!("grant_{}", random_hex(ID_BYTES)),
            ask: ask.id.clone(),
            scope,
            persona: ask.about.persona.clone(),
            session: (scope == GrantScope::Session).then(|| ask.about.session.clone()),
            server: ask.about.server.clone(),
            server_identity: ask.binding.server_identity,
            action: ask.about.action.clone(),
            tool: ask.about.tool.clone(),
            definition: ask.binding.definition,
            granted_by: by.to_owned(),
            surface: surface.to_owned(),
            created_at_ms: now,
            expires_at_ms: until,
            revoked_at_ms: None,
        };
        let mut database = self.database();
        let failed = database.error("record a grant");
        let transaction = database.write("record a grant")?;
        transaction
            .execute(
                "DELETE FROM grants WHERE coalesce(revoked_at_ms, expires_at_ms) < ?1",
                [now.saturating_sub(KEEP_MS)],
            )
            .map_err(&failed)?;
        room(&transaction, now).map_err(&failed)??;
        let sql = format!(
            "INSERT INTO grants ({COLUMNS}) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, NULL)"
        );
        transaction
            .execute(
                &sql,
                params![
                    grant.id,
                    grant.ask,
                    scope.as_str(),
                    grant.persona,
                    grant.session,
                    grant.server,
                    grant.server_identity.to_string(),
                    grant.action,
                    grant.tool,
                    grant.definition.to_string(),
                    grant.granted_by,
                    grant.surface,
                    grant.created_at_ms,
                    grant.expires_at_ms,
                ],
            )
            .map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(grant)
    }

    /// An error where a grant would be one too many.
    pub(crate) fn grant_fits(&self) -> Result<(), StoreError> {
        let now = self.now_ms();
        let database = self.database();
        room(&database.connection, now).map_err(database.error("count the grants"))?
    }

    /// The open grant that covers exactly this, if there is one.
    pub(crate) fn grant_for(&self, query: &GrantQuery<'_>) -> Result<Option<Grant>, StoreError> {
        let now = self.now_ms();
        let database = self.database();
        let sql = format!(
            "SELECT {COLUMNS} FROM grants WHERE server_identity = ?1 AND tool = ?2 AND persona = ?3 \
             AND action = ?4 AND definition = ?5 AND revoked_at_ms IS NULL \
             AND (expires_at_ms IS NULL OR expires_at_ms > ?6) \
             AND (scope = 'persona' OR session = ?7) LIMIT 1"
        );
        let found = database.connection.prepare_cached(&sql).and_then(|mut statement| {
            let values = params![
                query.server_identity.to_string(),
                query.tool,
                query.persona,
                query.action,
                query.definition.to_string(),
                now,
                query.session,
            ];
            statement.query_row(values, read).optional()
        });
        found.map_err(database.error("look for a grant"))
    }

    /// Every grant that is kept, oldest first.
    pub(crate) fn grants(&self) -> Result<Vec<Grant>, StoreError> {
        let database = self.database();
        let all = || -> rusqlite::Result<Vec<Grant>> {
            let sql = format!("SELECT {COLUMNS} FROM grants ORDER BY created_at_ms, id");
            database.connection.prepare(&sql)?.query_map([], read)?.collect()
        };
        all().map_err(database.error("list the grants"))
    }

    /// What is open and ends where this id is revoked.
    pub(crate) fn revocable(&self, id: &str) -> Result<Revoked, StoreError> {
        let now = self.now_ms();
        let database = self.database();
        open_with(&database.connection, id, now).map_err(database.error("look for a grant"))
    }

    /// Ends exactly this, in one step. False, and nothing is changed, where something else is open by now.
    pub(crate) fn revoke(&self, id: &str, open: &Revoked, by: &str) -> Result<bool, StoreError> {
        let now = self.now_ms();
        let mut database = self.database();
        let failed = database.error("revoke a grant");
        let transaction = database.write("revoke a grant")?;
        if open_with(&transaction, id, now).map_err(&failed)? != *open {
            return Ok(false);
        }
        if let Some(ask) = &open.ask {
            let sql = "UPDATE asks SET state = 'denied', answered_by = ?2, closed_at_ms = ?3 WHERE id = ?1";
            transaction.execute(sql, params![ask, by, now]).map_err(&failed)?;
        }
        for grant in &open.grants {
            let sql = "UPDATE grants SET revoked_at_ms = ?2 WHERE id = ?1";
            transaction.execute(sql, params![grant, now]).map_err(&failed)?;
        }
        transaction.commit().map_err(&failed)?;
        Ok(true)
    }
}

/// What is open and came with this id: of an ask, the call that it opens and the wider grants that answered it; of
/// a wider grant, itself and the call of its ask, which would pass once more.
fn open_with(connection: &Connection, id: &str, now: i64) -> rusqlite::Result<Revoked> {
    let mut grants = connection.prepare_cached(
        "SELECT id, ask FROM grants WHERE (id = ?1 OR ask = ?1) AND revoked_at_ms IS NULL \
         AND (expires_at_ms IS NULL OR expires_at_ms > ?2) ORDER BY id",
    )?;
    let grants: Vec<(String, String)> = grants
        .query_map(params![id, now], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let ask = grants.first().map_or(id, |(_, ask)| ask);
    let ask = connection
        .prepare_cached("SELECT id FROM asks WHERE id = ?1 AND state = 'granted' AND expires_at_ms > ?2")?
        .query_row(params![ask, now], |row| row.get(0))
        .optional()?;
    Ok(Revoked { ask, grants: grants.into_iter().map(|(grant, _)| grant).collect() })
}

/// Whether there is room for one more; what is about to be forgotten takes none.
fn room(connection: &Connection, now: i64) -> rusqlite::Result<Result<(), StoreError>> {
    let kept: i64 = connection.query_row(
        "SELECT count(*) FROM grants WHERE coalesce(revoked_at_ms, expires_at_ms, ?1) >= ?1",
        [now.saturating_sub(KEEP_MS)],
        |row| row.get(0),
    )?;
    Ok(if kept >= MAX_GRANTS { Err(StoreError::TooManyGrants { limit: MAX_GRANTS }) } else { Ok(()) })
}

fn read(row: &Row<'_>) -> rusqlite::Result<Grant> {
    let scope: String = row.get(2)?;
    Ok(Grant {
        id: row.get(0)?,
        ask: row.get(1)?,
        scope: if scope == "persona" { GrantScope::Persona } else { GrantScope::Session },
        persona: row.get(3)?,
        session: row.get(4)?,
        server: row.get(5)?,
        server_identity: digest(row, 6)?,
        action: row.get(7)?,
        tool: row.get(8)?,
        definition: digest(row, 9)?,
        granted_by: row.get(10)?,
        surface: row.get(11)?,
        created_at_ms: row.get(12)?,
        expires_at_ms: row.get(13)?,
        revoked_at_ms: row.get(14)?,
    })
}

#[cfg(test)]
mod tests;
