#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::PathBuf;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::{Answer, MAX_ROWS, QueryError, Scope, TABLES, engine, query, shape, words};

/// A database of two personas and two threads; every row of another scope says `theirs`.
struct Place {
    _dir: TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("host.db");
        let database = Connection::open(&path).unwrap();
        for table in TABLES {
            database
                .execute_batch(&format!(
                    "CREATE TABLE {table} (id INTEGER PRIMARY KEY, thread_id TEXT, persona_id TEXT, content TEXT);
                     INSERT INTO {table} (thread_id, persona_id, content) VALUES
                       ('t1', 'ann', 'mine {table} 1'), ('t1', 'ann', 'mine {table} 2'),
                       ('t2', 'ann', 'theirs'), ('t1', 'bob', 'theirs'), ('t2', 'bob', 'theirs');"
                ))
                .unwrap();
        }
        database
            .execute_batch("CREATE TABLE audit_log (id INTEGER, content TEXT); INSERT INTO audit_log VALUES (1, 'theirs');")
            .unwrap();
        Self { _dir: dir, path }
    }

    fn ask(&self, sql: &str) -> Result<Answer, QueryError> {
        query(&self.path, &scope(), sql)
    }

    fn refuses(&self, sql: &str) {
        let error = self.ask(sql).unwrap_err();
        assert!(matches!(error, QueryError::Refused(_)), "{sql}: {error}");
    }

    /// Straight to SQLite, as if the first two layers had let it through.
    fn engine_only(&self, sql: &str) -> Result<Answer, QueryError> {
        engine::run(&self.path, &scope(), sql)
    }
}

fn scope() -> Scope {
    Scope { persona: "ann".to_owned(), thread: "t1".to_owned() }
}

