//! Pins: the definitions of a server that the operator accepted.
//!
//! Contract (PI-05): `pins_of` answers with all pins of an identity, with "never pinned", or with
//! an error; what is unreadable, incomplete, altered or older than it was is an error, never
//! "never pinned". Each server's pins have one digest over all of them, kept in `known_servers`
//! and a second time in [`super::known`].
//!
//! Bounds: 20,000 definitions a server; a definition is as long as the message it came in.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use toolgate_signing::Digest;

use super::State;
use super::ask_rows::digest;
use super::known::{self, Entry};
use crate::error::StoreError;

const MAX_DEFINITIONS: usize = 20_000;
const DOMAIN: &[u8] = b"toolgate pins of a server, version 1\n";

/// One accepted definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PinnedDefinition {
    /// What it is: `tool`, `prompt`, `resource`, `template` or `instructions`.
    pub kind: String,
    /// Its original name.
    pub name: String,
    /// The digest that must match.
    pub digest: Digest,
    /// The definition itself as JSON text, so that a drift can be shown as a difference.
    pub definition_json: String,
}

/// All pins of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pins {
    /// The server they are of.
    pub known: KnownServer,
    /// The definitions in the order in which they were accepted, which is the server's own.
    pub definitions: Vec<PinnedDefinition>,
}

/// A server that was pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownServer {
    /// Its identity: what it is started or reached by.
    pub identity: Digest,
    /// Its name when it was pinned.
    pub server: String,
    /// The protocol revision that the definitions were read in; empty where only `pins.known` is
    /// left to tell of the server.
    pub protocol_revision: String,
    /// Grows with each acceptance.
    pub revision: i64,
    /// When it was accepted last, in milliseconds since the Unix epoch.
    pub pinned_at_ms: i64,
}

impl Pins {
    /// The pin of one definition.
    pub fn of(&self, kind: &str, name: &str) -> Option<&PinnedDefinition> {
        self.definitions.iter().find(|pin| pin.kind == kind && pin.name == name)
    }
}

/// A known server with the digest of its pins, as the database has it.
struct Record {
    known: KnownServer,
    content: Digest,
}

impl State {
    pub(crate) fn pins_of(&self, identity: &Digest) -> Result<Option<Pins>, StoreError> {
        let witness = known::read(&self.data_dir)?.remove(&identity.to_string());
        let mut database = self.database();
        let failed = database.error("read the pins");
        let path = database.path.clone();
        let snapshot = database.connection.transaction().map_err(&failed)?;
        let record = record_of(&snapshot, identity).map_err(&failed)?;
        let definitions = definitions_of(&snapshot, identity).map_err(&failed)?;
        drop(snapshot);
        let lost = |server: &str, what: String| StoreError::PinsLost {
            server: server.to_owned(),
            identity: *identity,
            what,
        };
        let Some(Record { known, content }) = record else {
            return match witness {
                Some(entry) => {
                    Err(lost(&entry.server, format!("they were accepted, but {} has none", path.display())))
                }
                None if definitions.is_empty() => Ok(None),
                None => Err(lost(
                    &identity.to_string(),
                    "there are pins of a server that was never accepted".to_owned(),
                )),
            };
        };
        if content_digest(&known, &definitions) != content {
            return Err(lost(
                &known.server,
                "a pin was removed, added or altered since they were accepted".to_owned(),
            ));
        }
        // The file may be behind after a kill, never ahead.
        if let Some(entry) = witness {
            let older = known.revision < entry.revision;
            let other = known.revision == entry.revision && content != entry.content;
            if older || other {
                return Err(lost(
                    &known.server,
                    format!(
                        "they are of revision {}, but revision {} was accepted",
                        known.revision, entry.revision
                    ),
                ));
            }
        }
        Ok(Some(Pins { known, definitions }))
    }

    pub(crate) fn write_pins(
        &self,
        identity: &Digest,
        server: &str,
        protocol_revision: &str,
        definitions: &[PinnedDefinition],
    ) -> Result<KnownServer, StoreError> {
        if definitions.len() > MAX_DEFINITIONS {
            return Err(StoreError::TooManyDefinitions { found: definitions.len(), limit: MAX_DEFINITIONS });
        }
        // The witness may be newer than a database that was put back; the new revision tops both.
        let witnessed =
            known::read(&self.data_dir)?.get(&identity.to_string()).map_or(0, |entry| entry.revision);
        let now = self.now_ms();
        let mut database = self.database();
        let failed = database.error("write the pins");
        let transaction = database.write("write the pins")?;
        let stored: i64 = transaction
            .query_row(
                "SELECT coalesce(max(revision), 0) FROM known_servers WHERE identity = ?1",
                [identity.to_string()],
                |row| row.get(0),
            )
            .map_err(&failed)?;
        let known = KnownServer {
            identity: *identity,
            server: server.to_owned(),
            protocol_revision: protocol_revision.to_owned(),
            revision: stored.max(witnessed).saturating_add(1),
            pinned_at_ms: now,
        };
        let content = content_digest(&known, definitions);
        replace(&transaction, &known, &content, definitions).map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        drop(database);
        self.witness(&known, content)?;
        Ok(known)
    }

