//! What plugins remember: keys and values in the table `plugin_kv` of `state.db`.
//!
//! It has a connection of its own, opened at the first use: a write of a plugin must neither wait
//! for a decision that is being stored nor hold one up. Its commits survive the end of the process
//! (`synchronous=NORMAL`); the loss of power may take the last ones, which is no decision of a
//! person's. The table was added under format 1: a version without it ignores it.
//!
//! Bounds: a quota for each space, [`SPACES`] times that for all spaces of a label together.
//! Whatever has expired is not there, and is removed with the next write.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{OptionalExtension, Transaction, params};
use toolgate_base::Clock;

use crate::database::{Database, Durability};
use crate::error::StoreError;
use crate::paths;
use crate::state::FORMAT;

/// How many full spaces the label of a plugin may have.
const SPACES: u64 = 64;

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS plugin_kv (
    plugin TEXT NOT NULL,
    label TEXT NOT NULL,
    scope TEXT NOT NULL,
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    version INTEGER NOT NULL,
    expires_at_ms INTEGER,
    PRIMARY KEY (plugin, label, scope, owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS plugin_kv_by_expiry ON plugin_kv (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
";

/// To whom a value belongs.
#[derive(Debug, Clone, Copy)]
pub struct KvPlace<'a> {
    /// The plugin's name.
    pub plugin: &'a str,
    /// The label of its release.
    pub label: &'a str,
    /// `plugin`, `persona` or `session`.
    pub scope: &'a str,
    /// Which persona or session.
    pub owner: &'a str,
}

/// A stored value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvValue {
    /// The bytes.
    pub value: Vec<u8>,
    /// Goes up with every write of the key, also after it was removed.
    pub version: u64,
}

/// What has to be true for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvCondition {
    /// Nothing.
    None,
    /// The key has no value.
    Absent,
    /// The key has the value of this version.
    Version(u64),
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KvDone {
    /// Written under this version.
    Written(u64),
    /// The condition did not hold; what is there.
    Conflict(Option<KvValue>),
    /// It would exceed the quota; bytes in use.
    Full(u64),
}

/// The table, opened at the first use.
pub(crate) struct Kv {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    database: Mutex<Option<Database>>,
}

impl Kv {
    pub(crate) fn new(data_dir: &Path, clock: Arc<dyn Clock>) -> Self {
        Self { path: data_dir.join(paths::STATE_DB), clock, database: Mutex::new(None) }
    }

    pub(crate) fn get(&self, place: &KvPlace<'_>, key: &str) -> Result<Option<KvValue>, StoreError> {
        self.change("read a plugin's value", |transaction, now| current(transaction, place, key, now))
    }

    /// Writes a value whose key and value fit into `quota` together with what the space holds.
    pub(crate) fn write(
        &self,
        place: &KvPlace<'_>,
        key: &str,
        value: &[u8],
        ttl: Option<Duration>,
        condition: KvCondition,
        quota: u64,
    ) -> Result<KvDone, StoreError> {
        self.change("store a plugin's value", |transaction, now| {
            transaction.execute("DELETE FROM plugin_kv WHERE expires_at_ms <= ?1", [now])?;
            let found = current(transaction, place, key, now)?;
            let holds = match condition {
                KvCondition::None => true,
                KvCondition::Absent => found.is_none(),
                KvCondition::Version(version) => found.as_ref().is_some_and(|found| found.version == version),
            };
            if !holds {
                return Ok(KvDone::Conflict(found));
            }
            if let Some(used) = over_quota(transaction, place, key, value, quota)? {
                return Ok(KvDone::Full(used));
            }
            let before = found.map_or(0, |found| found.version);
            // Counted from the clock, so that a key that was removed does not begin again at one.
            let version = before.saturating_add(1).max(u64::try_from(now).unwrap_or(0).saturating_mul(1000));
            let expires = ttl.map(|ttl| now.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)));
            transaction.execute(
                "INSERT OR REPLACE INTO plugin_kv (plugin, label, scope, owner, key, value, version, expires_at_ms) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    place.plugin,
                    place.label,
                    place.scope,
                    place.owner,
                    key,
                    value,
                    i64::try_from(version).unwrap_or(i64::MAX),
                    expires
                ],
            )?;
            Ok(KvDone::Written(version))
        })
    }

    pub(crate) fn delete(&self, place: &KvPlace<'_>, key: &str) -> Result<bool, StoreError> {
        self.change("remove a plugin's value", |transaction, now| {
            let there = current(transaction, place, key, now)?.is_some();
            transaction.execute(
                "DELETE FROM plugin_kv WHERE plugin = ?1 AND label = ?2 AND scope = ?3 AND owner = ?4 AND key = ?5",
                params![place.plugin, place.label, place.scope, place.owner, key],
            )?;
            Ok(there)
        })
    }

    pub(crate) fn keys(
        &self,
        place: &KvPlace<'_>,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.change("list a plugin's keys", |transaction, now| {
            let mut statement = transaction.prepare_cached(
                "SELECT key FROM plugin_kv WHERE plugin = ?1 AND label = ?2 AND scope = ?3 AND owner = ?4 \
                 AND key >= ?5 AND key > ?6 AND substr(key, 1, length(?5)) = ?5 \
                 AND (expires_at_ms IS NULL OR expires_at_ms > ?7) ORDER BY key LIMIT ?8",
            )?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(
                params![place.plugin, place.label, place.scope, place.owner, prefix, after, now, limit],
                |row| row.get(0),
            )?;
            rows.collect()
        })
    }

    /// Runs one step in a transaction; a failed one changes nothing.
    fn change<T>(
        &self,
        doing: &'static str,
        step: impl FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let now = i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX);
        let mut open = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let database = match &mut *open {
            Some(database) => database,
            none => none.insert(self.open()?),
        };
        let failed = database.error(doing);
        let transaction = database.write(doing)?;
        let done = step(&transaction, now).map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(done)
    }

    fn open(&self) -> Result<Database, StoreError> {
        // The store was opened before, so a file that is empty now was made so behind its back.
        let lost = || StoreError::StateLost {
            path: self.path.clone(),
            evidence: "a process has it open still".to_owned(),
        };
        let database = Database::open_filled(&self.path, &FORMAT, Durability::Process, &|_| Err(lost()))?;
        database
            .connection
            .execute_batch(CREATE)
            .map_err(database.error("make the table of plugins' values"))?;
        Ok(database)
    }
}

