use std::path::PathBuf;

use crate::testing::Bench;
use crate::{AuditReader, Problem, VerifyOptions, VerifyReport};

fn lines(bench: &Bench, after: i64) -> Vec<String> {
    let rows = bench.store().reader().unwrap().export_after(after, 100).unwrap();
    rows.iter().map(|row| serde_json::to_string(row).unwrap()).collect()
}

fn verified(bench: &Bench, lines: &[String]) -> VerifyReport {
    let file: PathBuf = bench.path().join("rows.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    AuditReader::verify_file(&file, &VerifyOptions::default()).unwrap()
}

#[test]
fn exported_rows_prove_themselves_wherever_they_begin() {
    let bench = Bench::new();
    bench.append(5);
    let report = verified(&bench, &lines(&bench, 0));
    assert!(report.is_intact(), "{:?}", report.findings);
    assert_eq!((report.rows, report.chains[0].last_seq), (5, 5));
    let report = verified(&bench, &lines(&bench, 3));
    assert!(report.is_intact(), "{:?}", report.findings);
    assert_eq!(report.rows, 2);
}

#[test]
fn an_exported_row_that_was_changed_taken_out_or_swapped_is_found() {
    let bench = Bench::new();
    bench.append(5);
    let whole = lines(&bench, 0);
    let mut changed = whole.clone();
    changed[2] = changed[2].replace("issues/create", "issues/delete");
    assert_eq!(verified(&bench, &changed).findings[0].problem, Problem::RowChanged);
    let mut out = whole.clone();
    out.remove(2);
    assert_eq!(verified(&bench, &out).findings[0].problem, Problem::RowMissing);
    let mut garbled = whole;
    garbled[4] = "{}".to_owned();
    assert_eq!(verified(&bench, &garbled).findings[0].problem, Problem::RowChanged);
}

/// A sink delivers at least once.
#[test]
fn a_row_that_comes_twice_is_no_finding_if_it_is_the_same() {
    let bench = Bench::new();
    bench.append(4);
    let mut twice = lines(&bench, 0);
    twice.extend(lines(&bench, 2));
    let report = verified(&bench, &twice);
    assert!(report.is_intact(), "{:?}", report.findings);
    assert_eq!(report.rows, 4);
}
