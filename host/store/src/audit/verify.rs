//! Proving that the log is what was written.
//!
//! One pass over the table in the order of its numbers, in constant memory for each chain, inside
//! one read transaction, so that a gateway may go on writing. Found are: a changed byte of any
//! column, a row that was taken out or put in, a tail that was cut, a chain that vanished, rows
//! whose anchor vanished, triggers and tables that are not the ones this build makes, and pages
//! that SQLite itself calls damaged. Not found is what somebody does who rewrites all of the
//! database and of `audit.heads` consistently: against that, copy the heads elsewhere.
//!
//! Bounds: 100 findings; a chain that is wrong throughout would repeat itself.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use rusqlite::{Connection, Row};
use serde::Serialize;
use toolgate_base::display;

use super::chain::{self, Hash};
use super::heads::{Anchors, Head, Heads};
use super::schema;
use super::stored::{columns, is_unborn, objects};
use crate::database::Database;
use crate::error::StoreError;
use crate::paths;

/// The most findings of one report.
const MAX_FINDINGS: usize = 100;

/// What `audit verify` says. Exit 0 where [`Self::is_intact`], else 5.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// How many rows were read.
    pub rows: u64,
    /// Every chain, by name.
    pub chains: Vec<ChainSummary>,
    /// What did not match, in the order it was found, at most 100.
    pub findings: Vec<Finding>,
    /// Whether there were more findings than that.
    pub more_findings: bool,
}

impl VerifyReport {
    /// Whether everything matched.
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty()
    }
}

/// One chain of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainSummary {
    /// Its name: the writer, or the writer with a number after a contradiction.
    pub chain: String,
    /// How many rows it has.
    pub rows: u64,
    /// The number of its last row.
    pub last_seq: i64,
    /// The hash of its last row, 64 hex digits. Copy it elsewhere to prove the log later.
    pub head: String,
    /// Up to which row `audit.heads` vouches for it; none where there is no anchor.
    pub anchored_seq: Option<i64>,
}

/// One thing that did not match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The chain, where one row or chain is concerned.
    pub chain: Option<String>,
    /// The number in the chain.
    pub seq: Option<i64>,
    /// The kind of problem.
    pub problem: Problem,
    /// What was expected and what was found.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(chain) = &self.chain {
            write!(formatter, "chain {chain}, ")?;
        }
        if let Some(seq) = self.seq {
            write!(formatter, "row {seq}, ")?;
        }
        write!(formatter, "{}: {}", self.problem.as_str(), self.detail)
    }
}

/// Kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// The row's hash is not that of its columns and its predecessor.
    RowChanged,
    /// One or more rows before this one are gone.
    RowMissing,
    /// The chain ends before its anchor.
    TailCut,
    /// The anchored row is there with another hash: the chain was written anew.
    AnchorMismatch,
    /// The chain has rows but no anchor.
    AnchorMissing,
    /// `audit.heads` is missing although there are rows.
    HeadsMissing,
    /// `audit.heads` is not what Toolgate wrote.
    HeadsDamaged,
    /// `audit.db` is missing although it was anchored.
    DatabaseMissing,
    /// SQLite cannot read the file, or says that its pages contradict each other.
    DatabaseDamaged,
    /// The append-only trigger is missing or altered, or there is an object of unknown origin.
    SchemaChanged,
}

impl Problem {
    /// The word for it, as `--json` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RowChanged => "row_changed",
            Self::RowMissing => "row_missing",
            Self::TailCut => "tail_cut",
            Self::AnchorMismatch => "anchor_mismatch",
            Self::AnchorMissing => "anchor_missing",
            Self::HeadsMissing => "heads_missing",
            Self::HeadsDamaged => "heads_damaged",
            Self::DatabaseMissing => "database_missing",
            Self::DatabaseDamaged => "database_damaged",
            Self::SchemaChanged => "schema_changed",
        }
    }
}

