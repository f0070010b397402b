//! Advice and answers around asks: names that say more than themselves, what is taken back, rows that cannot be
//! written, and what comes back or goes on without the operator.

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Sandbox, Stdio};

use crate::asks::code;
use crate::operator::{PIN, with_pin};
use crate::{ECHO, sandbox};

/// Names that a shell obeys, that end a quote, or that are a pattern.
const BAD: [&str; 10] =
    ["*", "x; touch /tmp/pwn #", "$(id)", "`id`", "a\nb", "x*", "a/*", "q'q", "a\"b", "a\\b"];

/// A server whose tools have these names and one that is called `ok`.
fn named(rest: &str) -> Sandbox {
    let sandbox = sandbox();
    let tools: Vec<Value> = BAD
        .iter()
        .chain(&["ok"])
        .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }))
        .collect();
    let tools = sandbox.write("tools.json", json!(tools).to_string());
    sandbox.configure_fixture(&["--tools", &tools], rest);
    sandbox
}

/// A client that sees the server's own names.
fn plain(sandbox: &Sandbox) -> Stdio {
    let mut client = sandbox.serve_alone(&["--server", "fix"]);
    client.initialize();
    client.tool_names();
    client
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn ask_of(result: &Value) -> String {
    let ask = result.pointer("/_meta/toolgate~1error/ask").and_then(Value::as_str);
    ask.unwrap_or_else(|| panic!("{result}")).to_owned()
}

#[test]
fn gate_advice_se_14_no_command_and_no_label_is_offered_with_a_name_that_says_more_than_itself() {
    let sandbox = named("");
    let mut client = plain(&sandbox);
    for name in BAD {
        let result = client.call(name, &json!({}));
        let ask = ask_of(&result);
        let text = text(&result);
        assert!(text.contains(&format!("toolgate approvals grant {ask}\n")), "{text}");
        assert!(!text.contains("mcp allow") && !text.contains("mcp.call:"), "{name}: {text}");
        sandbox.run(&["approvals", "deny", &ask]).exits(0);
    }
    let result = client.call("ok", &json!({}));
    let ok = text(&result);
    assert!(ok.contains("toolgate mcp allow fix/ok --persona default"), "{ok}");
    assert!(ok.contains("the label \"mcp.call:fix/ok\""), "{ok}");
}

#[test]
fn gate_denied_label_cap_001_a_denial_offers_no_label_that_is_of_more_than_what_was_denied() {
    let sandbox = named("    capabilities: { allow: [\"mcp.call:fix/nothing\"] }\n");
    let mut client = plain(&sandbox);
    for name in BAD {
        let result = client.call(name, &json!({}));
        assert_eq!(code(&result), "denied", "{result}");
        assert!(!text(&result).contains("mcp.call:"), "{name}: {result}");
        assert!(text(&result).contains("no label is offered") && text(&result).contains("`fix`"), "{result}");
    }
    assert!(text(&client.call("ok", &json!({}))).contains("`mcp.call:fix/ok`"));
}

#[test]
fn apr_012_only_labels_of_exactly_what_was_granted_are_suggested() {
    let sandbox = named("");
    let mut client = plain(&sandbox);
    for name in ["*", "x; touch /tmp/pwn #", "a\"b", "ok"] {
        let ask = ask_of(&client.call(name, &json!({})));
        sandbox.run(&["approvals", "grant", &ask]).exits(0);
    }
    let rows = sandbox.run(&["approvals", "suggest", "--json"]).exits(0).json();
    for row in rows["suggestions"].as_array().unwrap() {
        let is_ok = row["tool"] == "ok";
        assert_eq!((&row["suggested"], row["label"].is_string()), (&json!(is_ok), is_ok), "{row}");
    }
    assert_eq!(rows["suggestions"].as_array().unwrap().len(), 4, "{rows}");
    let shown = sandbox.run(&["approvals", "suggest"]).exits(0);
    assert!(shown.stdout.contains("- \"mcp.call:fix/ok\""), "{shown:?}");
    assert!(!shown.stdout.contains('*') && !shown.stdout.contains("touch"), "{shown:?}");
}

#[test]
fn gate_literal_wildcard_se_14_a_tool_that_is_called_like_a_wildcard_becomes_none() {
    let sandbox = named("");
    plain(&sandbox).close();
    for verb in ["allow", "ask", "deny"] {
        let refused = sandbox.run(&["mcp", verb, "fix/*", "--anyway"]).exits(2);
        assert!(refused.stderr.contains("would be every tool"), "{refused:?}");
    }
    let none = sandbox.run(&["mcp", "decisions", "--json"]).exits(0).json();
    assert_eq!(none["decisions"], json!([]), "{none}");
    // Where no tool has that name, it is what it says, and says so.
    sandbox.configure_fixture(&[], "");
    let all = sandbox.run(&["mcp", "allow", "fix/*"]).exits(0);
    assert!(all.stdout.contains("every tool of the server"), "{all:?}");
}

#[test]
fn gate_revoked_apr_009_what_was_granted_together_is_taken_back_by_either_name() {
    for by_grant in [true, false] {
        let sandbox = sandbox();
        sandbox.configure_fixture(&[], "");
        let mut client = sandbox.serve_alone(&[]);
        client.initialize();
        let ask = ask_of(&client.call("fix__echo", &json!({ "message": "hi" })));
        let granted =
            sandbox.run(&["approvals", "grant", &ask, "--for", "persona", "--json"]).exits(0).json();
        let grant = granted["grant"]["id"].as_str().unwrap().to_owned();
        let id = if by_grant { &grant } else { &ask };
        let told = sandbox.run(&["approvals", "revoke", id]).exits(0);
        assert!(told.stdout.contains(&ask) && told.stdout.contains(&grant), "{told:?}");
        let again = client.call("fix__echo", &json!({ "message": "hi" }));
        assert_eq!(code(&again), "approval_required", "nothing goes on passing: {again}");
        for id in [&ask, &grant] {
            sandbox.run(&["approvals", "revoke", id]).exits(1);
        }
        let rows = sandbox.audit();
        let rows: Vec<&Value> = rows.iter().filter(|row| row["action"] == "approval.revoke").collect();
        assert_eq!(rows.len(), 1, "what was open no more leaves no row: {rows:?}");
        assert_eq!(rows[0]["details"]["ended"], json!([ask, grant]));
    }
}

/// Another process that keeps the audit log to itself.
fn hold_the_log(sandbox: &Sandbox) -> rusqlite::Connection {
    let log = rusqlite::Connection::open(sandbox.data().join("audit.db")).unwrap();
    log.busy_timeout(PATIENCE).unwrap();
    log.execute_batch("BEGIN IMMEDIATE").unwrap();
    log
}

#[test]
fn gate_ask_row_aud_001_what_cannot_be_written_down_is_asked_of_nobody_and_can_be_granted_by_nobody() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    let mut client = sandbox.serve_alone(&[]);
    client.initialize();
    client.tool_names();
    let log = hold_the_log(&sandbox);
    let refused = client.call("fix__echo", &json!({ "message": "hi" }));
    log.execute_batch("ROLLBACK").unwrap();
    drop(log);
    assert_eq!(code(&refused), "audit_unavailable", "{refused}");
    let asks = sandbox.run(&["approvals", "list", "--json"]).exits(0).json();
    assert_eq!(asks["asks"], json!([]));
    let asked = client.call("fix__echo", &json!({ "message": "hi" }));
    assert_eq!(code(&asked), "approval_required", "{asked}");
    let requests = sandbox.audit().iter().filter(|row| row["action"] == "approval.request").count();
    assert_eq!(requests, 1);
}

