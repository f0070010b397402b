//! Rows AUD-001..019 on the built binary, each in a test of its name.

use serde_json::{Value, json};
use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

/// A client that claims a run and a thread calls `echo` once.
fn one_call(rest: &str) -> (Sandbox, Stdio) {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], rest);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    claimed_call(&mut client, 41, &json!({ "message": "hi" }));
    (sandbox, client)
}

fn claimed_call(client: &mut Stdio, id: u32, arguments: &Value) -> Value {
    let meta = json!({ "toolgate/run_id": "run-7", "toolgate/thread_id": "thread-3" });
    let params = json!({ "name": "fix__echo", "arguments": arguments, "_meta": meta });
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    serde_json::from_str(&client.reply_to(&id.to_string())).unwrap()
}

/// The rows of one event, after the gateway has ended.
fn rows(sandbox: &Sandbox, event: &str) -> Vec<Value> {
    let rows = sandbox.audit();
    rows.into_iter().filter(|row| row["details"]["event"] == event).collect()
}

fn called() -> Value {
    let (sandbox, client) = one_call(ALLOW);
    client.close();
    rows(&sandbox, "mcp_called").remove(0)
}

#[test]
fn aud_001_calls_and_grants_and_rejections_are_rows_of_the_table_audit_log() {
    let (sandbox, mut client) = one_call("");
    let asks = sandbox.run(&["approvals", "list", "--json"]).exits(0).json();
    let ask = asks["asks"][0]["id"].as_str().unwrap().to_owned();
    sandbox.run(&["approvals", "grant", &ask]).exits(0);
    claimed_call(&mut client, 42, &json!({ "message": "hi" }));
    claimed_call(&mut client, 43, &json!({ "message": "other" }));
    let asks = sandbox.run(&["approvals", "list", "--json"]).exits(0).json();
    let open = asks["asks"].as_array().unwrap().iter().find(|ask| ask["state"] == "pending").unwrap();
    sandbox.run(&["approvals", "deny", open["id"].as_str().unwrap()]).exits(0);
    client.close();
    let run = sandbox
        .run(&["audit", "query", "SELECT action, count(*) AS n FROM audit_log GROUP BY action"])
        .exits(0);
    for action in ["tool.execute", "approval.request", "approval.grant", "approval.reject"] {
        assert!(run.stdout.contains(action), "{action}: {run:?}");
    }
}

#[test]
fn aud_003_a_row_names_the_run_that_the_client_claims() {
    assert_eq!(called()["run_id"], "run-7");
}

#[test]
fn aud_004_a_row_names_the_thread_that_the_client_claims() {
    assert_eq!(called()["thread_id"], "thread-3");
}

#[test]
fn aud_008_a_row_names_the_request_of_the_client() {
    assert_eq!(called()["request_id"], "41");
}

#[test]
fn aud_009_what_is_particular_to_an_action_is_a_json_object() {
    let row = called();
    let details = row["details"].as_object().unwrap();
    for member in ["event", "server", "exposed", "args", "credential", "session", "surface", "person"] {
        assert!(details.contains_key(member), "{member}: {row}");
    }
    assert_eq!(row["details"]["surface"], "stdio");
    assert!(row["details"]["person"].as_str().unwrap().starts_with("uid "));
}

#[test]
fn aud_010_a_row_has_the_unix_time_of_its_commit() {
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let at = called()["created_at"].as_u64().unwrap();
    assert!(at >= before && at < before + 600, "{at}");
}

#[test]
fn aud_012_aud_013_aud_014_a_call_is_between_its_two_rows() {
    let (sandbox, client) = one_call(ALLOW);
    client.close();
    let (called, completed) = (rows(&sandbox, "mcp_called"), rows(&sandbox, "mcp_completed"));
    assert_eq!((called.len(), completed.len()), (1, 1));
    assert!(called[0]["id"].as_i64() < completed[0]["id"].as_i64());
    for row in [&called[0], &completed[0]] {
        assert_eq!((&row["details"]["server"], &row["tool"]), (&json!("fix"), &json!("echo")), "{row}");
        assert_eq!(row["request_id"], "41");
    }
    assert_eq!(completed[0]["details"]["is_error"], false);
    assert!(called[0]["details"]["args"].as_str().unwrap().starts_with("sha256:"));
}

// FR-43
#[test]
fn aud_015_a_transport_that_breaks_leaves_mcp_failed_with_its_error() {
    let sandbox = sandbox();
    sandbox.configure(
        "servers:\n  gone: { command: /bin/false }\npersonas:\n  default:\n    servers: [gone]\n    capabilities:\n      allow: [\"mcp.call:gone\"]\n",
    );
    sandbox.run(&["mcp", "call", "gone.echo", "--json", "{}"]);
    let failed = rows(&sandbox, "mcp_failed");
    assert_eq!(failed[0]["details"]["server"], "gone");
    assert!(!failed[0]["details"]["error"].as_str().unwrap().is_empty());
}