/// Verifies the log of a data directory. A log that was never begun is intact. An error means that
/// verification could not be done: no right to read, a newer format.
pub fn verify(data_dir: &Path) -> Result<VerifyReport, StoreError> {
    let heads = Heads::of(data_dir);
    // The anchors are read before the snapshot of the rows is taken: a gateway may be writing, and
    // an anchor that is older than the rows is no contradiction.
    let mut verifier = Verifier::new(heads.read()?);
    let path = data_dir.join(paths::AUDIT_DB);
    if path.try_exists().is_ok_and(|there| !there) {
        verifier.missing_database();
        return Ok(verifier.report());
    }
    let read =
        Database::open_read_only(&path, &schema::FORMAT).and_then(|database| verifier.database(&database));
    match read {
        Ok(()) => {}
        // What SQLite cannot read is the very thing that was asked for.
        Err(StoreError::Damaged { what, .. }) => {
            verifier.find(None, None, Problem::DatabaseDamaged, what);
        }
        Err(error) => return Err(error),
    }
    // A chain that began while we were reading got its anchor in between.
    let newer = heads.read()?;
    verifier.compare_with_anchors(&newer);
    Ok(verifier.report())
}

struct Verifier {
    anchors: Anchors,
    rows: u64,
    last_id: i64,
    chains: BTreeMap<String, Chain>,
    findings: Vec<Finding>,
    more: bool,
}

/// A chain as far as it was read.
struct Chain {
    rows: u64,
    head: Head,
    /// The hash of the row that the anchor speaks of, once it was read.
    at_anchor: Option<Hash>,
}

impl Verifier {
    fn new(anchors: Anchors) -> Self {
        Self { anchors, rows: 0, last_id: 0, chains: BTreeMap::new(), findings: Vec::new(), more: false }
    }

    fn report(self) -> VerifyReport {
        let anchors = &self.anchors;
        let chains = self.chains.into_iter().map(|(name, chain)| ChainSummary {
            rows: chain.rows,
            last_seq: chain.head.seq,
            head: hex::encode(chain.head.hash),
            anchored_seq: anchors.of(&name).map(|head| head.seq),
            chain: name,
        });
        VerifyReport {
            rows: self.rows,
            chains: chains.collect(),
            findings: self.findings,
            more_findings: self.more,
        }
    }

    fn missing_database(&mut self) {
        if let Anchors::Damaged(what) = self.anchors.clone() {
            self.find(None, None, Problem::HeadsDamaged, what);
        }
        for (chain, head) in self.anchored() {
            let detail = format!("audit.db is gone; audit.heads knows {} rows", head.seq);
            self.find(Some(&chain), Some(head.seq), Problem::DatabaseMissing, detail);
        }
    }

    fn database(&mut self, database: &Database) -> Result<(), StoreError> {
        let failed = database.error("read all rows");
        // One snapshot for everything below.
        let snapshot = database.connection.unchecked_transaction().map_err(&failed)?;
        if is_unborn(&snapshot).map_err(&failed)? {
            return Ok(());
        }
        self.schema(&snapshot).map_err(&failed)?;
        self.table(&snapshot).map_err(&failed)?;
        self.pages(&snapshot).map_err(&failed)
    }

    /// The objects of the database against those that this build makes.
    fn schema(&mut self, snapshot: &Connection) -> rusqlite::Result<()> {
        let made = Connection::open_in_memory()?;
        made.execute_batch(schema::FORMAT.create)?;
        let expected = objects(&made)?;
        let found = objects(snapshot)?;
        for (name, sql) in &expected {
            match found.get(name) {
                Some(other) if other == sql => {}
                Some(_) => self.find(
                    None,
                    None,
                    Problem::SchemaChanged,
                    format!("`{name}` is not as Toolgate made it"),
                ),
                None => {
                    let detail = format!("`{name}` is missing");
                    self.find(None, None, Problem::SchemaChanged, detail);
                }
            }
        }
        for name in found.keys().filter(|name| !expected.contains_key(*name)) {
            let detail = format!("`{}` was not made by Toolgate", display::escape(name));
            self.find(None, None, Problem::SchemaChanged, detail);
        }
        Ok(())
    }

