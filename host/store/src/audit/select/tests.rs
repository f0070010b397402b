use std::time::{Duration, Instant};

use serde_json::json;

use super::{Bounds, run};
use crate::audit::schema::FORMAT;
use crate::database::Database;
use crate::testing::Bench;
use crate::{AUDIT_DB, ErrorClass, SelectOutcome, StoreError};

fn select(bench: &Bench, sql: &str) -> Result<SelectOutcome, StoreError> {
    bench.store().reader()?.select(sql)
}

/// AUD-011, in the words of the row.
#[test]
fn an_operator_reads_the_last_actions_with_a_select() {
    let bench = Bench::new();
    bench.append(30);
    let sql = "SELECT action, tool, created_at FROM audit_log ORDER BY created_at DESC LIMIT 20";
    let outcome = select(&bench, sql).unwrap();
    assert_eq!(outcome.columns, ["action", "tool", "created_at"]);
    assert_eq!(outcome.rows.len(), 20);
    assert_eq!(outcome.rows[0][..2], [json!("tool.execute"), json!("issues/create")]);
    assert!(!outcome.truncated);
}

#[test]
fn counting_grouping_json_times_and_windows_are_allowed() {
    let bench = Bench::new();
    bench.append(4);
    for (sql, first) in [
        ("SELECT count(*) FROM audit_log", json!(4)),
        ("select details ->> '$.server', count(*) from audit_log group by 1;", json!("github")),
        ("SELECT json_extract(details, '$.event') FROM audit_log", json!("mcp_called")),
        ("SELECT date(created_at, 'unixepoch') FROM audit_log", json!("2026-11-29")),
        ("SELECT row_number() OVER (ORDER BY id) FROM audit_log", json!(1)),
        ("SELECT seq FROM audit_log WHERE tool LIKE 'issues/%' AND tool GLOB '*create'", json!(1)),
        ("SELECT length(hash) FROM audit_log -- a comment", json!(32)),
        ("WITH calls AS (SELECT * FROM audit_log) SELECT max(seq) FROM calls", json!(4)),
    ] {
        let outcome = select(&bench, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(outcome.rows[0][0], first, "{sql}");
    }
}

/// FT-08 and AUD-002: nothing but reading `audit_log`.
#[test]
fn everything_else_is_refused_and_changes_nothing() {
    let bench = Bench::new();
    bench.append(3);
    for sql in [
        "",
        "-- nothing",
        "nonsense",
        "DELETE FROM audit_log",
        "UPDATE audit_log SET tool = 'x'",
        "INSERT INTO audit_log DEFAULT VALUES",
        "WITH x AS (SELECT 1) DELETE FROM audit_log",
        "DELETE FROM audit_log RETURNING *",
        "DROP TABLE audit_log",
        "DROP TRIGGER audit_log_no_delete",
        "CREATE TEMP TABLE t AS SELECT * FROM audit_log",
        "SELECT * FROM sqlite_schema",
        "SELECT * FROM pragma_database_list",
        "PRAGMA query_only = OFF",
        "PRAGMA journal_mode",
        "PRAGMA writable_schema = ON",
        "ATTACH DATABASE 'state.db' AS s",
        "VACUUM INTO 'copy.db'",
        "BEGIN",
        "SAVEPOINT s",
        "EXPLAIN SELECT * FROM audit_log",
        "SELECT load_extension('x')",
        "SELECT randomblob(1000000000)",
        "SELECT 1; SELECT 2",
        "SELECT 1 FROM audit_log; DELETE FROM audit_log",
        "SELECT * FROM audit_log WHERE seq = ?1",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "SELECT * FROM json_each('[1]')",
        "SELECT * FROM dbstat",
    ] {
        let error = select(&bench, sql).err().unwrap_or_else(|| panic!("{sql} was allowed"));
        assert!(matches!(error, StoreError::QueryRefused { .. }), "{sql}: {error}");
        assert_eq!(error.class(), ErrorClass::Usage);
    }
    let report = bench.verify();
    assert!(report.is_intact());
    assert_eq!(report.rows, 3);
}

#[test]
fn rows_bytes_and_time_are_bounded() {
    let bench = Bench::new();
    bench.append(300);
    let open = || Database::open_read_only(&bench.path().join(AUDIT_DB), &FORMAT).unwrap();
    let few = Bounds { rows: 7, ..Bounds::default() };
    let outcome = run(open(), "SELECT * FROM audit_log", &few).unwrap();
    assert_eq!((outcome.rows.len(), outcome.truncated), (7, true));
    let small = Bounds { bytes: 1_000, ..Bounds::default() };
    let outcome = run(open(), "SELECT details FROM audit_log", &small).unwrap();
    assert!(outcome.rows.len() < 10 && outcome.truncated);
    let short = Bounds { time: Duration::from_millis(50), ..Bounds::default() };
    let started = Instant::now();
    let sql = "SELECT count(*) FROM audit_log a, audit_log b, audit_log c, audit_log d";
    let error = run(open(), sql, &short).unwrap_err();
    assert!(error.to_string().contains("longer than it may"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
}
