//! What policies say and whether it counts: `mode: monitor`, `mcp explain`, and views that are not kept for
//! longer than what they were made of.

use serde_json::{Value, json};
use toolgate_e2e::Sandbox;

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

fn rows(sandbox: &Sandbox, event: &str) -> Vec<Value> {
    sandbox.audit().into_iter().filter(|row| row["details"]["event"] == event).collect()
}

#[test]
fn gate_monitor_a_policy_in_mode_monitor_is_asked_and_recorded_and_decides_nothing() {
    let sandbox = sandbox();
    let tools =
        json!([{ "name": "hidden", "description": "a\u{200b}b", "inputSchema": { "type": "object" } }]);
    let tools = sandbox.write("tools.json", tools.to_string());
    let monitor = "plugins:\n  load:\n    - { plugin: toolgate/hidden-text, mode: monitor }\n";
    sandbox.configure_fixture(&["--tools", &tools], &format!("{ALLOW}{monitor}"));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert_eq!(client.tool_names(), ["fix__hidden"], "it would have hidden the tool");
    assert_eq!(client.tool_names(), ["fix__hidden"]);
    let result = client.call("fix__hidden", &json!({}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains('\u{200b}'), "it would have taken this out: {text:?}");
    client.close();

    let said = rows(&sandbox, "policy_monitored");
    let of = |hook: &str| -> Vec<&Value> {
        said.iter().filter(|row| row["details"]["hook"] == hook).map(|row| &row["details"]).collect()
    };
    assert_eq!(of("list").len(), 1, "what it says of a definition is told once: {said:?}");
    assert_eq!(of("list")[0]["decision"], "deny");
    assert!(of("list")[0]["reason"].as_str().unwrap().contains("U+200B"), "{said:?}");
    assert_eq!((of("result").len(), &of("result")[0]["decision"]), (1, &json!("redact")), "{said:?}");
    assert!(said.iter().all(|row| row["details"]["plugin"] == "toolgate/hidden-text"
        && row["details"]["digest"].as_str().unwrap().starts_with("sha256:")
        && row["tool"] == "hidden"
        && row["persona_id"] == "default"));

    let explained = sandbox.run(&["mcp", "explain", "fix.hidden", "--json"]).exits(0).json();
    assert_eq!((&explained["list"], &explained["call"]), (&json!("allow"), &json!("allow")), "{explained}");
    let listing = explained["listing"].as_array().unwrap();
    let line = listing.iter().find(|line| line["plugin"] == "toolgate/hidden-text").unwrap();
    assert_eq!((&line["mode"], &line["decision"]), (&json!("monitor"), &json!("deny")), "{line}");
    let told = sandbox.run(&["mcp", "explain", "fix.hidden"]).exits(0);
    assert!(told.stdout.contains("deny (monitor: decides nothing)"), "{told:?}");
}

#[test]
fn a_policy_that_only_watches_allows_nothing_either() {
    let sandbox = sandbox();
    let monitor = "plugins:\n  load:\n    - { plugin: toolgate/capabilities, mode: monitor, decisions: [allow, ask, deny] }\n";
    sandbox.configure_fixture(&[], &format!("{ALLOW}{monitor}"));
    let run = sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(3);
    assert!(run.stderr.contains("ask_"), "its allow does not count, so the fallback asks: {run:?}");
    let said = rows(&sandbox, "policy_monitored");
    assert!(said.iter().any(|row| row["details"]["decision"] == "allow" && row["details"]["hook"] == "call"));
}

#[test]
fn a_mode_that_is_none_and_a_monitored_adapter_are_refused_with_their_reason() {
    let sandbox = sandbox();
    sandbox
        .configure_fixture(&[], "plugins:\n  load:\n    - { plugin: toolgate/hidden-text, mode: watch }\n");
    let run = sandbox.run(&["config", "check"]).exits(2);
    assert!(run.stderr.contains("enforce") && run.stderr.contains("monitor"), "{run:?}");
    sandbox
        .configure_fixture(&[], "plugins:\n  load:\n    - { plugin: toolgate/filesystem, mode: monitor }\n");
    let run = sandbox.run(&["mcp", "tools"]);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("mode: monitor is about policies"), "{run:?}");
}

#[test]
fn explain_names_each_policy_with_decision_reason_and_digest_and_the_label_that_matched() {
    let sandbox = sandbox();
    let labels = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n      require_approval: [\"mcp.call:fix/big\"]\n";
    sandbox.configure_fixture(&[], labels);
    let explained =
        sandbox.run(&["mcp", "explain", "fix.big", "--persona", "default", "--json"]).exits(0).json();
    assert_eq!(explained["call"], "ask");
    assert_eq!(explained["matched_allow"], "mcp.call:fix");
    assert_eq!(explained["matched_approval"], "mcp.call:fix/big");
    for lines in ["policies", "listing"] {
        let lines = explained[lines].as_array().unwrap();
        assert!(!lines.is_empty(), "{explained}");
        for line in lines {
            assert!(line["digest"].as_str().unwrap().starts_with("sha256:"), "{line}");
            assert_eq!(line["mode"], "enforce");
        }
    }
    let by = |list: &str, plugin: &str| {
        let lines = explained[list].as_array().unwrap();
        lines.iter().find(|line| line["plugin"] == plugin).cloned().unwrap_or_default()
    };
    assert_eq!(by("policies", "toolgate/capabilities")["decision"], "ask");
    assert!(!by("policies", "toolgate/capabilities")["reason"].as_str().unwrap().is_empty());
    assert_eq!(by("listing", "toolgate/hidden-text")["decision"], "abstain");
    let told = sandbox.run(&["mcp", "explain", "fix.big"]).exits(0);
    for part in ["mcp.call:fix/big", "toolgate/capabilities", "sha256:", "ask"] {
        assert!(told.stdout.contains(part), "{part} is missing: {told:?}");
    }
}

#[test]
fn gate_views_a_definition_that_changes_where_no_pin_looks_is_judged_anew_before_a_call() {
    let sandbox = sandbox();
    let tools = |note: &str| {
        json!([{ "name": "echo", "inputSchema": { "type": "object" }, "_meta": { "note": note } }])
            .to_string()
    };
    let path = sandbox.write("tools.json", tools("fine"));
    sandbox.configure_fixture(&["--tools", &path, "--watch"], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let passes = client.call("fix__echo", &json!({ "message": "hi" }));
    assert_eq!(passes["content"][0]["text"], "hi", "{passes}");

    sandbox.write("tools.json", tools("a\u{e0068}\u{200b}b"));
    let until = std::time::Instant::now() + toolgate_e2e::PATIENCE;
    while !client.tool_names().is_empty() {
        assert!(std::time::Instant::now() < until, "the change was not noticed");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(!sandbox.events().contains(&"tool_pin_mismatch".to_owned()), "it is no drift");
    let guessed = client.call("fix__echo", &json!({ "message": "hi" }));
    let error = guessed.pointer("/_meta/toolgate~1error").unwrap_or_else(|| panic!("{guessed}"));
    assert_eq!((&error["code"], &error["by"]), (&json!("denied"), &json!("toolgate/hidden-text")));
}
