//! What reads, and what only looks like it.

use super::judge;

fn passes(text: &str) -> String {
    judge(text, None).unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn refused(text: &str) -> String {
    judge(text, None).map_or_else(|why| why, |statement| panic!("{text} passed as {statement}"))
}

#[test]
fn statements_that_read_pass_as_they_were_understood() {
    assert_eq!(
        passes("select  a, b from t -- a comment\n where a = 'x''y' limit 3;"),
        "SELECT a, b FROM t WHERE a = 'x''y' LIMIT 3"
    );
    for text in [
        "SELECT 1",
        "VALUES (1, 2)",
        "WITH r AS (SELECT 1 AS n) SELECT n FROM r",
        "SELECT * FROM a UNION ALL SELECT * FROM b",
        "SELECT count(*), max(x) FROM t GROUP BY y HAVING count(*) > 1 ORDER BY 1 DESC",
        "SELECT * FROM (SELECT * FROM t) AS u LEFT JOIN v ON u.id = v.id",
        "SELECT CASE WHEN a IN (1, 2) THEN 'x' ELSE NULL END FROM t WHERE b LIKE '%;DROP%'",
        "EXPLAIN SELECT * FROM t",
    ] {
        passes(text);
        assert_eq!(passes(&passes(text)), passes(text), "what was written out is read the same way");
    }
}

#[test]
fn whatever_writes_or_reaches_outside_is_refused() {
    for text in [
        "DELETE FROM t",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "DROP TABLE t",
        "CREATE TABLE t (a)",
        "ATTACH DATABASE '/etc/x' AS y",
        "PRAGMA writable_schema = 1",
        "VACUUM INTO '/tmp/x'",
        "BEGIN",
        "REPLACE INTO t VALUES (1)",
        "SELECT 1; DROP TABLE t",
        "SELECT 1;;DELETE FROM t",
        "SELECT 1 /* ; */ ; DELETE FROM t --",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
        "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
        "EXPLAIN DELETE FROM t",
        "SELECT load_extension('/tmp/evil.so')",
        "SELECT * FROM t WHERE a = (SELECT LOAD_EXTENSION('x'))",
        "SELECT writefile('/tmp/x', 'y')",
        "SELECT * FROM pragma_table_info('t')",
        "SELECT * INTO u FROM t",
        "",
        "   ",
        "nonsense",
        "SELECT 'unterminated",
    ] {
        refused(text);
    }
}

#[test]
fn a_list_of_tables_holds_for_every_place_where_a_table_can_stand() {
    let only = ["notes".to_owned()];
    for text in
        ["SELECT * FROM notes", "SELECT * FROM \"Notes\"", "WITH r AS (SELECT * FROM notes) SELECT * FROM r"]
    {
        assert!(judge(text, Some(&only)).is_ok(), "{text}: {:?}", judge(text, Some(&only)));
    }
    for text in [
        "SELECT * FROM secrets",
        "SELECT * FROM notes, secrets",
        "SELECT * FROM notes JOIN secrets ON 1",
        "SELECT (SELECT a FROM secrets) FROM notes",
        "SELECT * FROM notes WHERE a IN (SELECT a FROM secrets)",
        "SELECT * FROM notes UNION SELECT * FROM secrets",
        "WITH r AS (SELECT * FROM secrets) SELECT * FROM r",
        "SELECT * FROM sqlite_schema",
    ] {
        assert!(judge(text, Some(&only)).is_err(), "{text}");
    }
}

#[test]
fn what_is_too_long_or_too_deep_is_refused() {
    assert!(refused(&format!("SELECT '{}'", "x".repeat(20_000))).contains("bytes"));
    refused(&format!("SELECT {}1{}", "(".repeat(200), ")".repeat(200)));
}
