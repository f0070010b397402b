//! The audit log on the built binary: what leaves it, and what proves it.

use std::path::Path;

use toolgate_e2e::Sandbox;

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

/// A sandbox with some calls in its log.
fn with_calls(calls: usize) -> Sandbox {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    call(&sandbox, calls);
    sandbox
}

fn call(sandbox: &Sandbox, calls: usize) {
    for _ in 0..calls {
        sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    }
}

/// A key of whoever signs checkpoints, and its public half.
fn key(sandbox: &Sandbox) -> (String, String) {
    let file = sandbox.path("work/checkpoint.key").display().to_string();
    sandbox.run(&["key", "new", &file, "--seed"]).exits(0);
    (file.clone(), format!("{file}.pub"))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_log_that_was_written_anew_with_its_anchors_contradicts_a_checkpoint_kept_elsewhere() {
    let sandbox = with_calls(2);
    let (secret, public) = key(&sandbox);
    let monday = text(&sandbox.path("work/monday.json"));
    sandbox.run(&["audit", "checkpoint", "--key", &secret, "--out", &monday]).exits(0);
    assert!(sandbox.events().contains(&"audit_checkpoint".to_owned()));
    call(&sandbox, 1);
    let verify = ["audit", "verify", "--against", &monday, "--key", &public];
    let run = sandbox.run(&verify).exits(0);
    assert!(run.stdout.contains("agrees with"), "{run:?}");
    // Another key, and a checkpoint that was edited, count for nothing.
    let other = text(&sandbox.path("work/other.key"));
    sandbox.run(&["key", "new", &other, "--seed"]).exits(0);
    sandbox.run(&["audit", "verify", "--against", &monday, "--key", &format!("{other}.pub")]).exits(5);
    let edited = sandbox
        .write("work/edited.json", sandbox.read("work/monday.json").replace("\"sig\":\"", "\"sig\":\"A"));
    sandbox.run(&["audit", "verify", "--against", &edited, "--key", &public]).exits(5);
    // Whoever owns the directory writes log and anchors anew: by itself it is whole.
    for name in ["audit.db", "audit.db-wal", "audit.db-shm", "audit.heads"] {
        let _ = std::fs::remove_file(sandbox.data().join(name));
    }
    call(&sandbox, 3);
    sandbox.run(&["audit", "verify"]).exits(0);
    let run = sandbox.run(&verify).exits(5);
    assert!(run.stdout.contains("checkpoint_mismatch") || run.stdout.contains("checkpoint_cut"), "{run:?}");
}

#[test]
fn a_log_that_is_not_whole_is_not_signed() {
    let sandbox = with_calls(2);
    let (secret, _) = key(&sandbox);
    let database = rusqlite::Connection::open(sandbox.data().join("audit.db")).unwrap();
    database
        .execute_batch("DROP TRIGGER audit_log_no_update; UPDATE audit_log SET tool = 'x' WHERE id = 2")
        .unwrap();
    let run = sandbox.run(&["audit", "checkpoint", "--key", &secret]).exits(5);
    assert!(run.stdout.is_empty(), "{run:?}");
}

#[test]
fn old_rows_are_sealed_and_verify_passes_across_the_cut() {
    let sandbox = with_calls(3);
    let (secret, public) = key(&sandbox);
    let before = text(&sandbox.path("work/before.json"));
    sandbox.run(&["audit", "checkpoint", "--key", &secret, "--out", &before]).exits(0);
    let rows = sandbox.audit().len();
    sandbox.run(&["audit", "archive", "--before", "2000-01-01"]).exits(0);
    assert_eq!(sandbox.audit().len(), rows, "nothing is that old");
    let sealed = sandbox.run(&["audit", "archive", "--before", "2999-01-01", "--json"]).exits(0).json();
    assert_eq!(sealed[0]["first_id"], 1);
    let left = sandbox.events();
    // That the server was pinned still counts, and is said again.
    assert_eq!(left, ["audit_carried", "audit_archived"], "only what came after is left");
    call(&sandbox, 1);
    let report = sandbox.run(&["audit", "verify", "--json"]).exits(0).json();
    assert_eq!(report["segments"][0]["read"], true);
    assert!(report["rows"].as_u64().unwrap() > rows as u64, "{report}");
    // A checkpoint from before the cut holds after it, offline, on the segment's file alone.
    let file = sealed[0]["file"].as_str().unwrap();
    let offline = ["audit", "verify", "--file", file, "--against", &before, "--key", &public];
    sandbox.run(&offline).exits(0);
    sandbox.run(&["audit", "verify", "--against", &before, "--key", &public]).exits(0);
    // Moved to a shelf, it is missed until somebody says where it is.
    let shelf = sandbox.path("work/shelf");
    std::fs::create_dir_all(&shelf).unwrap();
    std::fs::rename(file, shelf.join("segment-000001.db")).unwrap();
    let run = sandbox.run(&["audit", "verify"]).exits(5);
    assert!(run.stdout.contains("segment_missing"), "{run:?}");
    sandbox.run(&["audit", "verify", "--segments", &text(&shelf)]).exits(0);
    sandbox.run(&["audit", "verify", "--without-segments"]).exits(0);
    let mut bytes = std::fs::read(shelf.join("segment-000001.db")).unwrap();
    let at = bytes.windows(4).position(|window| window == b"echo").unwrap();
    bytes[at] = b'E';
    std::fs::write(shelf.join("segment-000001.db"), bytes).unwrap();
    sandbox.run(&["audit", "verify", "--segments", &text(&shelf)]).exits(5);
}

#[test]
fn exported_rows_are_verified_without_the_log() {
    let sandbox = with_calls(3);
    let (secret, public) = key(&sandbox);
    let monday = text(&sandbox.path("work/monday.json"));
    sandbox.run(&["audit", "checkpoint", "--key", &secret, "--out", &monday]).exits(0);
    let file = text(&sandbox.path("work/rows.jsonl"));
    sandbox.run(&["audit", "export", "--since", "1h", "--out", &file]).exits(0);
    sandbox.run(&["audit", "verify", "--file", &file, "--against", &monday, "--key", &public]).exits(0);
    let rows = sandbox.read("work/rows.jsonl");
    assert!(rows.lines().all(|line| line.contains("\"previous\":\"")), "{rows}");
    let copy = sandbox.path("work/copy");
    std::fs::create_dir_all(&copy).unwrap();
    for name in ["audit.db", "audit.db-wal"] {
        let _ = std::fs::copy(sandbox.data().join(name), copy.join(name));
    }
    let whole = text(&copy.join("audit.db"));
    sandbox.run(&["audit", "verify", "--file", &whole, "--against", &monday, "--key", &public]).exits(0);
    let cut: Vec<&str> = rows.lines().take(2).collect();
    let cut = sandbox.write("work/cut.jsonl", cut.join("\n"));
    let run =
        sandbox.run(&["audit", "verify", "--file", &cut, "--against", &monday, "--key", &public]).exits(5);
    assert!(run.stdout.contains("checkpoint_cut"), "{run:?}");
    let changed = sandbox.write("work/changed.jsonl", rows.replacen("\"echo\"", "\"other\"", 1));
    sandbox.run(&["audit", "verify", "--file", &changed]).exits(5);
}