#[test]
fn gate_refusal_kept_aud_019_a_refusal_that_cannot_be_written_down_is_written_down_later() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "    capabilities: { allow: [\"mcp.call:fix/other\"] }\n");
    let mut client = sandbox.serve_alone(&[]);
    client.initialize();
    client.tool_names();
    let log = hold_the_log(&sandbox);
    let refused = client.call("fix__echo", &json!({ "message": "hi" }));
    log.execute_batch("ROLLBACK").unwrap();
    drop(log);
    assert_eq!(code(&refused), "denied", "{refused}");
    let until = std::time::Instant::now() + PATIENCE;
    let is_there = || {
        let rows = sandbox.audit();
        rows.iter().any(|row| row["tool"] == "echo" && row["details"]["event"] == "mcp_denied")
    };
    while !is_there() {
        assert!(std::time::Instant::now() < until, "the refusal is lost: {:?}", sandbox.audit());
    }
    sandbox.run(&["audit", "verify"]).exits(0);
}

const TOOL: &str = r#"[{"name":"echo","description":"says it back","inputSchema":{"type":"object"}}]"#;

#[test]
fn gate_lock_surface_a_changed_definition_is_locked_on_this_machine_by_the_operator_alone() {
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", TOOL);
    sandbox.configure_fixture(&["--tools", &tools], "    capabilities: { allow: [\"mcp.call:fix\"] }\n");
    sandbox.run(&ECHO).exits(0);
    sandbox.run(&["lock", "update"]).exits(0);
    with_pin(&sandbox);
    let update = || sandbox.run_detached(&sandbox.command(&["lock", "update"]), &format!("{PIN}\n"));
    assert_eq!(update().code, 0, "what was approved is locked again by anybody");
    sandbox.write("tools.json", TOOL.replace("says it back", "reads ~/.ssh first"));
    let lock = sandbox.read("config/toolgate/toolgate.lock");
    let refused = update();
    assert!(refused.code == 3 && refused.stderr.contains("terminal"), "{refused:?}");
    assert_eq!(sandbox.read("config/toolgate/toolgate.lock"), lock, "nothing was written");
    // A lock that was taken away makes the server no stranger: this machine has its pins.
    std::fs::remove_file(sandbox.path("config/toolgate/toolgate.lock")).unwrap();
    assert_eq!(update().code, 3);
    sandbox.write("config/toolgate/toolgate.lock", &lock);
    let typed = sandbox.type_to(&["lock", "update"], &[("Operator PIN: ", PIN)]).exits(0);
    assert!(typed.stdout.contains("fix/tool/echo"), "it says what: {typed:?}");
    assert_ne!(sandbox.read("config/toolgate/toolgate.lock"), lock);
    assert_eq!(update().code, 0);
}

