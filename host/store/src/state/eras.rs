//! The era a server last answered in: a hint for the next probe, never a permission.

use rusqlite::{OptionalExtension, params};
use toolgate_signing::Digest;

use super::State;
use crate::error::StoreError;

impl State {
    pub(crate) fn remember_era(&self, identity: &Digest, era: &str) -> Result<(), StoreError> {
        let now = self.now_ms();
        let database = self.database();
        database
            .connection
            .prepare_cached(
                "INSERT INTO eras (identity, era, seen_at_ms) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (identity) DO UPDATE SET era = ?2, seen_at_ms = ?3",
            )
            .and_then(|mut statement| statement.execute(params![identity.to_string(), era, now]))
            .map(drop)
            .map_err(database.error("remember an era"))
    }

    pub(crate) fn era(&self, identity: &Digest) -> Result<Option<String>, StoreError> {
        let database = self.database();
        database
            .connection
            .prepare_cached("SELECT era FROM eras WHERE identity = ?1")
            .and_then(|mut statement| {
                statement.query_row([identity.to_string()], |row| row.get(0)).optional()
            })
            .map_err(database.error("read an era"))
    }
}