#[test]
fn aud_016_events_are_lines_of_json_that_a_prefix_or_grep_finds() {
    let (sandbox, client) = one_call(ALLOW);
    client.close();
    let run = sandbox.run(&["audit", "tail", "-n", "1000", "--filter", "mcp_", "--json"]).exits(0);
    let mut lines = 0;
    for line in run.stdout.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert!(row["details"]["event"].as_str().unwrap().starts_with("mcp_"), "{row}");
        lines += 1;
    }
    assert!(lines >= 3);
    assert_eq!(run.stdout.lines().filter(|line| line.contains("\"mcp_called\"")).count(), 1);
}

#[test]
fn aud_017_an_added_server_is_a_row_with_names_of_variables_and_no_value() {
    let sandbox = sandbox();
    sandbox.configure("");
    let fixture = sandbox.fixture().display().to_string();
    sandbox.run(&["mcp", "add", "new", "-e", "API_TOKEN=hush-hush-hush", "--", &fixture]).exits(0);
    let installed = rows(&sandbox, "mcp_server_installed");
    assert_eq!(installed[0]["details"]["server"], "new");
    assert!(installed[0]["details"]["person"].as_str().unwrap().starts_with("uid "));
    let everything = sandbox.run(&["audit", "export"]).exits(0).stdout;
    assert!(!everything.contains("hush-hush-hush"), "{everything}");
}

#[test]
fn aud_018_a_call_over_http_leaves_the_rows_of_any_other() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let http = sandbox.serve_http();
    let params = r#"{"name":"fix__echo","arguments":{"message":"hi"}}"#;
    let reply = http.modern("/mcp", "7", "tools/call", params);
    assert!(reply.message().to_string().contains("hi"), "{:?}", reply.message());
    drop(http);
    let called = rows(&sandbox, "mcp_called");
    assert_eq!((&called[0]["tool"], &called[0]["details"]["surface"]), (&json!("echo"), &json!("http")));
    assert!(called[0]["details"]["credential"].as_str().unwrap().starts_with("token:"));
    assert_eq!(called[0]["details"]["person"], Value::Null, "the token is the person's, not the account's");
}

#[test]
fn aud_019_rejections_and_time_outs_name_run_thread_and_persona_like_grants() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "approvals: { hold: 100ms, timeout: 2s }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let mut answers = ["grant", "deny"].into_iter();
    for id in 1..4u32 {
        claimed_call(&mut client, id, &json!({ "message": format!("m{id}") }));
        let asks = sandbox.run(&["approvals", "list", "--json"]).exits(0).json();
        let open = asks["asks"].as_array().unwrap().iter().find(|ask| ask["state"] == "pending").unwrap();
        if let Some(answer) = answers.next() {
            sandbox.run(&["approvals", answer, open["id"].as_str().unwrap()]).exits(0);
        }
    }
    let until = std::time::Instant::now() + toolgate_e2e::PATIENCE;
    while rows(&sandbox, "approval.timeout").is_empty() {
        assert!(std::time::Instant::now() < until, "no time-out was written");
        sandbox.run(&["approvals", "list"]);
    }
    client.close();
    for event in ["approval.grant", "approval.reject", "approval.timeout"] {
        let row = rows(&sandbox, event).remove(0);
        assert_eq!(
            (&row["run_id"], &row["thread_id"], &row["persona_id"], &row["tool"]),
            (&json!("run-7"), &json!("thread-3"), &json!("default"), &json!("echo")),
            "{event}: {row}"
        );
    }
    for event in ["approval.grant", "approval.reject"] {
        let row = rows(&sandbox, event).remove(0);
        assert!(row["details"]["approver"].as_str().unwrap().starts_with("uid "), "{row}");
        assert_eq!(row["details"]["surface"], "cli");
    }
}

#[test]
fn an_accepted_surface_names_who_accepted_it() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    sandbox.run(&["mcp", "pin", "fix", "--accept"]).exits(0);
    let pinned = rows(&sandbox, "server_pinned");
    let accepted = pinned.last().unwrap();
    assert!(accepted["details"]["approver"].as_str().unwrap().starts_with("uid "), "{accepted}");
    assert_eq!(accepted["persona_id"], "default");
    assert!(accepted["details"]["pinned"].as_str().unwrap().starts_with("sha256:"), "{accepted}");
}

#[test]
fn arguments_are_a_digest_unless_the_operator_keeps_more() {
    let told = json!({ "message": "hi", "api_token": "abcd-efgh", "deep": [{ "password": "x" }], "note": "ghp_0123456789" });
    for (mode, kept) in [
        ("digest", Value::Null),
        (
            "redacted",
            json!({ "message": "hi", "api_token": "[redacted]", "deep": [{ "password": "[redacted]" }], "note": "[redacted]" }),
        ),
        ("full", told.clone()),
    ] {
        let sandbox = sandbox();
        sandbox.configure_fixture(&[], &format!("{ALLOW}audit: {{ arguments: {mode} }}\n"));
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        claimed_call(&mut client, 1, &told);
        client.close();
        let row = rows(&sandbox, "mcp_called").remove(0);
        assert_eq!(row["details"]["arguments"], kept, "{mode}");
        assert!(row["details"]["args"].as_str().unwrap().starts_with("sha256:"), "{mode}");
    }
}