    pub(crate) fn known_servers(&self) -> Result<Vec<KnownServer>, StoreError> {
        let mut witnessed = known::read(&self.data_dir)?;
        let database = self.database();
        let records = records(&database.connection).map_err(database.error("list the pinned servers"))?;
        drop(database);
        let mut servers: Vec<KnownServer> = records.into_iter().map(|record| record.known).collect();
        for server in &servers {
            witnessed.remove(&server.identity.to_string());
        }
        // What only the file knows was pinned too: a deleted database makes nobody a stranger.
        servers.extend(witnessed.into_iter().filter_map(|(identity, entry)| {
            Some(KnownServer {
                identity: identity.parse().ok()?,
                server: entry.server,
                protocol_revision: String::new(),
                revision: entry.revision,
                pinned_at_ms: 0,
            })
        }));
        Ok(servers)
    }

    pub(crate) fn forget_pins(&self, identity: &Digest) -> Result<bool, StoreError> {
        // The file first: a kill in between leaves the pins in place, and the next start mends the
        // file. The other order would leave a server that can only be accepted again.
        let key = identity.to_string();
        known::change(&self.data_dir, |entries| entries.remove(&key).is_some())?;
        let mut database = self.database();
        let failed = database.error("forget the pins");
        let transaction = database.write("forget the pins")?;
        transaction.execute("DELETE FROM pins WHERE identity = ?1", [&key]).map_err(&failed)?;
        let gone =
            transaction.execute("DELETE FROM known_servers WHERE identity = ?1", [&key]).map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(gone > 0)
    }

    /// Brings the file up to a database that is ahead of it.
    pub(super) fn heal_known(&self) -> Result<(), StoreError> {
        let records = {
            let database = self.database();
            records(&database.connection).map_err(database.error("list the pinned servers"))?
        };
        let entries = known::read(&self.data_dir)?;
        for Record { known, content } in records {
            let behind =
                entries.get(&known.identity.to_string()).is_none_or(|entry| entry.revision < known.revision);
            if behind {
                tracing::warn!(server = known.server, "pins.known was behind and is mended");
                self.witness(&known, content)?;
            }
        }
        Ok(())
    }

    fn witness(&self, known: &KnownServer, content: Digest) -> Result<(), StoreError> {
        let entry = Entry {
            revision: known.revision,
            content,
            // One line a server, whatever the name.
            server: toolgate_base::display::escape(&known.server),
        };
        known::change(&self.data_dir, |entries| {
            let newer =
                entries.get(&known.identity.to_string()).is_none_or(|old| old.revision < entry.revision);
            if newer {
                entries.insert(known.identity.to_string(), entry);
            }
            newer
        })
    }
}

fn replace(
    connection: &Connection,
    known: &KnownServer,
    content: &Digest,
    definitions: &[PinnedDefinition],
) -> rusqlite::Result<()> {
    let identity = known.identity.to_string();
    connection.execute("DELETE FROM pins WHERE identity = ?1", [&identity])?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO pins (identity, kind, name, digest, definition) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for pin in definitions {
        insert
            .execute(params![identity, pin.kind, pin.name, pin.digest.to_string(), pin.definition_json,])?;
    }
    connection
        .execute(
            "INSERT INTO known_servers \
             (identity, server, protocol_revision, revision, content, pinned_at_ms) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT (identity) DO UPDATE SET server = ?2, protocol_revision = ?3, \
             revision = ?4, content = ?5, pinned_at_ms = ?6",
            params![
                identity,
                known.server,
                known.protocol_revision,
                known.revision,
                content.to_string(),
                known.pinned_at_ms,
            ],
        )
        .map(drop)
}

fn record_of(connection: &Connection, identity: &Digest) -> rusqlite::Result<Option<Record>> {
    connection
        .prepare_cached(
            "SELECT identity, server, protocol_revision, revision, content, pinned_at_ms \
             FROM known_servers WHERE identity = ?1",
        )?
        .query_row([identity.to_string()], record)
        .optional()
}

fn records(connection: &Connection) -> rusqlite::Result<Vec<Record>> {
    connection
        .prepare_cached(
            "SELECT identity, server, protocol_revision, revision, content, pinned_at_ms \
             FROM known_servers ORDER BY server, identity",
        )?
        .query_map([], record)?
        .collect()
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        known: KnownServer {
            identity: digest(row, 0)?,
            server: row.get(1)?,
            protocol_revision: row.get(2)?,
            revision: row.get(3)?,
            pinned_at_ms: row.get(5)?,
        },
        content: digest(row, 4)?,
    })
}

fn definitions_of(connection: &Connection, identity: &Digest) -> rusqlite::Result<Vec<PinnedDefinition>> {
    connection
        .prepare_cached("SELECT kind, name, digest, definition FROM pins WHERE identity = ?1 ORDER BY rowid")?
        .query_map([identity.to_string()], |row| {
            Ok(PinnedDefinition {
                kind: row.get(0)?,
                name: row.get(1)?,
                digest: digest(row, 2)?,
                definition_json: row.get(3)?,
            })
        })?
        .collect()
}

/// One digest over all that was accepted. The definitions' texts are part of it, so that the
/// difference an operator is shown is one against what was accepted.
fn content_digest(known: &KnownServer, definitions: &[PinnedDefinition]) -> Digest {
    let mut bytes = DOMAIN.to_vec();
    let mut field = |text: &str| {
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    };
    field(&known.identity.to_string());
    field(&known.server);
    field(&known.protocol_revision);
    field(&known.revision.to_string());
    for pin in definitions {
        field(&pin.kind);
        field(&pin.name);
        field(&pin.digest.to_string());
        let definition = Sha256::digest(pin.definition_json.as_bytes());
        field(&hex::encode(definition));
    }
    Digest::of(&bytes)
}

#[cfg(test)]
mod tests;
