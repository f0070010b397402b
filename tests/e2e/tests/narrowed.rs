//! Sessions that declare which servers they need: what a phase of a workflow, a skill or a sub-run says is
//! taken away and never added to (SCP-018 to SCP-023, APR-013, APR-022, TRB-011).

use serde_json::{Value, json};
use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;

const ALLOW: &str = "    capabilities: { allow: [\"mcp.call:*\"] }\n";

/// A persona with two servers, each with a ledger of its own.
fn two(rest: &str) -> Sandbox {
    let sandbox = sandbox();
    let ledgers = ["notes", "mail"].map(|name| sandbox.path(name).display().to_string());
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  default:\n    servers: [notes, mail]\n{rest}",
        sandbox.fixture_entry("notes", &["--ledger", &ledgers[0]]),
        sandbox.fixture_entry("mail", &["--ledger", &ledgers[1]]),
    ));
    sandbox
}

/// A handshake that declares servers.
fn declare(client: &mut Stdio, servers: &Value) -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "phase", "version": "1" },
        "_meta": { "toolgate/servers": servers },
    });
    let reply = client.request("initialize", &params);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    reply
}

fn code(reply: &Value) -> &str {
    reply.pointer("/result/_meta/toolgate~1error/code").and_then(Value::as_str).unwrap_or("none")
}

fn call(client: &mut Stdio, tool: &str) -> Value {
    client.request("tools/call", &json!({ "name": tool, "arguments": { "message": "hi" } }))
}

#[test]
fn gate_declared_scp_018_apr_013_trb_011_a_server_that_the_session_did_not_declare_is_refused_and_says_how() {
    let sandbox = two(ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    declare(&mut client, &json!(["notes"]));
    assert!(client.tool_names().iter().all(|name| name.starts_with("notes__")));
    let refused = call(&mut client, "mail__echo");
    assert_eq!(code(&refused), "not_declared", "{refused}");
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("'mail'") && text.contains("(notes)") && text.contains("toolgate/servers"),
        "{text}"
    );
    assert_eq!(sandbox.read("mail"), "", "the server was not even started");
    let row = sandbox.audit().into_iter().find(|row| row["details"]["rule"] == "declaration").unwrap();
    assert_eq!((&row["details"]["event"], &row["details"]["server"]), (&json!("mcp_denied"), &json!("mail")));
}

#[test]
fn scp_023_a_declared_server_is_called_by_the_name_that_it_advertises() {
    let sandbox = two(ALLOW);
    let mut client = sandbox.serve_stdio(&["--servers", "notes"]);
    client.initialize();
    assert_eq!(call(&mut client, "notes__echo")["result"]["content"][0]["text"], "hi");
    assert_eq!(code(&call(&mut client, "mail__echo")), "not_declared");
}

