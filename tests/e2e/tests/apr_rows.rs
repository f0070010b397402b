//! Rows about approvals: what asks, who is asked, how wide an answer is, and what the operator can say
//! beforehand.

use serde_json::{Value, json};
use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;

fn code(reply: &Value) -> &str {
    reply.pointer("/result/_meta/toolgate~1error/code").and_then(Value::as_str).unwrap_or("none")
}

fn call(client: &mut Stdio, tool: &str) -> Value {
    client.request("tools/call", &json!({ "name": tool, "arguments": { "message": "hi" } }))
}

/// Two servers, `one` and `two`, for `default`; the first writes down what reaches it.
fn two(rest: &str) -> Sandbox {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  default:\n    servers: [one, two]\n{rest}",
        sandbox.fixture_entry("one", &["--ledger", &ledger]),
        sandbox.fixture_entry("two", &["--full"]),
    ));
    sandbox
}

fn echo(sandbox: &Sandbox, server: &str, exit: i32) -> toolgate_e2e::Run {
    let tool = format!("{server}.echo");
    sandbox.run(&["mcp", "call", &tool, "--json", r#"{"message":"hi"}"#]).exits(exit)
}

#[test]
fn apr_005_what_is_allowed_runs_at_once_and_what_requires_approval_asks() {
    let sandbox = two(
        "    capabilities:\n      allow: [\"memory.access:thread\", \"mcp.call:one/echo\"]\n      requireApproval: [\"db.query:own\", \"mcp.call:one/big\", \"mcp.call:two\"]\n",
    );
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert_eq!(code(&call(&mut client, "one__echo")), "none");
    assert_eq!(code(&call(&mut client, "one__big")), "approval_required");
    assert_eq!(code(&call(&mut client, "two__echo")), "approval_required");
}

#[test]
fn apr_008_a_person_can_grant_once_for_the_session_for_the_persona_or_not_and_silence_is_not() {
    let sandbox = two("");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let ask = |client: &mut Stdio, message: &str| {
        let params = json!({ "name": "one__echo", "arguments": { "message": message } });
        let reply = client.request("tools/call", &params);
        reply.pointer("/result/_meta/toolgate~1error/ask").map(|ask| ask.as_str().unwrap().to_owned())
    };
    let once = ask(&mut client, "a").unwrap();
    sandbox.run(&["approvals", "grant", &once]).exits(0);
    assert_eq!(ask(&mut client, "a"), None, "once is spent by this");
    assert!(ask(&mut client, "a").is_some_and(|again| again != once), "and not twice");
    let denied = ask(&mut client, "b").unwrap();
    sandbox.run(&["approvals", "deny", &denied]).exits(0);
    assert_eq!(
        code(&call(&mut client, "one__echo")),
        "approval_required",
        "no is no grant for anything else"
    );
    let session = ask(&mut client, "c").unwrap();
    sandbox.run(&["approvals", "grant", &session, "--for", "session"]).exits(0);
    assert_eq!(ask(&mut client, "anything"), None);
    let mut other = sandbox.serve_stdio(&[]);
    other.initialize();
    let wider = ask(&mut other, "d").unwrap();
    sandbox.run(&["approvals", "grant", &wider, "--for", "persona"]).exits(0);
    let mut third = sandbox.serve_stdio(&[]);
    third.initialize();
    assert_eq!(ask(&mut third, "e"), None);
    let refused = sandbox.run(&["approvals", "grant", &wider, "--for", "ever"]).exits(2);
    assert!(refused.stderr.contains("once") && refused.stderr.contains("persona"), "{refused:?}");
}

#[test]
fn apr_009_a_lasting_grant_is_kept_for_persona_server_and_tool_and_survives_the_process() {
    let sandbox = two("");
    let ask = echo(&sandbox, "one", 3);
    let id = ask
        .stderr
        .split_whitespace()
        .find(|word| word.starts_with("ask_"))
        .unwrap()
        .trim_end_matches('.')
        .to_owned();
    sandbox.run(&["approvals", "grant", &id, "--for", "persona"]).exits(0);
    let grants = sandbox.run(&["approvals", "list", "--json"]).exits(0).json()["grants"].clone();
    let text = grants[0].to_string();
    for part in ["default", "one", "echo"] {
        assert!(text.contains(part), "{part}: {grants}");
    }
    echo(&sandbox, "one", 0);
    echo(&sandbox, "two", 3);
}

#[test]
fn apr_010_every_server_can_be_approved_beforehand() {
    let sandbox = two("permissions: { mcp: allow }\n");
    echo(&sandbox, "one", 0);
    echo(&sandbox, "two", 0);
    let explained = sandbox.run(&["mcp", "explain", "one.echo", "--json"]).exits(0).json();
    assert_eq!(explained["call"], "allow", "{explained}");
}

#[test]
fn apr_011_one_server_can_be_approved_asked_about_or_denied_beforehand() {
    let sandbox = two("permissions: { mcp: { one: allow } }\n");
    echo(&sandbox, "one", 0);
    echo(&sandbox, "two", 3);
    let sandbox = two("permissions: { mcp: { one: deny, two: ask } }\n");
    sandbox.run(&["mcp", "allow", "one"]).exits(0);
    let denied = echo(&sandbox, "one", 3);
    assert!(!denied.stderr.contains("ask_"), "deny wins over what is allowed elsewhere: {denied:?}");
    assert!(echo(&sandbox, "two", 3).stderr.contains("ask_"));
    let shown = sandbox.run(&["config", "show", "--json"]).exits(0).json();
    assert_eq!(shown["permissions"]["mcp"], json!({ "one": "deny", "two": "ask" }));
}

#[test]
fn what_permissions_allow_is_no_label_and_outranks_nothing() {
    let labels = "    capabilities:\n      allow: [\"mcp.call:one/echo\"]\n      require_approval: [\"mcp.call:one/big\"]\n";
    let sandbox = two(&format!("{labels}permissions: {{ mcp: allow }}\n"));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert_eq!(code(&call(&mut client, "one__echo")), "none");
    assert_eq!(code(&call(&mut client, "one__big")), "approval_required");
    assert_eq!(code(&call(&mut client, "two__echo")), "denied", "no label covers it");
    sandbox.run(&["mcp", "deny", "one/echo"]).exits(0);
    echo(&sandbox, "one", 3);
}

#[test]
fn apr_012_a_refusal_names_the_server_and_both_ways_to_grant() {
    let sandbox = two("");
    let refused = echo(&sandbox, "one", 3);
    for part in ["server 'one'", "approvals grant ask_", "mcp allow one/echo", "toolgate.yaml"] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
}

#[test]
fn apr_014_declaration_and_approval_are_both_checked_before_anything_leaves() {
    let sandbox = two("");
    let mut client = sandbox.serve_stdio(&["--servers", "two"]);
    client.initialize();
    assert_eq!(code(&call(&mut client, "one__echo")), "not_declared");
    let mut client = sandbox.serve_stdio(&["--servers", "one"]);
    client.initialize();
    assert_eq!(code(&call(&mut client, "one__echo")), "approval_required");
    assert!(!sandbox.read("ledger").contains("tools/call"));
}

#[test]
fn apr_015_apr_016_a_run_without_a_person_has_what_was_approved_beforehand_and_no_other_server() {
    let sandbox = two("permissions: { mcp: allow }\n");
    let run = |tool: &str| {
        let command = sandbox.command(&["mcp", "call", tool, "--json", r#"{"message":"hi"}"#]);
        sandbox.run_detached(&command, "")
    };
    assert_eq!(run("one.echo").code, 0);
    assert_eq!(run("two.echo").code, 0);
    assert_ne!(run("three.echo").code, 0, "a server that nobody configured");
    let asking = two("");
    let command = asking.command(&["mcp", "call", "one.echo", "--json", r#"{"message":"hi"}"#]);
    assert_eq!(asking.run_detached(&command, "").code, 3, "and nothing is approved by being alone");
}

#[test]
fn apr_017_where_nobody_can_answer_a_call_is_refused_and_does_not_wait_for_ever() {
    let sandbox = two("");
    let http = sandbox.serve_http();
    let params = r#"{"name":"one__echo","arguments":{"message":"hi"}}"#;
    let begun = std::time::Instant::now();
    let reply = http.modern("/mcp", "1", "tools/call", params).message();
    assert_eq!(code(&reply), "approval_required", "{reply}");
    assert!(begun.elapsed() < toolgate_e2e::PATIENCE);
    let approved = two("permissions: { mcp: allow }\n");
    let http = approved.serve_http();
    let reply = http.modern("/mcp", "1", "tools/call", params).message();
    assert_eq!(reply["result"]["content"][0]["text"], "hi", "{reply}");
}

#[test]
fn apr_018_apr_019_every_call_asks_but_those_of_tools_that_are_approved_by_name() {
    let sandbox = sandbox();
    let tools = ["echo", "big", "fails", "blocks"]
        .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
    let tools = sandbox.write("tools.json", json!(tools).to_string());
    let entry = sandbox.fixture_entry("fix", &["--tools", &tools]);
    let entry = format!("{entry}    trust: {{ autoApproveTools: [fix__echo] }}\n");
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n"));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for name in client.tool_names() {
        let expected = if name == "fix__echo" { "none" } else { "approval_required" };
        assert_eq!(code(&call(&mut client, &name)), expected, "{name}");
    }
}

#[test]
fn tru_006_a_server_with_host_escape_is_approved_for_a_session_at_most() {
    let sandbox = sandbox();
    let entry = format!(
        "{}    trust: {{ host_escape: true, auto_approve_tools: [echo] }}\n",
        sandbox.fixture_entry("fix", &[])
    );
    let rest = "personas:\n  default:\n    servers: [fix]\n";
    sandbox.configure(&format!("servers:\n{entry}{rest}permissions: {{ mcp: allow }}\n"));
    let refused = sandbox.run(&["mcp", "allow", "fix"]).exits(2);
    assert!(
        refused.stderr.contains("host_escape") && refused.stderr.contains("--for session"),
        "{refused:?}"
    );
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    sandbox.run(&["mcp", "call", "fix.big", "--json", r#"{"bytes":1}"#]).exits(3);
    // What was allowed before it was known that it can leave its sandbox counts no more.
    sandbox.configure(&format!("servers:\n{}{rest}", sandbox.fixture_entry("fix", &[])));
    sandbox.run(&["mcp", "allow", "fix/big"]).exits(0);
    sandbox.run(&["mcp", "call", "fix.big", "--json", r#"{"bytes":1}"#]).exits(0);
    sandbox.configure(&format!("servers:\n{entry}{rest}"));
    sandbox.run(&["mcp", "call", "fix.big", "--json", r#"{"bytes":1}"#]).exits(3);
}

#[test]
fn standing_decisions_for_tools_that_only_read_leave_the_others_asking() {
    let sandbox = sandbox();
    let tools = json!([
        { "name": "echo", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } },
        { "name": "big", "inputSchema": { "type": "object" } },
    ]);
    let tools = sandbox.write("tools.json", tools.to_string());
    sandbox.configure(&format!(
        "servers:\n{}personas:\n  default:\n    servers: [fix]\n  other:\n    servers: [fix]\n",
        sandbox.fixture_entry("fix", &["--tools", &tools])
    ));
    sandbox.run(&["mcp", "allow", "fix", "--persona", "other", "--read-only"]).exits(0);
    let call = |tool: &str, persona: &str| {
        sandbox.run(&["mcp", "call", tool, "--persona", persona, "--json", r#"{"message":"hi"}"#]).code
    };
    assert_eq!((call("fix.echo", "other"), call("fix.big", "other"), call("fix.echo", "default")), (0, 3, 3));
    sandbox.run(&["mcp", "ask", "fix/echo", "--persona", "other"]).exits(0);
    assert_eq!(call("fix.echo", "other"), 3, "ask wins over allow");
}