fn contents(answer: &Answer) -> Vec<String> {
    answer.rows.iter().map(|row| row.last().unwrap().as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn dbq_001_a_query_passes_five_layers_and_each_refuses_by_itself() {
    let place = Place::new();
    let answer = place
        .ask("SELECT id, content FROM messages WHERE content LIKE '%update%' OR id > 0 ORDER BY id")
        .unwrap();
    assert_eq!(contents(&answer), ["mine messages 1", "mine messages 2"]);
    // 1: words, before anything is parsed.
    words::check("DELETE FROM messages").unwrap_err();
    // 2: the shape, without the first.
    for sql in ["DELETE FROM messages", "SELECT 1 UNION SELECT 2", "SELECT content FROM audit_log"] {
        shape::check(sql).unwrap_err();
    }
    // 3: the scope, without the first two.
    for sql in [
        "SELECT content FROM main.messages",
        "SELECT content FROM audit_log",
        "SELECT sql FROM sqlite_schema",
    ] {
        assert!(matches!(place.engine_only(sql), Err(QueryError::Refused(_))), "{sql}");
    }
    assert_eq!(place.engine_only("SELECT content FROM messages").unwrap().rows.len(), 2);
    // 4 and 5 have tests of their own below: the row limit and the connection.
    let mut connection = engine::open(&place.path, &scope()).unwrap();
    connection
        .authorizer(None::<fn(rusqlite::hooks::AuthContext<'_>) -> rusqlite::hooks::Authorization>)
        .unwrap();
    connection.execute_batch("DELETE FROM main.messages").unwrap_err();
}

#[test]
fn dbq_002_only_select_is_accepted_and_write_words_are_refused_at_once() {
    let place = Place::new();
    for sql in [
        "INSERT INTO messages VALUES (9, 't1', 'ann', 'x')",
        "UPDATE messages SET content = 'x'",
        "delete from messages",
        "DROP TABLE messages",
        "CREATE TABLE x (y)",
        "ATTACH DATABASE '/etc/passwd' AS p",
        "PRAGMA table_info(messages)",
        "VACUUM INTO '/tmp/x'",
        "EXPLAIN SELECT 1 FROM messages",
        "SELECT 1 FROM messages; DELETE FROM messages",
        "SELECT 1 FROM messages; SELECT 2 FROM messages",
        "-- SELECT\nDELETE FROM messages",
        "/* SELECT */ UPDATE messages SET id = 1",
        "REPLACE INTO messages VALUES (1, 't1', 'ann', 'x')",
        "VALUES (1)",
        "",
        "SELECT 'unfinished FROM messages",
        "SELECT\0 1 FROM messages",
    ] {
        place.refuses(sql);
    }
    let count: i64 = Connection::open(&place.path)
        .unwrap()
        .query_row("SELECT count(*) FROM messages", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 5);
}

#[test]
fn dbq_003_only_four_tables_can_be_asked_and_the_audit_log_is_none_of_them() {
    let place = Place::new();
    for table in TABLES {
        assert_eq!(place.ask(&format!("SELECT content FROM {table}")).unwrap().rows.len(), 2, "{table}");
    }
    for table in [
        "audit_log",
        "\"audit_log\"",
        "main.messages",
        "temp.messages",
        "sqlite_schema",
        "sqlite_master",
        "sqlite_temp_master",
        "pragma_table_info('messages')",
        "json_each('[1]')",
        "generate_series(1, 9)",
        "messages, audit_log",
        "messages JOIN audit_log",
        "(messages JOIN audit_log)",
    ] {
        place.refuses(&format!("SELECT * FROM {table}"));
    }
    place.refuses("SELECT load_extension('x') FROM messages");
    place.refuses("SELECT randomblob(9) FROM messages");
}

#[test]
fn dbq_004_thread_and_persona_are_conditions_of_every_table() {
    let place = Place::new();
    for sql in [
        "SELECT content FROM messages WHERE 1 = 1 OR thread_id = 't2'",
        "SELECT content FROM messages WHERE persona_id = 'bob' OR 1",
        "SELECT m.content FROM messages AS m LEFT JOIN threads AS t ON 1 = 1",
        "SELECT t.content FROM messages m RIGHT JOIN threads t ON m.id = t.id",
        "SELECT s.content FROM memory_items i, schedules s",
        "SELECT content FROM MESSAGES -- WHERE",
    ] {
        let answer = place.ask(sql).unwrap();
        assert!(!answer.rows.is_empty(), "{sql}");
        assert!(contents(&answer).iter().all(|content| content.starts_with("mine")), "{sql}: {answer:?}");
    }
    assert_eq!(place.ask("SELECT count(*) FROM messages").unwrap().rows[0][0], 2);
    assert_eq!(
        place.ask("SELECT group_concat(DISTINCT persona_id) FROM messages").unwrap().rows[0][0],
        "ann"
    );
}

#[test]
fn dbq_005_no_limit_of_a_query_gives_more_than_a_thousand_rows() {
    let place = Place::new();
    let database = Connection::open(&place.path).unwrap();
    database
        .execute_batch(
            "INSERT INTO messages (thread_id, persona_id, content)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
             SELECT 't1', 'ann', 'mine' FROM n",
        )
        .unwrap();
    for limit in ["", " LIMIT 1400", " LIMIT -1", " LIMIT 1400 OFFSET 10"] {
        let answer = place.ask(&format!("SELECT id FROM messages{limit}")).unwrap();
        assert_eq!((answer.rows.len(), answer.truncated), (MAX_ROWS, true), "{limit}");
    }
    let answer = place.ask("SELECT id FROM messages LIMIT 3").unwrap();
    assert_eq!((answer.rows.len(), answer.truncated), (3, false));
}

#[test]
fn dbq_006_the_connection_can_only_read() {
    let place = Place::new();
    let connection = engine::open(&place.path, &scope()).unwrap();
    assert!(connection.is_readonly(rusqlite::MAIN_DB).unwrap());
    for sql in [
        "DELETE FROM messages",
        "CREATE TEMP TABLE x (y)",
        "PRAGMA query_only = OFF",
        "ATTACH ':memory:' AS a",
    ] {
        connection.execute_batch(sql).unwrap_err();
    }
    query(&place.path.with_file_name("missing.db"), &scope(), "SELECT 1 FROM messages").unwrap_err();
    assert!(!place.path.with_file_name("missing.db").exists());
}

#[test]
fn dbq_007_union_is_refused() {
    let place = Place::new();
    place.refuses("SELECT content FROM messages UNION SELECT content FROM audit_log");
    place.refuses("SELECT content FROM messages UNION ALL SELECT content FROM threads");
    shape::check("SELECT content FROM messages UNION SELECT content FROM threads").unwrap_err();
}

#[test]
fn dbq_008_except_is_refused() {
    Place::new().refuses("SELECT content FROM messages EXCEPT SELECT content FROM threads");
    shape::check("SELECT content FROM messages EXCEPT SELECT content FROM threads").unwrap_err();
}

#[test]
fn dbq_009_intersect_is_refused() {
    Place::new().refuses("SELECT content FROM messages INTERSECT SELECT content FROM threads");
    shape::check("SELECT content FROM messages INTERSECT SELECT content FROM threads").unwrap_err();
}

#[test]
fn dbq_010_common_table_expressions_are_refused() {
    let place = Place::new();
    for sql in [
        "WITH x AS (SELECT * FROM messages) SELECT * FROM x",
        "WITH messages AS (SELECT * FROM main.messages) SELECT * FROM messages",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    ] {
        place.refuses(sql);
        shape::check(sql).unwrap_err();
    }
}

#[test]
fn dbq_011_subqueries_are_refused_wherever_they_stand() {
    let place = Place::new();
    for sql in [
        "SELECT (SELECT content FROM audit_log) FROM messages",
        "SELECT * FROM (SELECT * FROM messages)",
        "SELECT * FROM messages WHERE id IN (SELECT id FROM threads)",
        "SELECT * FROM messages WHERE EXISTS (SELECT 1 FROM threads)",
        "SELECT * FROM messages WHERE id = (SELECT max(id) FROM threads)",
        "SELECT * FROM messages ORDER BY (SELECT 1)",
        "SELECT * FROM messages GROUP BY id HAVING count(*) > (SELECT 1)",
        "SELECT * FROM messages JOIN threads ON messages.id = (SELECT 1)",
        "SELECT * FROM messages LIMIT (SELECT 9)",
        "SELECT CASE WHEN 1 THEN (SELECT content FROM threads) END FROM messages",
        "SELECT count(*) FILTER (WHERE id IN (SELECT id FROM threads)) FROM messages",
    ] {
        place.refuses(sql);
        shape::check(sql).unwrap_err();
    }
}

#[test]
fn dbq_012_no_query_returns_a_row_of_another_thread_or_persona() {
    let place = Place::new();
    // Whether refused or answered, by all layers or by SQLite alone: nothing of theirs comes out.
    for sql in [
        "SELECT * FROM messages",
        "SELECT * FROM messages WHERE thread_id <> 't1' OR persona_id <> 'ann'",
        "SELECT * FROM main.messages",
        "SELECT * FROM temp.messages",
        "SELECT * FROM messages NOT INDEXED",
        "SELECT * FROM messages m JOIN main.threads t",
        "SELECT * FROM messages UNION SELECT * FROM main.messages",
        "WITH messages AS (SELECT * FROM main.messages) SELECT * FROM messages",
        "WITH x AS (SELECT * FROM main.threads) SELECT * FROM x",
        "SELECT (SELECT group_concat(content) FROM main.messages)",
        "SELECT * FROM (SELECT * FROM main.messages) AS messages",
        "SELECT * FROM messages WHERE id IN (SELECT id FROM main.messages)",
        "SELECT content FROM audit_log",
        "SELECT content FROM memory_items, schedules, messages, threads",
        "SELECT max(content) FROM messages",
        "SELECT group_concat(content) OVER () FROM messages",
        "SELECT content FROM messages WHERE rowid = 4",
        "SELECT content FROM messages --\n WHERE 1",
        "SELECT content FROM messages WHERE thread_id = 't1' OR 't1' = 't1' /*",
        "SELECT sql || 'theirs' FROM sqlite_temp_master",
    ] {
        for answer in [place.ask(sql), place.engine_only(sql)].into_iter().flatten() {
            let text = serde_json::to_string(&answer.rows).unwrap();
            assert!(
                !text.contains("theirs") && !text.contains("bob") && !text.contains("t2"),
                "{sql}: {text}"
            );
        }
    }
    let quoted = Scope { persona: "ann' OR '1'='1".to_owned(), thread: "t1' OR 1 --".to_owned() };
    assert_eq!(query(&place.path, &quoted, "SELECT * FROM messages").unwrap().rows.len(), 0);
}

#[test]
fn a_query_that_would_run_for_ever_is_ended() {
    let place = Place::new();
    let database = Connection::open(&place.path).unwrap();
    database
        .execute_batch(
            "INSERT INTO messages (thread_id, persona_id, content)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
             SELECT 't1', 'ann', 'mine' FROM n",
        )
        .unwrap();
    let error = place.ask("SELECT count(*) FROM messages a, messages b, messages c, messages d").unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
}
