use std::path::Path;
use std::sync::Arc;

use toolgate_base::ManualClock;

use super::{Log, Patience};
use crate::audit::event::Event;
use crate::audit::prepare::Prepared;
use crate::audit::row::AuditRow;
use crate::database::Durability;
use crate::{Store, StoreError};

impl Log {
    /// Makes the disk full at so many pages.
    pub(crate) fn limit_pages(&self, pages: i64) {
        let limited: i64 = self
            .database
            .connection
            .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| row.get(0))
            .unwrap();
        assert!(limited >= pages);
    }
}

pub(crate) fn log(dir: &Path, writer: &str) -> Log {
    Log::open(dir, writer, Durability::Process, Arc::new(ManualClock::new(1_000))).unwrap()
}

fn rows(count: usize) -> Vec<Prepared> {
    let row = |number| AuditRow::new(Event::McpDenied).with("n", number);
    (0..count).map(|number| Prepared::new(row(number))).collect()
}

#[test]
fn two_writers_of_one_name_extend_one_chain() {
    let dir = tempfile::tempdir().unwrap();
    let (mut one, mut other) = (log(dir.path(), "gateway"), log(dir.path(), "gateway"));
    let mut seqs = Vec::new();
    for _ in 0..5 {
        seqs.extend(one.append(&rows(2), Patience::Full).unwrap());
        seqs.extend(other.append(&rows(1), Patience::Full).unwrap());
    }
    let seqs: Vec<i64> = seqs.iter().map(|position| position.seq).collect();
    assert_eq!(seqs, (1..=15).collect::<Vec<i64>>());
    let report = Store::verify(dir.path()).unwrap();
    assert!(report.is_intact(), "{:?}", report.findings);
    assert_eq!(report.chains.len(), 1);
    assert_eq!(report.chains[0].anchored_seq, Some(15));
}

#[test]
fn writers_of_two_names_have_two_chains_in_one_log() {
    let dir = tempfile::tempdir().unwrap();
    let (mut gateway, mut cli) = (log(dir.path(), "gateway"), log(dir.path(), "cli"));
    gateway.append(&rows(2), Patience::Full).unwrap();
    let position = cli.append(&rows(1), Patience::Full).unwrap().remove(0);
    assert_eq!((position.chain.as_str(), position.seq, position.id), ("cli", 1, 3));
    assert!(Store::verify(dir.path()).unwrap().is_intact());
}

#[test]
fn a_full_disk_writes_none_of_a_group_and_the_chain_goes_on_later() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = log(dir.path(), "gateway");
    log.append(&rows(1), Patience::Full).unwrap();
    log.limit_pages(12);
    let error = log.append(&rows(2_000), Patience::Full).unwrap_err();
    assert!(error.may_pass(), "{error}");
    assert!(matches!(error, StoreError::Sqlite { .. }), "{error}");
    log.limit_pages(100_000);
    assert_eq!(log.append(&rows(1), Patience::Full).unwrap()[0].seq, 2);
    assert!(Store::verify(dir.path()).unwrap().is_intact());
}

#[test]
fn a_chain_whose_tail_was_cut_is_left_as_evidence_and_a_successor_begins() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = log(dir.path(), "gateway");
    first.append(&rows(6), Patience::Full).unwrap();
    first
        .database
        .connection
        .execute_batch("DROP TRIGGER audit_log_no_delete; DELETE FROM audit_log WHERE seq > 4")
        .unwrap();
    // Both the running writer and a later one notice.
    let position = first.append(&rows(1), Patience::Full).unwrap().remove(0);
    assert_eq!((position.chain.as_str(), position.seq), ("gateway.2", 1));
    let position = log(dir.path(), "gateway").append(&rows(1), Patience::Full).unwrap().remove(0);
    assert_eq!((position.chain.as_str(), position.seq), ("gateway.2", 2));
    let report = Store::verify(dir.path()).unwrap();
    assert!(report.findings.iter().any(|finding| finding.problem == crate::Problem::TailCut));
}

#[test]
fn a_writers_name_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["", "Gateway", "a b", "gateway.2", "seventeen-letters"] {
        let opened = Log::open(dir.path(), name, Durability::Process, Arc::new(ManualClock::new(0)));
        assert!(matches!(opened, Err(StoreError::WriterName { .. })), "{name}");
    }
}