    /// Every row in the order of its number. The hint keeps SQLite on the table itself: an index
    /// could hide what the table holds.
    fn table(&mut self, snapshot: &Connection) -> rusqlite::Result<()> {
        let sql = format!("SELECT {} FROM audit_log NOT INDEXED ORDER BY id", schema::COLUMNS);
        let mut statement = snapshot.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.rows += 1;
            self.row(row)?;
        }
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let id: i64 = row.get(0)?;
        let expected_id = self.last_id.saturating_add(1);
        self.last_id = id;
        let Some((columns, stored)) = columns(row)? else {
            let detail = format!("row {id}: a column has another type than it was written with");
            self.find(None, None, Problem::RowChanged, detail);
            return Ok(());
        };
        let name = String::from_utf8_lossy(columns.chain).into_owned();
        let seq = columns.seq;
        let previous = self.chains.get(&name).map_or(Head::EMPTY, |chain| chain.head);
        if seq != previous.seq.saturating_add(1) {
            let detail = format!("after row {} of the chain comes row {seq}", previous.seq);
            self.find(Some(&name), Some(seq), Problem::RowMissing, detail);
        } else if chain::hash(&previous.hash, &columns) != stored {
            let detail = "its hash is not that of its columns and the row before it".to_owned();
            self.find(Some(&name), Some(seq), Problem::RowChanged, detail);
        }
        if id != expected_id && seq == previous.seq.saturating_add(1) {
            // No gap in this chain, so the rows that are gone were of another one.
            let detail = format!("rows {expected_id} to {} of the log are gone", id - 1);
            self.find(Some(&name), Some(seq), Problem::RowMissing, detail);
        }
        let anchored = self.anchors.of(&name).is_some_and(|head| head.seq == seq);
        let chain = self.chains.entry(name).or_insert(Chain { rows: 0, head: Head::EMPTY, at_anchor: None });
        chain.rows += 1;
        // The stored hash goes on, so that one changed row does not mark all that follow.
        chain.head = Head { seq, hash: stored };
        if anchored {
            chain.at_anchor = Some(stored);
        }
        Ok(())
    }

    /// What SQLite itself finds, such as an index that contradicts the table.
    fn pages(&mut self, snapshot: &Connection) -> rusqlite::Result<()> {
        let mut statement = snapshot.prepare("PRAGMA integrity_check(10)")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let said: String = row.get(0)?;
            if said != "ok" {
                self.find(None, None, Problem::DatabaseDamaged, said);
            }
        }
        Ok(())
    }

    fn compare_with_anchors(&mut self, newer: &Anchors) {
        match (self.anchors.clone(), newer) {
            (Anchors::Damaged(what), _) => self.find(None, None, Problem::HeadsDamaged, what),
            (Anchors::Missing, Anchors::Missing) if self.rows > 0 => {
                let detail = "there are rows, but nothing says where they end".to_owned();
                self.find(None, None, Problem::HeadsMissing, detail);
            }
            _ => {
                self.rows_without_anchor(newer);
                self.anchors_without_row();
            }
        }
    }

    fn rows_without_anchor(&mut self, newer: &Anchors) {
        let bare: Vec<(String, i64)> = self
            .chains
            .iter()
            .filter(|(name, _)| self.anchors.of(name).is_none() && newer.of(name).is_none())
            .map(|(name, chain)| (name.clone(), chain.head.seq))
            .collect();
        for (name, seq) in bare {
            let detail = "audit.heads does not know this chain".to_owned();
            self.find(Some(&name), Some(seq), Problem::AnchorMissing, detail);
        }
    }

    fn anchors_without_row(&mut self) {
        for (name, anchor) in self.anchored() {
            let chain = self.chains.get(&name);
            let last = chain.map_or(0, |chain| chain.head.seq);
            let found = chain.and_then(|chain| chain.at_anchor);
            if last < anchor.seq {
                let detail = format!("the chain ends at row {last}, its anchor is {}", anchor.seq);
                self.find(Some(&name), Some(anchor.seq), Problem::TailCut, detail);
            } else if found.is_some_and(|hash| hash != anchor.hash) {
                let detail = "the row is not the one that was anchored".to_owned();
                self.find(Some(&name), Some(anchor.seq), Problem::AnchorMismatch, detail);
            }
        }
    }

    /// The anchors that speak of a row.
    fn anchored(&self) -> Vec<(String, Head)> {
        match &self.anchors {
            Anchors::Slots(slots) => slots.iter().filter(|(_, head)| head.seq > 0).cloned().collect(),
            Anchors::Missing | Anchors::Damaged(_) => Vec::new(),
        }
    }

    fn find(&mut self, chain: Option<&str>, seq: Option<i64>, problem: Problem, detail: String) {
        if self.findings.len() >= MAX_FINDINGS {
            self.more = true;
            return;
        }
        self.findings.push(Finding { chain: chain.map(display::escape), seq, problem, detail });
    }
}

#[cfg(test)]
mod tests;
