//! The pass itself: what was read so far of each chain, and what did not match.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, Row};
use toolgate_base::display;

use super::{ChainSummary, Finding, Problem, SegmentSummary, VerifyReport};
use crate::audit::chain::{self, Hash};
use crate::audit::heads::{Anchors, Head};
use crate::audit::signed::Checkpoint;
use crate::audit::stored::{columns, is_unborn, objects};
use crate::audit::{schema, segments};
use crate::database::Database;
use crate::error::StoreError;

/// The most findings of one report.
const MAX_FINDINGS: usize = 100;

/// One pass over a log.
pub(super) struct Pass {
    anchors: Anchors,
    pub(super) rows: u64,
    /// The number of the last row that was read.
    pub(super) last_id: i64,
    chains: BTreeMap<String, Chain>,
    pub(super) segments: Vec<SegmentSummary>,
    checkpoints: Vec<Awaited>,
    findings: Vec<Finding>,
    more: bool,
}

/// What a checkpoint says of one chain, until the row is read.
struct Awaited {
    checkpoint: String,
    chain: String,
    head: Head,
    seen: bool,
}

/// A chain as far as it was read.
struct Chain {
    rows: u64,
    head: Head,
    /// The hash of the row that the anchor speaks of, once it was read.
    at_anchor: Option<Hash>,
}

impl Pass {
    /// A pass that has read nothing yet.
    pub(super) fn new(anchors: Anchors, checkpoints: &[(String, Checkpoint)]) -> Self {
        let awaited = checkpoints.iter().flat_map(|(name, checkpoint)| {
            let heads = checkpoint.heads.iter();
            heads.map(|(chain, head)| Awaited {
                checkpoint: name.clone(),
                chain: chain.clone(),
                head: Head { seq: head.seq, hash: head.hash },
                seen: false,
            })
        });
        Self {
            anchors,
            rows: 0,
            last_id: 0,
            chains: BTreeMap::new(),
            segments: Vec::new(),
            checkpoints: awaited.collect(),
            findings: Vec::new(),
            more: false,
        }
    }

    /// What was found.
    pub(super) fn report(self) -> VerifyReport {
        let mut checkpoints: Vec<String> =
            self.checkpoints.iter().map(|awaited| awaited.checkpoint.clone()).collect();
        checkpoints.dedup();
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
            last_id: self.last_id,
            chains: chains.collect(),
            segments: self.segments,
            checkpoints,
            findings: self.findings,
            more_findings: self.more,
        }
    }

    /// `audit.db` is not there.
    pub(super) fn missing_database(&mut self) {
        if let Anchors::Damaged(what) = self.anchors.clone() {
            self.find(None, None, Problem::HeadsDamaged, what);
        }
        for (chain, head) in self.anchored() {
            let detail = format!("audit.db is gone; audit.heads knows {} rows", head.seq);
            self.find(Some(&chain), Some(head.seq), Problem::DatabaseMissing, detail);
        }
    }

    /// Segments, schema, rows and pages of one database; `archive` has its segments.
    pub(super) fn database(&mut self, database: &Database, archive: Option<&Path>) -> Result<(), StoreError> {
        let failed = database.error("read all rows");
        // One snapshot for everything below.
        let snapshot = database.connection.unchecked_transaction().map_err(&failed)?;
        if is_unborn(&snapshot).map_err(&failed)? {
            return Ok(());
        }
        self.schema(&snapshot).map_err(&failed)?;
        self.sealed(&snapshot, archive).map_err(&failed)?;
        self.table(&snapshot).map_err(&failed)?;
        self.pages(&snapshot).map_err(&failed)
    }

    /// The objects of the database against those that this build makes.
    fn schema(&mut self, snapshot: &Connection) -> rusqlite::Result<()> {
        let made = Connection::open_in_memory()?;
        let script =
            if segments::knows_segments(snapshot)? { schema::FORMAT.create } else { schema::FORMAT_1 };
        made.execute_batch(script)?;
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

    /// Where a chain stands.
    pub(super) fn head(&self, chain: &str) -> Option<Head> {
        self.chains.get(chain).map(|chain| chain.head)
    }

    /// Every row in the order of its number. The hint keeps SQLite on the table itself: an index
    /// could hide what the table holds.
    pub(super) fn table(&mut self, snapshot: &Connection) -> rusqlite::Result<()> {
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
        self.meets_checkpoint(&name, Head { seq, hash: stored });
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
        // The stored hash goes on, so that one changed row does not mark all that follow.
        self.stands_at(name, Head { seq, hash: stored }, 1);
        Ok(())
    }

    /// Takes a head as read, with so many rows.
    pub(super) fn stands_at(&mut self, name: String, head: Head, rows: u64) {
        let anchored = self.anchors.of(&name).is_some_and(|anchor| anchor.seq == head.seq);
        let chain = self.chains.entry(name).or_insert(Chain { rows: 0, head: Head::EMPTY, at_anchor: None });
        chain.rows += rows;
        chain.head = head;
        if anchored {
            chain.at_anchor = Some(head.hash);
        }
    }

    /// Compares a row with what a checkpoint says of it.
    pub(super) fn meets_checkpoint(&mut self, chain: &str, head: Head) {
        let mut wrong = Vec::new();
        for awaited in &mut self.checkpoints {
            if awaited.chain == chain && awaited.head.seq == head.seq {
                awaited.seen = true;
                if awaited.head.hash != head.hash {
                    wrong.push(format!("{} was signed over another row", awaited.checkpoint));
                }
            }
        }
        for detail in wrong {
            self.find(Some(chain), Some(head.seq), Problem::CheckpointMismatch, detail);
        }
    }

    /// What the checkpoints know and nobody showed.
    pub(super) fn compare_with_checkpoints(&mut self) {
        let unseen: Vec<(String, Head, String)> = self
            .checkpoints
            .iter()
            .filter(|awaited| !awaited.seen && awaited.head.seq > 0)
            .map(|awaited| (awaited.chain.clone(), awaited.head, awaited.checkpoint.clone()))
            .collect();
        for (name, head, checkpoint) in unseen {
            let last = self.chains.get(&name).map_or(0, |chain| chain.head.seq);
            if last < head.seq {
                let detail =
                    format!("the chain ends at row {last}, {checkpoint} was signed over {}", head.seq);
                self.find(Some(&name), Some(head.seq), Problem::CheckpointCut, detail);
            } else {
                let detail = format!("the row that {checkpoint} was signed over is not among these");
                self.find(Some(&name), Some(head.seq), Problem::CheckpointOutside, detail);
            }
        }
    }

    /// What SQLite itself finds, such as an index that contradicts the table.
    pub(super) fn pages(&mut self, snapshot: &Connection) -> rusqlite::Result<()> {
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

    /// The anchors, as they were before the rows were read, and as they are now.
    pub(super) fn compare_with_anchors(&mut self, newer: &Anchors) {
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

    /// Adds a finding, up to the bound.
    pub(super) fn find(&mut self, chain: Option<&str>, seq: Option<i64>, problem: Problem, detail: String) {
        if self.findings.len() >= MAX_FINDINGS {
            self.more = true;
            return;
        }
        self.findings.push(Finding { chain: chain.map(display::escape), seq, problem, detail });
    }
}
