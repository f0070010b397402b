use std::fs;

use super::Memory;
use crate::testing::{Bench, append, digest, run};
use crate::{AUDIT_ARCHIVE, AUDIT_DB, AUDIT_HEADS, AuditRow, Event, Freeze, Frozen, StoreError, log_is_gone};

/// Seals all there is, with or without saying again what still counts.
fn seal(bench: &Bench, carry: bool) {
    run(async {
        let sealed = bench.store().archive(i64::MAX, None).unwrap();
        let last = sealed.last().unwrap();
        let carried = carry && bench.store().carry(last.last_id).await.unwrap();
        let row = AuditRow::new(Event::AuditArchived).with("last_id", last.last_id).with("carried", carried);
        bench.store().append(row).await.unwrap();
    });
}

fn pinned(bench: &Bench, server: &str) {
    run(bench.store().append(AuditRow::pinned(server, &digest(server), 1))).unwrap();
}

fn freeze(bench: &Bench, server: &str) {
    let what = Frozen::Server(server.to_owned());
    let freeze = Freeze { what, reason: "because".to_owned(), frozen_by: "me".to_owned() };
    run(bench.store().freeze(&freeze)).unwrap();
}

fn frozen(memory: &Memory) -> Vec<String> {
    memory.frozen().iter().map(|freeze| format!("{}: {}", freeze.what, freeze.reason)).collect()
}

#[test]
fn what_was_sealed_is_remembered_and_the_younger_word_counts() {
    let bench = Bench::new();
    pinned(&bench, "github");
    freeze(&bench, "a");
    freeze(&bench, "b");
    run(bench.store().append(AuditRow::new(Event::OperatorProofSet).with("record", "one"))).unwrap();
    seal(&bench, true);
    append(bench.store(), 1);
    run(bench.store().thaw(&Frozen::Server("a".to_owned()), "me")).unwrap();
    // A second cut, over the rows that said the first one again.
    seal(&bench, true);
    run(bench.store().append(AuditRow::new(Event::OperatorProofSet).with("record", "two"))).unwrap();
    let whole = Memory::read(bench.path()).unwrap();
    assert!(whole.was_pinned("github") && !whole.was_pinned("other"));
    assert_eq!(frozen(&whole), ["server b: because"]);
    assert_eq!(whole.proof().unwrap().record, Some("two"));
    // The segments may be taken elsewhere.
    fs::remove_dir_all(bench.path().join(AUDIT_ARCHIVE)).unwrap();
    assert_eq!(Memory::read(bench.path()).unwrap(), whole);
}

#[test]
fn a_segment_whose_memory_was_not_carried_is_read_and_named_where_it_is_missing() {
    let bench = Bench::new();
    pinned(&bench, "github");
    freeze(&bench, "a");
    seal(&bench, false);
    append(bench.store(), 1);
    let memory = Memory::read(bench.path()).unwrap();
    assert!(memory.was_pinned("github") && memory.missing().is_empty());
    assert_eq!(frozen(&memory), ["server a: because"]);
    // Another file in its place tells nothing.
    let file = bench.path().join(AUDIT_ARCHIVE).join("segment-000001.db");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(Memory::read(bench.path()).unwrap().missing(), std::slice::from_ref(&file));
    let error = bench.store().expect_never_pinned("github").unwrap_err();
    assert!(matches!(error, StoreError::SegmentNeeded { .. }), "{error}");
    seal(&bench, true);
    assert_eq!(
        Memory::read(bench.path()).unwrap().missing(),
        std::slice::from_ref(&file),
        "nothing hides the gap"
    );
    fs::write(&file, bytes).unwrap();
    let error = bench.store().expect_never_pinned("github").unwrap_err();
    assert!(matches!(error, StoreError::PinsForgotten { .. }), "{error}");
}

#[test]
fn a_server_is_looked_for_in_what_is_new_as_well() {
    let bench = Bench::new();
    bench.store().expect_never_pinned("github").unwrap();
    append(bench.store(), 2);
    pinned(&bench, "github");
    assert!(bench.store().expect_never_pinned("github").is_err());
    bench.store().expect_never_pinned("gitlab").unwrap();
}

#[test]
fn a_log_that_is_gone_is_told_by_its_anchors_and_by_what_was_sealed() {
    let mut bench = Bench::new();
    assert_eq!(log_is_gone(bench.path()).unwrap(), None, "there never was a row");
    append(bench.store(), 2);
    seal(&bench, true);
    assert_eq!(log_is_gone(bench.path()).unwrap(), None);
    bench.close();
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(bench.path().join(format!("{AUDIT_DB}{suffix}")));
    }
    assert!(log_is_gone(bench.path()).unwrap().unwrap().contains(AUDIT_HEADS));
    fs::remove_file(bench.path().join(AUDIT_HEADS)).unwrap();
    assert!(log_is_gone(bench.path()).unwrap().unwrap().contains(AUDIT_ARCHIVE));
}

#[test]
fn what_was_announced_and_not_done_and_what_was_taken_back_is_not_remembered() {
    let bench = Bench::new();
    freeze(&bench, "a");
    let thawed = || AuditRow::new(Event::Thawed).with("what", "server a").with("by", "me");
    let write = |row: AuditRow| run(bench.store().append(row)).unwrap();
    write(thawed());
    write(thawed().with("refused", "the disk is full"));
    assert_eq!(frozen(&Memory::read(bench.path()).unwrap()), ["server a: because"]);
    let decision = |word: &str| {
        let mut row =
            AuditRow::new(Event::StandingDecision).with("pattern", "mcp.call:a/x").with("decision", word);
        row.persona_id = Some("default".to_owned());
        row
    };
    write(decision("deny"));
    assert_eq!(Memory::read(bench.path()).unwrap().standing().len(), 1);
    write(decision("none"));
    assert_eq!(Memory::read(bench.path()).unwrap().standing(), []);
}