#[test]
fn scp_019_no_name_that_is_made_up_reaches_anything() {
    let sandbox = two(ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    declare(&mut client, &json!(["notes", "ghost"]));
    for name in ["ghost__echo", "http://127.0.0.1:9/mcp", "nobody__echo"] {
        let reply = call(&mut client, name);
        assert_eq!(reply["error"]["code"], -32602, "{name}: {reply}");
    }
    assert!(!sandbox.events().contains(&"mcp_called".to_owned()));
}

#[test]
fn scp_020_a_chat_that_declares_nothing_lists_and_calls_after_the_approval() {
    let sandbox = two("");
    let asked =
        sandbox.run(&["mcp", "call", "mail.echo", "--json", r#"{"message":"hi"}"#, "--output", "json"]);
    let ask = asked.exits(3).json()["_meta"]["toolgate/error"]["ask"].as_str().unwrap().to_owned();
    sandbox.run(&["approvals", "grant", &ask]).exits(0);
    sandbox.run(&["mcp", "call", "mail.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
}

#[test]
fn scp_021_scp_022_an_approval_of_one_session_is_none_for_another_skill_or_sub_run() {
    let sandbox = two("");
    let mut skill = sandbox.serve_stdio(&["--servers", "notes"]);
    skill.initialize();
    let asked = call(&mut skill, "notes__echo");
    let ask = asked.pointer("/result/_meta/toolgate~1error/ask").unwrap().as_str().unwrap().to_owned();
    sandbox.run(&["approvals", "grant", &ask, "--for", "session"]).exits(0);
    assert_eq!(call(&mut skill, "notes__echo")["result"]["content"][0]["text"], "hi");
    for servers in ["notes", "notes,mail"] {
        let mut other = sandbox.serve_stdio(&["--servers", servers]);
        other.initialize();
        assert_eq!(code(&call(&mut other, "notes__echo")), "approval_required", "{servers}");
    }
}

#[test]
fn apr_022_a_narrowed_session_gets_nothing_that_a_grant_would_open() {
    let sandbox = two("");
    sandbox.run(&["mcp", "allow", "mail"]).exits(0);
    sandbox.run(&["mcp", "call", "mail.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    let mut client = sandbox.serve_stdio(&["--servers", "notes"]);
    client.initialize();
    assert_eq!(code(&call(&mut client, "mail__echo")), "not_declared");
}

#[test]
fn a_declaration_only_ever_takes_away_whatever_is_said_later() {
    let sandbox = two(ALLOW);
    let mut client = sandbox.serve_stdio(&["--servers", "notes"]);
    declare(&mut client, &json!(["notes", "mail"]));
    assert_eq!(code(&call(&mut client, "mail__echo")), "not_declared", "the process said less");
    let params = json!({ "name": "mail__echo", "arguments": {}, "_meta": { "toolgate/servers": ["mail"] } });
    let widened = client.request("tools/call", &params);
    assert_eq!(code(&widened), "not_declared", "{widened}");
    for wrong in [json!("notes"), json!([1]), json!({ "a": 1 })] {
        let params =
            json!({ "name": "notes__echo", "arguments": {}, "_meta": { "toolgate/servers": wrong } });
        let refused = client.request("tools/call", &params);
        assert!(refused["error"]["message"].as_str().unwrap().contains("claim refused"), "{refused}");
    }
}

#[test]
fn gate_narrowed_scp_018_a_process_stays_within_its_handshake_in_either_era_and_after_another_one() {
    let sandbox = two(ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    declare(&mut client, &json!(["notes"]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let modern = |tool: &str| json!({ "name": tool, "arguments": { "message": "hi" }, "_meta": meta });
    let refused = client.request("tools/call", &modern("mail__echo"));
    assert_eq!(code(&refused), "not_declared", "a request for itself is no way round it: {refused}");
    assert_eq!(code(&client.request("tools/call", &modern("notes__echo"))), "none");
    client.initialize();
    assert_eq!(code(&call(&mut client, "mail__echo")), "not_declared", "nor is another handshake");
    declare(&mut client, &json!(["notes", "mail"]));
    assert_eq!(code(&call(&mut client, "mail__echo")), "not_declared", "nor one that says more");
    assert_eq!(code(&call(&mut client, "notes__echo")), "none");
}

#[test]
fn scp_018_over_http_a_header_declares_and_a_session_keeps_to_its_handshake() {
    let sandbox = two(ALLOW);
    let http = sandbox.serve_http();
    let params = r#"{"name":"mail__echo","arguments":{"message":"hi"}}"#;
    let declared = [("X-Toolgate-Servers", "notes")];
    let refused = http.modern_with("/mcp", "1", "tools/call", params, &declared).message();
    assert_eq!(code(&refused), "not_declared", "{refused}");
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"},"_meta":{"toolgate/servers":["notes"]}}}"#;
    let reply = http.post("/mcp", &[], hello);
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    let body = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}"#);
    let refused = http.post("/mcp", &[("Mcp-Session-Id", &session)], &body).message();
    assert_eq!(code(&refused), "not_declared", "{refused}");
}
