//! The log as its writer sees it: one transaction a group, one chain, one anchor.
//!
//! The head of the chain is read inside `BEGIN IMMEDIATE`, so that another process with the same
//! writer name extends the chain instead of forking it. A chain whose anchor contradicts the
//! database is left alone and its successor `<writer>.2`, `.3` … is begun (see [`super`]).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};
use toolgate_base::Clock;

use super::chain::{self, Columns, Hash};
use super::checkpoint::Checkpointer;
use super::heads::{self, Anchors, Head, Heads, MAX_CHAIN_NAME};
use super::prepare::Prepared;
use super::row::Position;
use super::{schema, segments};
use crate::database::{BUSY_TIMEOUT, Database, Durability};
use crate::error::StoreError;
use crate::paths;

/// The longest name of a writer; the rest of the column is for the number of a successor.
const MAX_WRITER_NAME: usize = 16;
/// How soon after the last anchor a commit on the call path leaves the next one to the thread, which looks
/// every few milliseconds. A quiet log is anchored with each commit; in a busy one the anchor is behind by a
/// look of the thread, and by this where the thread is late.
const ANCHOR_PAUSE: Duration = Duration::from_millis(20);
/// How many successors a chain may have before the operator must look.
const MAX_SUCCESSORS: u32 = 50;

/// How long a commit may wait for other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Not at all: the caller runs on a thread that serves others. [`StoreError::Locked`] is then
    /// no verdict, and the rows are to be given to somebody who can wait.
    None,
    /// As long as the store ever waits.
    Full,
}

/// An open `audit.db` with the right to append.
pub(crate) struct Log {
    database: Database,
    heads: Heads,
    clock: Arc<dyn Clock>,
    writer: String,
    current: Option<Current>,
    checkpointer: Checkpointer,
    anchor_warned: bool,
    patience: Patience,
    /// When the anchor was moved last.
    anchored: Option<Instant>,
    /// Work that was too much for the call path.
    anchor_due: bool,
    checkpoint_due: bool,
}

/// The chain in use and its head after the last commit of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Current {
    chain: String,
    head: Head,
}

impl Log {
    /// Opens or creates the log.
    pub(crate) fn open(
        data_dir: &Path,
        writer: &str,
        durability: Durability,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        check_name(writer)?;
        let path = data_dir.join(paths::AUDIT_DB);
        let database = Database::open(&path, &schema::FORMAT, durability)?;
        // The WAL is written back by another thread: a checkpoint syncs, which takes longer than
        // many calls do.
        database
            .connection
            .pragma_update(None, "wal_autocheckpoint", 0)
            .map_err(database.error("set up the connection"))?;
        let heads = Heads::of(data_dir);
        let empty: bool = database
            .connection
            .query_row(
                "SELECT NOT EXISTS (SELECT 1 FROM audit_log UNION ALL SELECT 1 FROM audit_segments)",
                [],
                |row| row.get(0),
            )
            .map_err(database.error("look for rows"))?;
        if empty {
            heads.create()?;
        }
        Ok(Self {
            checkpointer: Checkpointer::new(&path),
            database,
            heads,
            clock,
            writer: writer.to_owned(),
            current: None,
            anchor_warned: false,
            patience: Patience::Full,
            anchored: None,
            anchor_due: false,
            checkpoint_due: false,
        })
    }

    /// Commits rows in one transaction and moves the anchor.
    pub(crate) fn append(
        &mut self,
        rows: &[Prepared],
        patience: Patience,
    ) -> Result<Vec<Position>, StoreError> {
        let failed = self.database.error("append to the audit log");
        self.be(patience).map_err(&failed)?;
        execute(&self.database.connection, "BEGIN IMMEDIATE").map_err(&failed)?;
        let inserted = self.insert_all(rows, &failed).and_then(|inserted| {
            execute(&self.database.connection, "COMMIT").map_err(&failed)?;
            Ok(inserted)
        });
        let (current, positions) = match inserted {
            Ok(inserted) => inserted,
            Err(error) => {
                // SQLite may have rolled back by itself; then there is nothing left to undo.
                if !self.database.connection.is_autocommit() {
                    execute(&self.database.connection, "ROLLBACK").map_err(&failed)?;
                }
                // The head is looked up anew: what contradicted it may be what failed.
                self.current = None;
                return Err(error);
            }
        };
        let just_now = self.anchored.is_some_and(|anchored| anchored.elapsed() < ANCHOR_PAUSE);
        if patience == Patience::None && just_now {
            self.anchor_due = true;
        } else {
            self.anchor(&current);
        }
        self.current = Some(current);
        self.checkpoint_due |= self.checkpointer.wrote(rows.len());
        if patience == Patience::Full {
            self.catch_up();
        }
        Ok(positions)
    }