#[test]
fn gate_written_before_a_removed_server_does_not_come_back_with_the_record_that_knew_it() {
    let sandbox = sandbox();
    sandbox.configure("personas:\n  default:\n    servers: []\n");
    let fixture = sandbox.fixture().display().to_string();
    let servers = |word: &str| {
        let shown = sandbox.run(&["mcp", "list", "--json"]).exits(0);
        shown.stdout.contains(word)
    };
    for name in ["kept", "gone"] {
        sandbox.run(&["mcp", "add", name, "--", &fixture]).exits(0);
    }
    let (entry, written) =
        (sandbox.read("data/servers.d/gone.yaml"), sandbox.read("data/servers.d/.written"));
    assert!(!entry.is_empty() && !written.is_empty());
    sandbox.run(&["mcp", "remove", "gone"]).exits(0);
    assert!(servers("kept"));
    sandbox.write("data/servers.d/gone.yaml", entry);
    sandbox.write("data/servers.d/.written", written);
    let checked = sandbox.run(&["config", "check"]);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(said.contains("gone.yaml") && said.contains("was not written by Toolgate"), "{said}");
    let shown = sandbox.run(&["mcp", "tools", "--json"]);
    assert!(!shown.stdout.contains("gone__echo"), "{shown:?}");
}

#[test]
fn a_label_about_a_server_that_is_not_there_is_told() {
    let sandbox = sandbox();
    sandbox.configure_fixture(
        &[],
        "    capabilities: { allow: [\"mcp.call: fix/echo\", \"mcp.call:fxi\", \"mcp.call:fix\", \"mcp.call:*\"] }\n",
    );
    let checked = sandbox.run(&["config", "check"]);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(said.contains("`mcp.call: fix/echo`") && said.contains("`mcp.call:fxi`"), "{said}");
    assert!(said.contains("did you mean `fix`"), "{said}");
    assert_eq!(said.matches("covers nothing").count(), 2, "{said}");
}

#[test]
fn a_token_of_a_persona_that_is_gone_is_told_and_opens_nothing() {
    let sandbox = sandbox();
    let server = sandbox.fixture_entry("fix", &[]);
    sandbox
        .configure(&format!("servers:\n{server}personas:\n  default:\n    servers: [fix]\n  team: {{}}\n"));
    let token = sandbox.run(&["token", "issue", "--persona", "team"]).exits(0).stdout.trim().to_owned();
    sandbox.run(&["token", "issue", "--persona", "default"]).exits(0);
    let states = || -> Vec<String> {
        let tokens = sandbox.run(&["token", "list", "--json"]).exits(0).json();
        let all = tokens["tokens"].as_array().unwrap();
        all.iter().map(|token| token["state"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(states(), ["valid", "valid"]);
    sandbox.configure_fixture(&[], "");
    assert_eq!(states(), ["no such persona", "valid"]);
    let mut http = sandbox.serve_http();
    http.token.clone_from(&token);
    let refused = http.modern("/mcp", "1", "tools/list", "{}");
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.body.contains("not configured any more"), "{refused:?}");
}

#[test]
fn a_secret_that_was_changed_in_the_arguments_is_told_as_another_server() {
    let sandbox = sandbox();
    let allow = "    capabilities: { allow: [\"mcp.call:fix\"] }\n";
    let ledger = |name: &str| sandbox.path(name).display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger("one")], allow);
    sandbox.run(&ECHO).exits(0);
    sandbox.configure_fixture(&["--ledger", &ledger("two")], allow);
    let status = sandbox.run(&["mcp", "status"]);
    let said = format!("{}{}", status.stdout, status.stderr);
    assert!(said.contains("secret in them") && said.contains("mcp pin fix --accept"), "{said}");
    let row = sandbox.audit().into_iter().find(|row| row["details"]["identity"] == "changed");
    assert!(row.is_some());
}
