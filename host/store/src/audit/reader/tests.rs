use std::fs;

use crate::testing::{Bench, NOW_MS, append, digest, run};
use crate::{AUDIT_DB, Actor, AuditReader, AuditRow, CallFacts, Event, Filter, Store, StoreError};

/// AUD-002: no UPDATE and no DELETE, enforced where the rows are.
#[test]
fn the_table_refuses_every_change_but_growing_at_its_end() {
    let bench = Bench::new();
    bench.append(3);
    let connection = bench.behind_its_back(AUDIT_DB);
    for sql in [
        "UPDATE audit_log SET tool = 'x' WHERE seq = 2",
        "DELETE FROM audit_log WHERE seq = 3",
        "DELETE FROM audit_log",
        "INSERT OR REPLACE INTO audit_log SELECT * FROM audit_log WHERE seq = 2",
        "UPDATE OR REPLACE audit_log SET seq = 1 WHERE seq = 2",
        "INSERT INTO audit_log (id, chain, seq, action, details, created_at, created_at_ms, hash) \
         VALUES (9, 'gateway', 4, 'x', '{}', 0, 0, zeroblob(32))",
        "INSERT INTO audit_log (id, chain, seq, action, details, created_at, created_at_ms, hash) \
         VALUES (4, 'gateway', 9, 'x', '{}', 0, 0, zeroblob(32))",
    ] {
        let error = connection.execute_batch(sql).unwrap_err().to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
    assert!(bench.verify().is_intact());
}

/// AUD-003..010: each field is a column, and the time is Unix seconds.
#[test]
fn a_stored_row_has_every_field_of_the_record() {
    let bench = Bench::new();
    bench.append(1);
    let row = bench.store().reader().unwrap().tail(1, &Filter::default()).unwrap().remove(0);
    assert_eq!(row.run_id.as_deref(), Some("run-7"));
    assert_eq!(row.thread_id.as_deref(), Some("thread-3"));
    assert_eq!(row.persona_id.as_deref(), Some("default"));
    assert_eq!(row.action, "tool.execute");
    assert_eq!(row.tool.as_deref(), Some("issues/create"));
    assert_eq!(row.request_id.as_deref(), Some("\"1\""));
    assert_eq!(row.event(), "mcp_called");
    assert_eq!(row.server(), Some("github"));
    assert_eq!(row.created_at, i64::try_from(NOW_MS / 1000).unwrap());
    assert_eq!(row.created_at_ms, i64::try_from(NOW_MS).unwrap());
    let columns: Vec<String> = bench
        .behind_its_back(AUDIT_DB)
        .prepare("SELECT name FROM pragma_table_info('audit_log')")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for column in
        ["run_id", "thread_id", "persona_id", "action", "tool", "request_id", "details", "created_at"]
    {
        assert!(columns.iter().any(|name| name == column), "{column}");
    }
}

#[test]
fn filters_narrow_by_server_tool_persona_action_event_and_time() {
    let bench = Bench::new();
    let facts = |server: &str, tool: &str, persona: &str| CallFacts {
        deed: crate::Deed::Call,
        actor: Actor { persona: Some(persona.to_owned()), ..Actor::default() },
        server: Some(server.to_owned()),
        tool: Some(tool.to_owned()),
        exposed: Some(format!("{server}__{tool}")),
        request_id: None,
    };
    run(async {
        let store = bench.store();
        store.append(AuditRow::called(&facts("a", "read", "default"), &digest("1"))).await.unwrap();
        store.append(AuditRow::denied(&facts("b", "read", "guest"), "policy", None, "no")).await.unwrap();
        bench.clock.advance(60_000);
        store.append(AuditRow::listed(crate::Event::McpToolsListed, "a", "tools", 3, 0)).await.unwrap();
        store.append(AuditRow::new(Event::ConfigTrusted)).await.unwrap();
    });
    let reader = bench.store().reader().unwrap();
    let some = |text: &str| Some(text.to_owned());
    let none = Filter::default;
    for (filter, expected) in [
        (none(), vec![1, 2, 3, 4]),
        (Filter { server: some("a"), ..none() }, vec![1, 3]),
        (Filter { tool: some("read"), ..none() }, vec![1, 2]),
        (Filter { tool: some("b__read"), ..none() }, vec![2]),
        (Filter { persona: some("guest"), ..none() }, vec![2]),
        (Filter { action: some("tool"), ..none() }, vec![1, 2, 3]),
        (Filter { action: some("tool.list"), ..none() }, vec![3]),
        (Filter { action: some("too"), ..none() }, vec![]),
        (Filter { action: some("tool_"), ..none() }, vec![]),
        (Filter { event_prefix: some("mcp_"), ..none() }, vec![1, 2, 3]),
        (Filter { since: Some(i64::try_from(NOW_MS / 1000).unwrap() + 60), ..none() }, vec![3, 4]),
        (Filter { server: some("a"), tool: some("read"), ..none() }, vec![1]),
    ] {
        let ids: Vec<i64> = reader.tail(10, &filter).unwrap().iter().map(|row| row.id).collect();
        assert_eq!(ids, expected, "{filter:?}");
        let ids: Vec<i64> = reader.after(0, &filter).unwrap().iter().map(|row| row.id).collect();
        assert_eq!(ids, expected, "after 0: {filter:?}");
    }
    assert_eq!(reader.tail(2, &none()).unwrap()[0].id, 3, "the last two, oldest first");
}

#[test]
fn following_gives_each_later_row_once() {
    let bench = Bench::new();
    bench.append(2);
    let reader = bench.store().reader().unwrap();
    let mut last = reader.last_id().unwrap();
    assert!(reader.after(last, &Filter::default()).unwrap().is_empty());
    for _ in 0..3 {
        append(bench.store(), 2);
        let rows = reader.after(last, &Filter::default()).unwrap();
        assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [last + 1, last + 2]);
        last += 2;
    }
}

