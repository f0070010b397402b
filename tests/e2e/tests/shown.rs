//! What does not reach clients, and that each verb which shows servers or what they offer says so.

use serde_json::{Value, json};
use toolgate_e2e::Sandbox;

use crate::{ECHO, sandbox};

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";
const TWO: &str = r#"[{"name":"echo","description":"one","inputSchema":{"type":"object"}},{"name":"big","description":"two","inputSchema":{"type":"object"}}]"#;

fn pinned() -> Sandbox {
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", TWO);
    sandbox.configure_fixture(&["--tools", &tools, "--watch"], ALLOW);
    sandbox.run(&ECHO).exits(0);
    sandbox
}

fn blocked(value: &Value) -> Vec<(String, String, String)> {
    let all = value["blocked"].as_array().unwrap_or_else(|| panic!("{value}"));
    let text = |blocked: &Value, key: &str| blocked[key].as_str().unwrap().to_owned();
    all.iter()
        .map(|blocked| (text(blocked, "name"), text(blocked, "reason"), text(blocked, "next")))
        .collect()
}

fn is_told(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

// PI-02
#[test]
fn gate_shown_a_drifted_tool_is_told_by_each_verb_with_its_reason_and_what_to_do() {
    const PARTS: [&str; 3] = ["tool echo", "changed after it was pinned", "toolgate mcp diff fix"];
    let sandbox = pinned();
    sandbox.write("tools.json", TWO.replace("one", "once"));
    let listed = sandbox.run(&["mcp", "tools", "--json"]).exits(0).json();
    let names: Vec<&Value> = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, [&json!("fix__big")], "what was approved last is not shown as what is there");
    let (name, reason, next) = blocked(&listed).remove(0);
    assert_eq!(name, "echo");
    assert!(
        reason.contains("changed after it was pinned") && next.contains("mcp diff fix"),
        "{reason} {next}"
    );
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    assert_eq!(blocked(&status["servers"][0]).len(), 1);
    for args in [&["mcp", "tools"][..], &["mcp", "status"]] {
        is_told(&sandbox.run(args).exits(0).stdout, &PARTS);
    }
    let one = sandbox.run(&["mcp", "list", "fix.echo"]).exits(3);
    is_told(&one.stderr, &["changed after it was pinned", "toolgate mcp diff fix"]);
    // What does not connect is told by the gateway that runs.
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.call("fix__echo", &json!({ "message": "a" }));
    for args in [&["mcp", "list"][..], &["mcp", "get", "fix"]] {
        is_told(&sandbox.run(args).exits(0).stdout, &PARTS);
        let told = sandbox.run(&[args, &["--json"]].concat()).exits(0).json();
        let entry = if args[1] == "list" { &told["fix"] } else { &told };
        assert_eq!(blocked(&entry["now"])[0].0, "echo", "{told}");
    }
}

#[test]
fn a_server_whose_pins_let_nothing_pass_is_told_without_connecting_to_it() {
    let sandbox = pinned();
    sandbox.configure_fixture(&["--crlf"], ALLOW);
    let listed = sandbox.run(&["mcp", "list"]).exits(0).stdout;
    is_told(&listed, &["blocked: server fix", "another command or URL", "toolgate mcp pin fix --accept"]);
    let entry = sandbox.run(&["mcp", "get", "fix", "--json"]).exits(0).json();
    assert_eq!(entry["now"]["blocked"][0]["kind"], "server", "{entry}");
    assert!(!sandbox.path("ledger").exists());
}

// SE-01
#[test]
fn se_01_a_tool_that_is_blocked_for_hidden_text_is_told_by_status_and_tools() {
    let sandbox = sandbox();
    let tools = json!([
        { "name": "evil", "description": "a\u{200b}b", "inputSchema": { "type": "object" } },
        { "name": "echo", "inputSchema": { "type": "object" } },
    ]);
    let tools = sandbox.write("tools.json", tools.to_string());
    sandbox.configure_fixture(&["--tools", &tools], ALLOW);
    for args in [&["mcp", "status"][..], &["mcp", "tools"]] {
        let told = sandbox.run(args).exits(0).stdout;
        is_told(&told, &["blocked: tool evil of fix", "U+200B", "toolgate mcp explain fix.evil"]);
    }
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    let all = blocked(&status["servers"][0]);
    assert_eq!(all.len(), 1, "what is as approved and hides nothing is not among them: {all:?}");
}

#[test]
fn what_a_persona_does_not_have_is_not_called_blocked() {
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", TWO);
    let one = "    capabilities:\n      allow: [\"mcp.call:fix/echo\"]\n";
    sandbox.configure_fixture(&["--tools", &tools], one);
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    assert!(blocked(&status["servers"][0]).is_empty(), "{status}");
}

#[test]
fn a_server_that_does_not_answer_is_shown_as_approved_last_and_that_is_said() {
    let sandbox = pinned();
    sandbox.write("tools.json", "this is no list");
    let told = sandbox.run(&["mcp", "tools"]).exits(0).stdout;
    is_told(&told, &["fix__echo", "not connected: fix", "what was approved last"]);
    let listed = sandbox.run(&["mcp", "tools", "--json"]).exits(0).json();
    assert_eq!(listed["not_connected"][0]["server"], "fix", "{listed}");
}
