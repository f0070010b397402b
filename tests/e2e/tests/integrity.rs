//! What was signed, and what was recorded.

use toolgate_e2e::Sandbox;

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

#[test]
fn gate_audit_a_call_is_in_the_log_before_and_after_and_a_refusal_leaves_no_call() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "    capabilities:\n      allow: [\"mcp.call:fix/echo\"]\n");
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    sandbox.run(&["mcp", "call", "fix.big", "--json", "{}"]).exits(3);
    let rows = sandbox.audit();
    let of = |event: &str| rows.iter().filter(|row| row["details"]["event"] == event).collect::<Vec<_>>();
    let (called, completed, denied) = (of("mcp_called"), of("mcp_completed"), of("mcp_denied"));
    assert_eq!((called.len(), completed.len(), denied.len()), (1, 1, 1));
    assert!(called[0]["id"].as_i64() < completed[0]["id"].as_i64());
    assert_eq!(called[0]["tool"], "echo", "AUD-007: the original name");
    assert_eq!(called[0]["persona_id"], "default", "AUD-005");
    assert_eq!(called[0]["action"], "tool.execute", "AUD-006");
    assert_eq!(called[0]["details"]["server"], "fix");
    assert_eq!(called[0]["details"]["exposed"], "fix__echo");
    assert!(!called[0].to_string().contains("\"hi\""), "arguments are a digest");
    assert_eq!(denied[0]["tool"], "big");
}

#[test]
fn aud_011_the_operator_can_select_from_the_log_and_change_nothing() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    let run = sandbox
        .run(&[
            "audit",
            "query",
            "SELECT action, tool, created_at FROM audit_log ORDER BY created_at DESC LIMIT 20",
        ])
        .exits(0);
    assert!(run.stdout.contains("tool.execute"), "{run:?}");
    for sql in [
        "DELETE FROM audit_log",
        "UPDATE audit_log SET tool = 'x'",
        "DROP TABLE audit_log",
        "SELECT 1; DELETE FROM audit_log",
    ] {
        assert_ne!(sandbox.run(&["audit", "query", sql]).code, 0, "{sql}");
    }
    sandbox.run(&["audit", "verify"]).exits(0);
}

fn with_rows() -> Sandbox {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    for _ in 0..3 {
        sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    }
    sandbox.run(&["audit", "verify"]).exits(0);
    sandbox
}

/// Changes the log behind Toolgate's back, as somebody with a SQLite shell would.
fn behind_its_back(sandbox: &Sandbox, statement: &str) {
    let database = rusqlite::Connection::open(sandbox.data().join("audit.db")).unwrap();
    let triggers: Vec<(String, String)> = database
        .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (name, _) in &triggers {
        database.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    database.execute_batch(statement).unwrap();
    for (_, sql) in &triggers {
        database.execute_batch(sql).unwrap();
    }
}

#[test]
fn audit_verify_finds_a_changed_byte_a_missing_row_and_a_cut_tail() {
    let damages = [
        "UPDATE audit_log SET tool = 'other' WHERE id = (SELECT min(id) FROM audit_log WHERE tool = 'echo')",
        "DELETE FROM audit_log WHERE id = (SELECT min(id) + 2 FROM audit_log)",
        "DELETE FROM audit_log WHERE id = (SELECT max(id) FROM audit_log)",
    ];
    for damage in damages {
        let sandbox = with_rows();
        behind_its_back(&sandbox, damage);
        let run = sandbox.run(&["audit", "verify"]).exits(5);
        assert!(!run.stdout.is_empty(), "{damage}: {run:?}");
    }
}

#[test]
fn aud_002_the_log_refuses_to_change_or_forget_a_row() {
    let sandbox = with_rows();
    let database = rusqlite::Connection::open(sandbox.data().join("audit.db")).unwrap();
    assert!(database.execute("UPDATE audit_log SET tool = 'x'", []).is_err());
    assert!(database.execute("DELETE FROM audit_log", []).is_err());
}

/// The files of a plugin of the bundle, from the project's own registry.
fn first_party(sandbox: &Sandbox, name: &str) -> (Vec<u8>, String, String) {
    let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../registry/first-party").join(name);
    let version = std::fs::read_dir(&from).unwrap().next().unwrap().unwrap().path();
    let component = std::fs::read(version.join("component.wasm")).unwrap();
    let release = std::fs::read_to_string(version.join("release.dsse.json")).unwrap();
    sandbox.write("plugin/component.wasm", &component);
    sandbox.write("plugin/release.dsse.json", &release);
    (component, release, sandbox.path("plugin").display().to_string())
}

#[test]
fn gate_signature_wa_11_one_flipped_bit_is_refused_with_exit_5_and_nothing_is_served() {
    let sandbox = sandbox();
    let (mut component, _, dir) = first_party(&sandbox, "ask");
    sandbox.run(&["plugin", "verify", &dir]).exits(0);
    let middle = component.len() / 2;
    component[middle] ^= 1;
    sandbox.write("plugin/component.wasm", &component);
    let run = sandbox.run(&["plugin", "verify", &dir]).exits(5);
    assert!(run.stderr.contains("was signed"), "{run:?}");
    sandbox.configure_fixture(&[], &format!("{ALLOW}plugins:\n  load:\n    - {{ plugin: {dir:?} }}\n"));
    sandbox.run(&["mcp", "call", "fix.echo", "--json", "{}"]).exits(5);
    assert_eq!(sandbox.serve_stdio(&[]).close(), 5);
    assert!(!sandbox.events().contains(&"mcp_called".to_owned()));
}

#[test]
fn wa_11_a_release_that_was_altered_or_is_not_signed_by_a_trusted_key_is_refused() {
    let sandbox = sandbox();
    let (_, release, dir) = first_party(&sandbox, "ask");
    let payload = |text: &str| {
        let envelope: serde_json::Value = serde_json::from_str(text).unwrap();
        envelope["payload"].as_str().unwrap().to_owned()
    };
    let body = payload(&release);
    let flipped = release.replacen(&body[20..24], if &body[20..24] == "AAAA" { "BBBB" } else { "AAAA" }, 1);
    for altered in [flipped, release.replace("\"sig\"", "\"gis\""), "{}".to_owned(), String::new()] {
        sandbox.write("plugin/release.dsse.json", &altered);
        let run = sandbox.run(&["plugin", "verify", &dir]).exits(5);
        assert!(run.stderr.contains("refused"), "{run:?}");
    }
}

#[test]
fn gate_import_wa_09_a_component_that_is_none_is_refused_with_its_kind() {
    let sandbox = sandbox();
    let (_, _, dir) = first_party(&sandbox, "ask");
    for bytes in [&b""[..], b"\0asm\x01\0\0\0", b"\x7fELF", b"text"] {
        sandbox.write("plugin/component.wasm", bytes);
        sandbox.run(&["plugin", "verify", &dir]).exits(5);
    }
    let list = sandbox.run(&["plugin", "list", "--json"]).exits(0).json();
    assert_eq!(list["plugins"].as_array().unwrap().len(), 4, "the others are still there: {list}");
}

#[test]
fn wa_01_a_damaged_cache_of_native_code_is_a_miss() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    let mut damaged = 0;
    let mut dirs = vec![sandbox.data().join("aot")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                dirs.push(entry.path());
            } else if entry.path().extension().is_some_and(|ending| ending == "cwasm") {
                std::fs::write(entry.path(), b"random bytes with the right name").unwrap();
                damaged += 1;
            }
        }
    }
    assert!(damaged >= 4, "the cache is used: {damaged}");
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
}
