use std::fs;

use crate::testing::{Bench, append};
use crate::{AUDIT_DB, AUDIT_HEADS, Problem, Store, StoreError, VerifyReport};

fn written(rows: usize) -> Bench {
    let mut bench = Bench::new();
    bench.append(rows);
    bench.close();
    bench
}

fn problems(report: &VerifyReport) -> Vec<Problem> {
    let mut problems: Vec<Problem> = report.findings.iter().map(|finding| finding.problem).collect();
    problems.dedup();
    problems
}

#[test]
fn an_untouched_log_is_intact_and_says_where_it_ends() {
    let report = written(25).verify();
    assert!(report.is_intact(), "{:?}", report.findings);
    assert_eq!(report.rows, 25);
    assert_eq!((report.chains[0].last_seq, report.chains[0].anchored_seq), (25, Some(25)));
    assert_eq!(report.chains[0].head.len(), 64);
}

#[test]
fn a_log_that_was_never_begun_is_intact() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Store::verify(dir.path()).unwrap().is_intact());
    assert!(written(0).verify().is_intact());
}

#[test]
fn a_changed_value_in_any_column_is_found_at_its_row() {
    for change in [
        "details = replace(details, 'mcp', 'mcq')",
        "created_at = created_at + 1",
        "created_at_ms = created_at_ms - 1",
        "tool = NULL",
        "run_id = 'another'",
        "thread_id = ''",
        "persona_id = 'root'",
        "action = 'tool.list'",
        "request_id = '1'",
        "hash = randomblob(32)",
    ] {
        let bench = written(9);
        bench.tamper(&format!("UPDATE audit_log SET {change} WHERE seq = 5"));
        let report = bench.verify();
        let first = report.findings.first().unwrap_or_else(|| panic!("{change} was not found"));
        assert_eq!(first.problem, Problem::RowChanged, "{change}");
        assert_eq!((first.chain.as_deref(), first.seq), (Some("gateway"), Some(5)), "{change}");
        assert!(report.findings.len() <= 2, "one row does not accuse all others: {change}");
    }
}

#[test]
fn one_changed_byte_in_the_file_is_found() {
    let bench = written(9);
    let path = bench.path().join(AUDIT_DB);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(10).position(|window| window == b"mcp_called").unwrap();
    bytes[at] = b'M';
    fs::write(&path, bytes).unwrap();
    assert_eq!(problems(&bench.verify()), [Problem::RowChanged]);
}

#[test]
fn a_row_deleted_in_the_middle_is_found() {
    let bench = written(9);
    bench.tamper("DELETE FROM audit_log WHERE seq = 4");
    let report = bench.verify();
    assert_eq!(problems(&report), [Problem::RowMissing]);
    assert_eq!(report.findings[0].seq, Some(5));
    assert!(report.findings[0].to_string().starts_with("chain gateway, row 5, row_missing"));
}

#[test]
fn a_tail_that_was_cut_is_found_against_the_heads() {
    for kept in [0, 1, 8] {
        let bench = written(9);
        bench.tamper(&format!("DELETE FROM audit_log WHERE seq > {kept}"));
        let report = bench.verify();
        assert_eq!(problems(&report), [Problem::TailCut], "{kept} rows kept");
        assert_eq!(report.findings[0].seq, Some(9));
    }
}

#[test]
fn a_chain_that_is_written_anew_does_not_match_its_anchor() {
    let bench = written(5);
    let heads = fs::read(bench.path().join(AUDIT_HEADS)).unwrap();
    for name in [AUDIT_DB, AUDIT_HEADS] {
        fs::remove_file(bench.path().join(name)).unwrap();
    }
    bench.clock.advance(60_000);
    append(&bench.another("gateway"), 6);
    fs::write(bench.path().join(AUDIT_HEADS), heads).unwrap();
    assert_eq!(problems(&bench.verify()), [Problem::AnchorMismatch]);
}

#[test]
fn a_chain_that_vanished_with_its_anchor_leaves_a_gap_in_the_log() {
    let mut bench = Bench::new();
    append(&bench.another("cli"), 2);
    bench.append(3);
    bench.close();
    bench.tamper("DELETE FROM audit_log WHERE chain = 'cli'");
    let path = bench.path().join(AUDIT_HEADS);
    let mut kept = fs::read_to_string(&path).unwrap();
    let at = kept.find("cli ").unwrap();
    kept.replace_range(at..at + 128, "");
    fs::write(&path, kept).unwrap();
    assert_eq!(problems(&bench.verify()), [Problem::RowMissing]);
}