    /// Whether [`Self::catch_up`] has something to do.
    pub(crate) fn is_behind(&self) -> bool {
        self.anchor_due || self.checkpoint_due
    }

    /// Whether it should be done before anything else is written.
    pub(crate) fn is_far_behind(&self) -> bool {
        self.checkpoint_due
    }

    /// What the anchor of a busy log is to be moved to, for whoever does that beside the log.
    pub(crate) fn take_due_anchor(&mut self) -> Option<(String, Head)> {
        if !std::mem::take(&mut self.anchor_due) {
            return None;
        }
        self.anchored = Some(Instant::now());
        self.current.as_ref().map(|current| (current.chain.clone(), current.head))
    }

    /// The same file of anchors, to move one beside the log.
    pub(crate) fn heads_beside(&self) -> Heads {
        self.heads.beside()
    }

    /// Moves the anchor now; where that fails the log says so.
    pub(crate) fn anchor_now(&mut self) {
        self.anchor_due = true;
        self.catch_up();
    }

    /// Does what a commit without patience has left: the anchor of a busy log, and the checkpoint of a
    /// WAL that has grown too long.
    pub(crate) fn catch_up(&mut self) {
        self.patience = Patience::Full;
        if let Some(current) = self.current.clone().filter(|_| self.anchor_due) {
            self.anchor(&current);
        }
        if std::mem::take(&mut self.checkpoint_due) {
            self.checkpointer.checkpoint(&self.database.connection);
        }
    }

    /// Sets how long SQLite waits for another process.
    fn be(&mut self, patience: Patience) -> rusqlite::Result<()> {
        let wait = match patience {
            Patience::None => Duration::ZERO,
            Patience::Full => BUSY_TIMEOUT,
        };
        self.database.connection.busy_timeout(wait)?;
        self.patience = patience;
        Ok(())
    }

    fn insert_all(
        &self,
        rows: &[Prepared],
        failed: &impl Fn(rusqlite::Error) -> StoreError,
    ) -> Result<(Current, Vec<Position>), StoreError> {
        let connection = &self.database.connection;
        let last = Last::of(connection).map_err(failed)?;
        let mut current = match &self.current {
            // Most often the last row of the whole log is this chain's own, and one look is enough.
            Some(current) if last.as_ref().is_some_and(|last| last.is_head_of(current)) => current.clone(),
            Some(current) if head_of(connection, &current.chain).map_err(failed)? == Some(current.head) => {
                current.clone()
            }
            _ => choose_chain(connection, &self.heads, &self.writer, failed)?,
        };
        let mut id = match last {
            Some(last) => last.id,
            // Every row was sealed: the numbers go on where the last segment ends.
            None => segments::last_id(connection).map_err(failed)?,
        };
        let mut positions = Vec::with_capacity(rows.len());
        for row in rows {
            let now_ms = i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX);
            id = id.saturating_add(1);
            current.head = insert(connection, &current, id, now_ms, row).map_err(failed)?;
            positions.push(Position { id, chain: current.chain.clone(), seq: current.head.seq });
        }
        Ok((current, positions))
    }

    /// Moves the anchor to the last row and ends the checkpoint thread; the connection closes with the
    /// value.
    pub(crate) fn close(mut self) {
        self.catch_up();
        self.checkpointer.stop();
    }

    /// A head that cannot be written only lags behind, which `verify` allows; the rows are safe.
    fn anchor(&mut self, current: &Current) {
        let pauses = match self.patience {
            Patience::None => 0,
            Patience::Full => heads::LOCK_PAUSES,
        };
        self.anchor_due = false;
        let problem = match self.heads.advance(&current.chain, &current.head, pauses) {
            Ok(true) => {
                self.anchor_warned = false;
                self.anchored = Some(Instant::now());
                return;
            }
            Err(_) if self.patience == Patience::None => {
                // The next commits leave it to the thread as well.
                self.anchored = Some(Instant::now());
                self.anchor_due = true;
                return;
            }
            Ok(false) => "it has no anchor for this chain".to_owned(),
            Err(error) => error.to_string(),
        };
        if !self.anchor_warned {
            self.anchor_warned = true;
            tracing::error!(
                file = %self.heads.path().display(),
                chain = current.chain,
                problem,
                "audit rows are written but not anchored; run `toolgate audit verify`"
            );
        }
    }
}

fn check_name(writer: &str) -> Result<(), StoreError> {
    let fits = (1..=MAX_WRITER_NAME).contains(&writer.len())
        && writer.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if fits { Ok(()) } else { Err(StoreError::WriterName { name: writer.to_owned() }) }
}

