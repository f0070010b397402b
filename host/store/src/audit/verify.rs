//! Proving that the log is what was written.
//!
//! One pass over the sealed segments and then over the table, in the order of their numbers, in constant
//! memory for each chain, inside one read transaction, so that a gateway may go on writing. Found are: a changed byte of any
//! column, a row that was taken out or put in, a tail that was cut, a chain that vanished, rows
//! whose anchor vanished, triggers and tables that are not the ones this build makes, and pages
//! that SQLite itself calls damaged. Not found is what somebody does who rewrites all of the
//! database and of `audit.heads` consistently: against that there are checkpoints that were signed and
//! kept elsewhere ([`super::signed`]), and rows that a sink took away.
//!
//! Bounds: 100 findings; a chain that is wrong throughout would repeat itself.

mod exported;
mod pass;
mod sealed;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::pass::Pass;
use super::heads::{Anchors, Heads};
use super::schema;
use super::signed::Checkpoint;
use crate::database::Database;
use crate::error::StoreError;
use crate::paths;

/// How the first bytes of every SQLite file read.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// What to compare a log with beside itself.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Where the sealed segments are.
    pub segments: SegmentFiles,
    /// Checkpoints whose signatures were checked, each with the name it has in findings.
    pub checkpoints: Vec<(String, Checkpoint)>,
}

/// Where the sealed segments are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SegmentFiles {
    /// In `audit-archive` beside the log, or beside the file that is verified.
    #[default]
    Beside,
    /// In this directory.
    In(PathBuf),
    /// Elsewhere: the heads that were sealed are taken as they stand, and the report says so.
    Elsewhere,
}

/// What `audit verify` says. Exit 0 where [`Self::is_intact`], else 5.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// How many rows were read.
    pub rows: u64,
    /// The number of the last row of the log.
    pub last_id: i64,
    /// Every chain, by name.
    pub chains: Vec<ChainSummary>,
    /// The sealed segments, oldest first.
    pub segments: Vec<SegmentSummary>,
    /// The checkpoints that were compared.
    pub checkpoints: Vec<String>,
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

/// One sealed segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SegmentSummary {
    /// Its number.
    pub number: i64,
    /// The first row in it.
    pub first_id: i64,
    /// The last row in it.
    pub last_id: i64,
    /// Whether its file was read; otherwise its rows were not looked at.
    pub read: bool,
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
    /// A segment's file is not there.
    SegmentMissing,
    /// A segment's file is not the one that was sealed.
    SegmentChanged,
    /// A row that a checkpoint vouches for is there with another hash.
    CheckpointMismatch,
    /// The log ends before a row that a checkpoint vouches for.
    CheckpointCut,
    /// The rows begin after the one that a checkpoint vouches for, so nothing was compared.
    CheckpointOutside,
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
            Self::SegmentMissing => "segment_missing",
            Self::SegmentChanged => "segment_changed",
            Self::CheckpointMismatch => "checkpoint_mismatch",
            Self::CheckpointCut => "checkpoint_cut",
            Self::CheckpointOutside => "checkpoint_outside",
            Self::SchemaChanged => "schema_changed",
        }
    }
}

/// Verifies the log of a data directory. A log that was never begun is intact. An error means that
/// verification could not be done: no right to read, a newer format.
pub fn verify(data_dir: &Path, options: &VerifyOptions) -> Result<VerifyReport, StoreError> {
    let heads = Heads::of(data_dir);
    // The anchors are read before the snapshot of the rows is taken: a gateway may be writing, and
    // an anchor that is older than the rows is no contradiction.
    let mut pass = Pass::new(heads.read()?, &options.checkpoints);
    let path = data_dir.join(paths::AUDIT_DB);
    if path.try_exists().is_ok_and(|there| !there) {
        pass.missing_database();
        return Ok(pass.report());
    }
    let read = Database::open_read_only(&path, &schema::FORMAT);
    verify_database(&mut pass, read, &data_dir.join(paths::AUDIT_ARCHIVE), options)?;
    // A chain that began while we were reading got its anchor in between.
    let newer = heads.read()?;
    pass.compare_with_anchors(&newer);
    pass.compare_with_checkpoints();
    Ok(pass.report())
}

/// Verifies a file that was taken elsewhere: a copy of `audit.db`, a sealed segment, or rows as
/// `audit export` and the sinks write them. There are no anchors; bring a checkpoint.
pub fn verify_file(file: &Path, options: &VerifyOptions) -> Result<VerifyReport, StoreError> {
    let mut pass = Pass::new(Anchors::Slots(Vec::new()), &options.checkpoints);
    if begins_like_sqlite(file)? {
        let beside = file.parent().unwrap_or_else(|| Path::new("."));
        let archive = beside.join(paths::AUDIT_ARCHIVE);
        let archive = if archive.is_dir() { archive } else { beside.to_owned() };
        verify_database(&mut pass, Database::open_copy(file, &schema::FORMAT), &archive, options)?;
    } else {
        exported::read(&mut pass, file)?;
    }
    pass.compare_with_checkpoints();
    Ok(pass.report())
}

/// The rows of one segment's file alone, from the heads that were sealed before it.
pub(crate) fn pass_over_segment(file: &Path, anchors: Anchors) -> Result<VerifyReport, StoreError> {
    let mut pass = Pass::new(anchors, &[]);
    pass.database(&Database::open_copy(file, &schema::FORMAT)?, None)?;
    Ok(pass.report())
}

fn verify_database(
    pass: &mut Pass,
    opened: Result<Database, StoreError>,
    archive: &Path,
    options: &VerifyOptions,
) -> Result<(), StoreError> {
    let directory = match &options.segments {
        SegmentFiles::Beside => Some(archive),
        SegmentFiles::In(directory) => Some(directory.as_path()),
        SegmentFiles::Elsewhere => None,
    };
    match opened.and_then(|database| pass.database(&database, directory)) {
        Ok(()) => Ok(()),
        // What SQLite cannot read is the very thing that was asked for.
        Err(StoreError::Damaged { what, .. }) => {
            pass.find(None, None, Problem::DatabaseDamaged, what);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn begins_like_sqlite(file: &Path) -> Result<bool, StoreError> {
    let mut first = Vec::new();
    std::fs::File::open(file)
        .and_then(|open| {
            std::io::Read::read_to_end(&mut std::io::Read::take(open, SQLITE.len() as u64), &mut first)
        })
        .map_err(|source| StoreError::io("read", file, source))?;
    Ok(first == SQLITE)
}

#[cfg(test)]
mod tests;