fn current(
    transaction: &Transaction<'_>,
    place: &KvPlace<'_>,
    key: &str,
    now: i64,
) -> rusqlite::Result<Option<KvValue>> {
    transaction
        .prepare_cached(
            "SELECT value, version FROM plugin_kv WHERE plugin = ?1 AND label = ?2 AND scope = ?3 AND owner = ?4 \
             AND key = ?5 AND (expires_at_ms IS NULL OR expires_at_ms > ?6)",
        )?
        .query_row(params![place.plugin, place.label, place.scope, place.owner, key, now], |row| {
            Ok(KvValue {
                value: row.get(0)?,
                version: u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default(),
            })
        })
        .optional()
}

/// The bytes in use where this write would be too much, in its space or in all of the label.
fn over_quota(
    transaction: &Transaction<'_>,
    place: &KvPlace<'_>,
    key: &str,
    value: &[u8],
    quota: u64,
) -> rusqlite::Result<Option<u64>> {
    let (own, all): (i64, i64) = transaction
        .prepare_cached(
            "SELECT coalesce(sum(CASE WHEN scope = ?3 AND owner = ?4 THEN bytes ELSE 0 END), 0), coalesce(sum(bytes), 0) \
             FROM (SELECT scope, owner, length(CAST(key AS BLOB)) + length(value) AS bytes FROM plugin_kv \
             WHERE plugin = ?1 AND label = ?2 AND NOT (scope = ?3 AND owner = ?4 AND key = ?5))",
        )?
        .query_row(params![place.plugin, place.label, place.scope, place.owner, key], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let bytes = |count: i64| u64::try_from(count).unwrap_or_default();
    let more = u64::try_from(key.len() + value.len()).unwrap_or(u64::MAX);
    let full = |used: u64, most: u64| (used.saturating_add(more) > most).then_some(used);
    Ok(full(bytes(own), quota).or_else(|| full(bytes(all), quota.saturating_mul(SPACES))))
}

#[cfg(test)]
mod tests;
