//! Bearer tokens: 256 random bits, stored as a digest.
//!
//! A stolen `state.db` opens nothing. A token is looked up by its digest, so the comparison that a
//! stranger can time is over bytes he cannot choose.

use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;
use toolgate_base::{Secret, random_hex};
use toolgate_signing::Digest;

use super::State;
use crate::error::StoreError;

/// What every token begins with, so that secret scanners can find one.
const PREFIX: &str = "tgt_";
/// Random bytes of a token.
const BYTES: usize = 32;
/// Longer texts are no tokens and are not even hashed.
const MAX_LENGTH: usize = 256;
const DOMAIN: &[u8] = b"toolgate bearer token, version 1\n";

/// A new token. The secret is shown once and not kept.
#[derive(Debug)]
pub struct IssuedToken {
    /// Its id, for `token list|revoke` and the audit log.
    pub id: String,
    /// The token itself.
    pub secret: Secret,
}

/// Whose token it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenOwner {
    /// The token's id.
    pub id: String,
    /// The persona it acts as.
    pub persona: String,
    /// The lane it acts in, as it was given when the token was issued.
    pub lane: String,
}

/// A token in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TokenInfo {
    /// Its id.
    pub id: String,
    /// The persona it acts as.
    pub persona: String,
    /// The lane it acts in.
    pub lane: String,
    /// When it was issued, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// When it was revoked; none while it opens something.
    pub revoked_at_ms: Option<i64>,
}

impl State {
    pub(crate) fn issue_token(&self, persona: &str, lane: &str) -> Result<IssuedToken, StoreError> {
        let secret = Secret::new(format!("{PREFIX}{}", random_hex(BYTES)));
        let id = format!("tok_{}", random_hex(6));
        let now = self.now_ms();
        let database = self.database();
        database
            .connection
            .execute(
                "INSERT INTO tokens (id, digest, persona, created_at_ms, lane) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![id, digest(secret.expose()), persona, now, lane],
            )
            .map_err(database.error("issue a token"))?;
        Ok(IssuedToken { id, secret })
    }

    pub(crate) fn persona_of(&self, token: &str) -> Result<Option<TokenOwner>, StoreError> {
        if token.is_empty() || token.len() > MAX_LENGTH {
            return Ok(None);
        }
        let digest = digest(token);
        let database = self.database();
        database
            .connection
            .prepare_cached(
                "SELECT id, persona, lane FROM tokens WHERE digest = ?1 AND revoked_at_ms IS NULL",
            )
            .and_then(|mut statement| {
                statement
                    .query_row([digest], |row| {
                        Ok(TokenOwner { id: row.get(0)?, persona: row.get(1)?, lane: row.get(2)? })
                    })
                    .optional()
            })
            .map_err(database.error("look a token up"))
    }

    pub(crate) fn tokens(&self) -> Result<Vec<TokenInfo>, StoreError> {
        let database = self.database();
        let read = || -> rusqlite::Result<Vec<TokenInfo>> {
            let mut statement = database.connection.prepare_cached(
                "SELECT id, persona, created_at_ms, revoked_at_ms, lane FROM tokens \
                 ORDER BY created_at_ms, id",
            )?;
            statement.query_map([], token_info)?.collect()
        };
        read().map_err(database.error("list the tokens"))
    }

    pub(crate) fn revoke_token(&self, id: &str) -> Result<bool, StoreError> {
        let now = self.now_ms();
        let database = self.database();
        database
            .connection
            .execute(
                "UPDATE tokens SET revoked_at_ms = ?2 WHERE id = ?1 AND revoked_at_ms IS NULL",
                params![id, now],
            )
            .map(|changed| changed == 1)
            .map_err(database.error("revoke a token"))
    }
}

fn token_info(row: &Row<'_>) -> rusqlite::Result<TokenInfo> {
    Ok(TokenInfo {
        id: row.get(0)?,
        persona: row.get(1)?,
        created_at_ms: row.get(2)?,
        revoked_at_ms: row.get(3)?,
        lane: row.get(4)?,
    })
}

fn digest(token: &str) -> String {
    Digest::of_parts(&[DOMAIN, token.as_bytes()]).hex()
}

#[cfg(test)]
mod tests;