/// The first of a writer's chains that its anchor does not contradict.
fn choose_chain(
    connection: &Connection,
    heads: &Heads,
    writer: &str,
    failed: &impl Fn(rusqlite::Error) -> StoreError,
) -> Result<Current, StoreError> {
    let anchors = heads.read()?;
    for number in 1..=MAX_SUCCESSORS {
        let chain = chain_name(writer, number);
        let head = head_of(connection, &chain).map_err(failed)?;
        if !matches!(anchors, Anchors::Slots(_)) {
            // Without anchors there is nothing to compare with. `verify` reports the file.
            let head = head.unwrap_or(Head::EMPTY);
            return Ok(Current { chain, head });
        }
        let agrees = match (anchors.of(&chain), head) {
            (None, None) => {
                heads.reserve(&chain)?;
                true
            }
            (None, Some(_)) => false,
            (Some(anchor), _) if anchor.seq == 0 => true,
            (Some(anchor), _) => {
                hash_at(connection, &chain, anchor.seq).map_err(failed)? == Some(anchor.hash)
            }
        };
        if agrees {
            let head = head.unwrap_or(Head::EMPTY);
            return Ok(Current { chain, head });
        }
        tracing::error!(
            chain,
            "the audit log does not match its anchor; the chain is not continued. \
             Run `toolgate audit verify`"
        );
    }
    Err(StoreError::Damaged {
        path: heads.path().to_owned(),
        what: format!("none of {MAX_SUCCESSORS} chains of `{writer}` matches its anchor"),
        repair: "keep audit.db and audit.heads for inspection: move both away together",
    })
}

fn chain_name(writer: &str, number: u32) -> String {
    let name = if number == 1 { writer.to_owned() } else { format!("{writer}.{number}") };
    debug_assert!(name.len() <= MAX_CHAIN_NAME);
    name
}

/// Runs a statement without parameters, from the cache: this happens twice for each group.
fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

/// The last row of the whole log, whosever it is. Asked without parameters: a statement whose plan
/// depends on a value is compiled again for each.
struct Last {
    id: i64,
    chain: String,
    head: Head,
}

impl Last {
    fn of(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached("SELECT id, chain, seq, hash FROM audit_log ORDER BY id DESC LIMIT 1")?
            .query_row([], |row| {
                let head = Head { seq: row.get(2)?, hash: row.get(3)? };
                Ok(Self { id: row.get(0)?, chain: row.get(1)?, head })
            })
            .optional()
    }

    fn is_head_of(&self, current: &Current) -> bool {
        self.head == current.head && self.chain == current.chain
    }
}

fn head_of(connection: &Connection, chain: &str) -> rusqlite::Result<Option<Head>> {
    let live = connection
        .prepare_cached("SELECT seq, hash FROM audit_log WHERE chain = ?1 ORDER BY seq DESC LIMIT 1")?
        .query_row([chain], |row| Ok(Head { seq: row.get(0)?, hash: row.get(1)? }))
        .optional()?;
    match live {
        Some(head) => Ok(Some(head)),
        None => Ok(segments::heads(connection)?.remove(chain)),
    }
}

fn hash_at(connection: &Connection, chain: &str, seq: i64) -> rusqlite::Result<Option<Hash>> {
    connection
        .prepare_cached(
            "SELECT hash FROM audit_log WHERE chain = ?1 AND seq = ?2 \
             UNION ALL SELECT hash FROM audit_sealed WHERE chain = ?1 AND seq = ?2",
        )?
        .query_row(params![chain, seq], |row| row.get(0))
        .optional()
}

fn insert(
    connection: &Connection,
    current: &Current,
    id: i64,
    now_ms: i64,
    row: &Prepared,
) -> rusqlite::Result<Head> {
    let seq = current.head.seq.saturating_add(1);
    let created_at = now_ms.div_euclid(1000);
    let columns = Columns {
        id,
        chain: current.chain.as_bytes(),
        seq,
        run_id: row.run_id.as_deref().map(str::as_bytes),
        thread_id: row.thread_id.as_deref().map(str::as_bytes),
        persona_id: row.persona_id.as_deref().map(str::as_bytes),
        action: row.action.as_bytes(),
        tool: row.tool.as_deref().map(str::as_bytes),
        request_id: row.request_id.as_deref().map(str::as_bytes),
        details: row.details.as_bytes(),
        created_at,
        created_at_ms: now_ms,
    };
    let hash = chain::hash(&current.head.hash, &columns);
    let inserted = connection.prepare_cached(schema::INSERT)?.execute(params![
        id,
        current.chain,
        seq,
        row.run_id,
        row.thread_id,
        row.persona_id,
        row.action,
        row.tool,
        row.request_id,
        row.details,
        created_at,
        now_ms,
        hash,
    ])?;
    // A trigger of somebody else's could swallow the row without an error.
    if inserted == 1 { Ok(Head { seq, hash }) } else { Err(rusqlite::Error::StatementChangedRows(inserted)) }
}

#[cfg(test)]
pub(crate) mod tests;