#[test]
fn missing_or_altered_triggers_and_strange_objects_are_found() {
    for (change, count) in [
        ("DROP TRIGGER audit_log_no_delete", 1),
        ("DROP TRIGGER audit_log_no_update; DROP TRIGGER audit_log_grows_at_its_end", 2),
        (
            "DROP TRIGGER audit_log_no_delete; CREATE TRIGGER audit_log_no_delete BEFORE DELETE \
             ON audit_log BEGIN SELECT 1; END",
            1,
        ),
        (
            "CREATE TRIGGER quiet BEFORE INSERT ON audit_log WHEN NEW.tool = 'rm' \
             BEGIN SELECT RAISE(IGNORE); END",
            1,
        ),
        ("CREATE TABLE notes (text TEXT)", 1),
    ] {
        let bench = written(3);
        bench.behind_its_back(AUDIT_DB).execute_batch(change).unwrap();
        let report = bench.verify();
        assert_eq!(problems(&report), [Problem::SchemaChanged], "{change}");
        assert_eq!(report.findings.len(), count, "{change}");
    }
}

#[test]
fn a_missing_heads_file_is_reported_and_not_made_anew() {
    let mut bench = written(3);
    fs::remove_file(bench.path().join(AUDIT_HEADS)).unwrap();
    assert_eq!(problems(&bench.verify()), [Problem::HeadsMissing]);
    bench.open();
    bench.append(2);
    bench.close();
    assert!(!bench.path().join(AUDIT_HEADS).exists());
    let report = bench.verify();
    assert_eq!(problems(&report), [Problem::HeadsMissing]);
    assert_eq!(report.rows, 5, "the rows themselves are whole");
}

#[test]
fn a_damaged_heads_file_is_reported() {
    let bench = written(3);
    let path = bench.path().join(AUDIT_HEADS);
    let mut bytes = fs::read(&path).unwrap();
    bytes[140] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(problems(&bench.verify()), [Problem::HeadsDamaged]);
}

#[test]
fn a_chain_without_an_anchor_is_reported() {
    let bench = written(3);
    let path = bench.path().join(AUDIT_HEADS);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..128]).unwrap();
    assert_eq!(problems(&bench.verify()), [Problem::AnchorMissing]);
}

#[test]
fn a_database_that_is_gone_or_no_database_is_reported() {
    let bench = written(3);
    let path = bench.path().join(AUDIT_DB);
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(problems(&bench.verify()), [Problem::DatabaseMissing]);
    fs::write(&path, &bytes[..10]).unwrap();
    assert!(problems(&bench.verify()).contains(&Problem::DatabaseDamaged));
    fs::write(&path, b"").unwrap();
    assert_eq!(problems(&bench.verify()), [Problem::TailCut]);
}

#[test]
fn a_page_that_was_overwritten_is_reported() {
    let bench = written(200);
    let path = bench.path().join(AUDIT_DB);
    let mut bytes = fs::read(&path).unwrap();
    bytes[3 * 4096..4 * 4096].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let report = bench.verify();
    assert!(problems(&report).contains(&Problem::DatabaseDamaged), "{:?}", report.findings);
}

#[test]
fn a_log_of_a_newer_format_is_refused_and_not_called_damaged() {
    let bench = written(1);
    bench.behind_its_back(AUDIT_DB).execute_batch("PRAGMA user_version = 3").unwrap();
    let error = Store::verify(bench.path()).unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { found: 3, known: 2, .. }), "{error}");
    assert_eq!(error.class(), crate::ErrorClass::Usage);
    assert!(matches!(Store::open(bench.path(), "gateway"), Err(StoreError::NewerFormat { .. })));
}

#[test]
fn findings_are_bounded() {
    let bench = written(150);
    bench.tamper("UPDATE audit_log SET tool = 'x'");
    let report = bench.verify();
    assert_eq!(report.findings.len(), 100);
    assert!(report.more_findings);
}

#[test]
fn a_log_verifies_while_a_gateway_writes_to_it() {
    let bench = Bench::new();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                bench.append(5);
            }
        });
        for _ in 0..20 {
            let report = bench.verify();
            assert!(report.is_intact(), "{:?}", report.findings);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