/// FT-08: a reader is read-only, whatever the state of the WAL.
#[test]
fn a_reader_reads_rows_that_are_only_in_the_wal_and_cannot_write() {
    let bench = Bench::new();
    bench.append(3);
    assert!(bench.path().join("audit.db-wal").metadata().unwrap().len() > 0);
    let reader = bench.store().reader().unwrap();
    assert_eq!(reader.tail(10, &Filter::default()).unwrap().len(), 3);
    for sql in ["CREATE TABLE x (y)", "DROP TRIGGER audit_log_no_update", "PRAGMA user_version = 7"] {
        assert!(reader.database.connection.execute_batch(sql).is_err(), "{sql}");
    }
    assert!(bench.verify().is_intact());
}

/// FT-08: after a kill the WAL is left behind; it is read, by a connection that is still read-only.
#[test]
fn a_wal_that_a_killed_process_left_is_read() {
    let bench = Bench::new();
    bench.append(3);
    let copy = tempfile::tempdir().unwrap();
    for name in [AUDIT_DB, "audit.db-wal", crate::AUDIT_HEADS] {
        fs::copy(bench.path().join(name), copy.path().join(name)).unwrap();
    }
    let reader = AuditReader::open(copy.path()).unwrap();
    assert_eq!(reader.tail(10, &Filter::default()).unwrap().len(), 3);
    assert!(Store::verify(copy.path()).unwrap().is_intact());
}

/// FT-08: where read-only is impossible the answer is a refusal.
#[test]
fn what_cannot_be_opened_read_only_is_refused() {
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(AuditReader::open(empty.path()), Err(StoreError::Io { .. })));
    assert!(!empty.path().join(AUDIT_DB).exists(), "looking made nothing");
    fs::create_dir(empty.path().join(AUDIT_DB)).unwrap();
    assert!(AuditReader::open(empty.path()).is_err());
}

#[cfg(unix)]
#[test]
fn the_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    bench.append(1);
    for name in [AUDIT_DB, "audit.db-wal", "audit.db-shm", crate::STATE_DB, crate::AUDIT_HEADS] {
        let mode = fs::metadata(bench.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
    let mode = fs::metadata(bench.path()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
}
