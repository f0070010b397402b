use rusqlite::Connection;

use crate::audit::{archive, schema, verify};
use crate::testing::{Bench, NOW_MS, append};
use crate::{
    AUDIT_ARCHIVE, AUDIT_DB, AuditReader, Filter, Problem, SegmentFiles, VerifyOptions, VerifyReport,
};

/// Two chains, ten seconds apart, the first half sealed.
fn sealed() -> (Bench, i64) {
    let mut bench = Bench::new();
    append(&bench.another("cli"), 2);
    bench.append(5);
    bench.clock.advance(10_000);
    bench.append(4);
    let before = i64::try_from(NOW_MS / 1000).unwrap() + 5;
    let segments = bench.store().archive(before, None).unwrap();
    assert_eq!(segments.len(), 1);
    assert_eq!((segments[0].first_id, segments[0].last_id), (1, 7));
    bench.open();
    (bench, before)
}

fn verified(bench: &Bench, segments: SegmentFiles) -> VerifyReport {
    let options = VerifyOptions { segments, ..VerifyOptions::default() };
    verify::verify(bench.path(), &options).unwrap()
}

#[test]
fn what_is_old_is_sealed_and_the_log_is_whole_across_the_cut() {
    let (bench, before) = sealed();
    // The chain `cli` has no row left in the table and goes on where it was sealed.
    append(&bench.another("cli"), 1);
    bench.append(2);
    let report = verified(&bench, SegmentFiles::Beside);
    assert!(report.is_intact(), "{:?}", report.findings);
    assert_eq!((report.rows, report.segments.len(), report.segments[0].read), (14, 1, true));
    assert_eq!(bench.store().reader().unwrap().tail(100, &Filter::default()).unwrap().len(), 7);
    assert_eq!(bench.store().archive(before, None).unwrap(), [], "nothing more is that old");
}

#[test]
fn all_rows_can_be_sealed_twice_and_numbers_go_on() {
    let (bench, _) = sealed();
    assert_eq!(bench.store().archive(i64::MAX, None).unwrap().len(), 1);
    assert_eq!(bench.store().reader().unwrap().last_id().unwrap(), 11);
    bench.append(1);
    assert_eq!(bench.store().reader().unwrap().last_id().unwrap(), 12);
    let report = verified(&bench, SegmentFiles::Beside);
    assert!(report.is_intact(), "{:?}", report.findings);
    assert_eq!((report.rows, report.segments.len()), (12, 2));
}

#[test]
fn what_a_sink_has_not_taken_is_not_sealed() {
    let bench = Bench::new();
    bench.append(6);
    let segments = bench.store().archive(i64::MAX, Some(4)).unwrap();
    assert_eq!(segments[0].last_id, 4);
}

#[test]
fn a_segment_that_was_changed_or_taken_away_is_found() {
    let (bench, _) = sealed();
    let file = bench.path().join(AUDIT_ARCHIVE).join("segment-000001.db");
    let whole = std::fs::read(&file).unwrap();
    let alone = AuditReader::verify_file(&file, &VerifyOptions::default()).unwrap();
    assert!(alone.is_intact() && alone.rows == 7, "{:?}", alone.findings);
    let connection = Connection::open(&file).unwrap();
    connection
        .execute_batch("DROP TRIGGER audit_log_no_update; UPDATE audit_log SET tool = 'x' WHERE id = 4")
        .unwrap();
    drop(connection);
    let problems: Vec<Problem> =
        verified(&bench, SegmentFiles::Beside).findings.iter().map(|finding| finding.problem).collect();
    assert_eq!(problems, [Problem::SegmentChanged, Problem::RowChanged]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(verified(&bench, SegmentFiles::Beside).findings[0].problem, Problem::SegmentMissing);
    let report = verified(&bench, SegmentFiles::Elsewhere);
    assert!(report.is_intact() && !report.segments[0].read, "{:?}", report.findings);
    let elsewhere = bench.path().join("shelf");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("segment-000001.db"), whole).unwrap();
    assert!(verified(&bench, SegmentFiles::In(elsewhere)).is_intact());
}

/// AUD-002: what no segment has sealed stays, and what a segment says stays.
#[test]
fn only_what_was_sealed_leaves_the_table() {
    let (bench, _) = sealed();
    let connection = bench.behind_its_back(AUDIT_DB);
    for sql in [
        "DELETE FROM audit_log",
        "DELETE FROM audit_segments",
        "UPDATE audit_segments SET last_id = 99",
        "DELETE FROM audit_sealed",
        "UPDATE audit_sealed SET seq = 1",
        "INSERT INTO audit_segments (number, first_id, last_id, sealed_at_ms, digest) VALUES (1, 1, 99, 0, '')",
    ] {
        let error = connection.execute_batch(sql).unwrap_err().to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
}

/// A cut that somebody forges lacks the file with the rows.
#[test]
fn rows_that_a_forged_segment_hides_are_missed() {
    let bench = Bench::new();
    bench.append(5);
    let connection = bench.behind_its_back(AUDIT_DB);
    connection
        .execute_batch(
            "INSERT INTO audit_segments (number, first_id, last_id, sealed_at_ms, digest) VALUES (1, 1, 3, 0, 'sha256:0');
             INSERT INTO audit_sealed SELECT 1, chain, seq, hash FROM audit_log WHERE id = 3;
             DELETE FROM audit_log WHERE id <= 3;",
        )
        .unwrap();
    assert_eq!(verified(&bench, SegmentFiles::Beside).findings[0].problem, Problem::SegmentMissing);
}

#[test]
fn rows_that_are_not_whole_are_not_sealed() {
    let bench = Bench::new();
    bench.append(5);
    bench.tamper("UPDATE audit_log SET tool = 'x' WHERE seq = 2");
    let error = archive::archive(bench.path(), i64::MAX, None, 1).unwrap_err().to_string();
    assert!(error.contains("not sealed"), "{error}");
    assert_eq!(std::fs::read_dir(bench.path().join(AUDIT_ARCHIVE)).unwrap().count(), 1, "the lock alone");
}

/// A log of format 1 is verified as it is, and brought up to date by its first writer.
#[test]
fn a_log_of_the_first_format_is_read_and_brought_up_to_date() {
    let mut bench = Bench::new();
    bench.close();
    let path = bench.path().join(AUDIT_DB);
    std::fs::remove_file(&path).unwrap();
    let old = Connection::open(&path).unwrap();
    old.execute_batch(schema::FORMAT_1).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    drop(old);
    assert!(bench.verify().is_intact());
    bench.open();
    bench.append(3);
    let report = bench.verify();
    assert!(report.is_intact() && report.rows == 3, "{:?}", report.findings);
    assert!(bench.path().join("audit.db.format-1").exists());
}
