//! The one decision point, with the signed policies of the bundle.

use serde_json::json;

use crate::sandbox;

#[test]
fn gate_decide_with_no_policy_loaded_nothing_is_listed_and_nothing_passes() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger], "plugins: { bundle: none }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert_eq!(client.tool_names(), Vec::<String>::new());
    let reply = client.request("tools/call", &json!({ "name": "fix__echo", "arguments": {} }));
    let refused = reply.get("error").is_some() || reply["result"]["isError"] == true;
    assert!(refused, "{reply}");
    assert!(!sandbox.read("ledger").contains("tools/call"));
}

#[test]
fn gate_ask_a_call_without_a_label_asks_with_its_id_and_both_ways_to_grant() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger], "");
    let run = sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(3);
    assert!(run.stderr.contains("ask_"), "{run:?}");
    assert!(run.stderr.contains("approvals grant ask_") && run.stderr.contains("mcp.call:fix"), "{run:?}");
    assert!(!sandbox.read("ledger").contains("tools/call"), "an ask sends nothing");
    let events = sandbox.events();
    assert!(events.contains(&"approval.request".to_owned()), "{events:?}");
    assert!(!events.contains(&"mcp_called".to_owned()), "{events:?}");
}

#[test]
fn the_same_call_asked_twice_is_one_ask() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    let ask = |message: &str| {
        let arguments = format!(r#"{{"message":"{message}"}}"#);
        let run =
            sandbox.run(&["mcp", "call", "fix.echo", "--json", &arguments, "--output", "json"]).exits(3);
        run.json()["_meta"]["toolgate/error"]["ask"].as_str().unwrap().to_owned()
    };
    let first = ask("a");
    assert_eq!(first, ask("a"));
    assert_ne!(first, ask("b"), "other arguments are another question");
}

#[test]
fn cap_023_a_tool_without_a_label_is_denied_and_not_listed() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(
        &["--ledger", &ledger],
        "    capabilities:\n      allow: [\"mcp.call:fix/echo\"]\n      require_approval: [\"mcp.call:fix/big\"]\n",
    );
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert_eq!(client.tool_names(), ["fix__echo", "fix__big"], "APR-002: what asks stays visible");
    let denied = client.call("fix__environment", &json!({}));
    assert_eq!(denied.pointer("/_meta/toolgate~1error/code").unwrap(), "denied");
    let asked = client.call("fix__big", &json!({ "bytes": 1 }));
    assert_eq!(asked.pointer("/_meta/toolgate~1error/code").unwrap(), "approval_required");
    assert!(!sandbox.read("ledger").contains("tools/call"));
    assert!(sandbox.events().contains(&"mcp_denied".to_owned()));
}

#[test]
fn gate_binding_scp_002_a_server_of_another_persona_does_not_exist() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  default:\n    servers: [fix]\n    capabilities: {{ allow: [\"mcp.call:*\"] }}\n  other:\n    servers: [theirs]\n    capabilities: {{ allow: [\"mcp.call:*\"] }}\n",
        sandbox.fixture_entry("fix", &[]),
        sandbox.fixture_entry("theirs", &[]),
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert!(client.tool_names().iter().all(|name| name.starts_with("fix__")));
    let theirs = client.request("tools/call", &json!({ "name": "theirs__echo", "arguments": {} }));
    let nobodys = client.request("tools/call", &json!({ "name": "nobodys__echo", "arguments": {} }));
    assert_eq!(theirs["error"]["code"], -32602, "{theirs}");
    let blank = |reply: &serde_json::Value| {
        reply["error"]["message"].as_str().unwrap().replace("theirs", "X").replace("nobodys", "X")
    };
    assert_eq!(blank(&theirs), blank(&nobodys), "another persona's server looks like none");
    let mut other = sandbox.serve_stdio(&["--persona", "other"]);
    other.initialize();
    assert!(other.tool_names().iter().all(|name| name.starts_with("theirs__")));
}

#[test]
fn gate_looked_a_decision_about_arguments_is_never_taken_from_an_earlier_call() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    let entry = sandbox.fixture_entry("fix", &["--ledger", &ledger]);
    sandbox.configure(&format!(
        "servers:\n{entry}personas:\n  default:\n    servers: [fix]\n    capabilities: {{ allow: [\"mcp.call:fix\"] }}\nplugins:\n  load:\n    - plugin: toolgate/arguments\n      settings:\n        rules:\n          - {{ calls: [\"mcp.call:fix/echo\"], at: /message, prefix: \"fine\" }}\n"
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    // The plain facts of these calls are the same; only their arguments tell them apart.
    for message in ["fine", "foul", "fine again", "foul"] {
        let result = client.call("fix__echo", &json!({ "message": message }));
        let error = result.pointer("/_meta/toolgate~1error");
        if message.starts_with("fine") {
            assert_eq!(error, None, "{result}");
        } else {
            let error = error.unwrap_or_else(|| panic!("{message} passed: {result}"));
            assert_eq!((&error["code"], &error["by"]), (&json!("denied"), &json!("toolgate/arguments")));
        }
    }
    let ledger = sandbox.read("ledger");
    assert_eq!(ledger.matches("\"tools/call\"").count(), 2, "{ledger}");
    assert!(!ledger.contains("foul"), "{ledger}");
}

#[test]
fn tru_002_a_tool_named_for_automatic_approval_needs_no_ask() {
    let sandbox = sandbox();
    let entry = format!("{}    trust: {{ auto_approve_tools: [echo] }}\n", sandbox.fixture_entry("fix", &[]));
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n"));
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    sandbox.run(&["mcp", "call", "fix.big", "--json", "{}"]).exits(3);
}

#[test]
fn tru_010_the_exact_name_filter_holds_for_listing_and_calling() {
    let sandbox = sandbox();
    let entry = format!("{}    tools: {{ deny: [big] }}\n", sandbox.fixture_entry("fix", &[]));
    sandbox.configure(&format!(
        "servers:\n{entry}personas:\n  default:\n    servers: [fix]\n    capabilities: {{ allow: [\"mcp.call:fix\"] }}\n"
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert!(!client.tool_names().contains(&"fix__big".to_owned()));
    let reply = client.request("tools/call", &json!({ "name": "fix__big", "arguments": {} }));
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
}

#[test]
fn gate_result_se_01_hidden_text_in_a_result_and_a_definition_does_not_reach_the_model() {
    let sandbox = sandbox();
    let tools = sandbox.write(
        "tools.json",
        "[{\"name\":\"hidden\",\"description\":\"Reads a file\u{e0053}\u{e0054}\u{200b}\u{feff}\u{202e}\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"clean\",\"description\":\"fine\",\"inputSchema\":{\"type\":\"object\"}}]",
    );
    sandbox.configure_fixture(&["--tools", &tools], "    capabilities:\n      allow: [\"mcp.call:fix\"]\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert_eq!(client.tool_names(), ["fix__clean"], "a definition with hidden text is blocked");
    let guessed = client.call("fix__hidden", &json!({}));
    let error = guessed.pointer("/_meta/toolgate~1error").unwrap();
    assert_eq!(
        (&error["code"], &error["by"]),
        (&json!("denied"), &json!("toolgate/hidden-text")),
        "{guessed}"
    );
    let explained = sandbox.run(&["mcp", "explain", "fix.hidden", "--json"]).exits(0).json();
    assert_eq!((&explained["list"], &explained["call"]), (&json!("deny"), &json!("deny")), "{explained}");
    let found =
        sandbox.audit().into_iter().find(|row| row["details"]["event"] == "hidden_text_found").unwrap();
    assert_eq!(found["tool"], "hidden");
    let findings = found["details"]["findings"].to_string();
    for part in ["/description", "U+E0053", "U+200B", "U+FEFF", "U+202E"] {
        assert!(findings.contains(part), "{part} is missing in {findings}");
    }

    let other = crate::sandbox();
    other.configure_fixture(&[], "    capabilities:\n      allow: [\"mcp.call:fix\"]\n");
    let mut client = other.serve_stdio(&[]);
    client.initialize();
    let result = client.call("fix__hidden", &json!({}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        !text
            .chars()
            .any(|c| matches!(c, '\u{200b}' | '\u{202e}' | '\u{1b}')
                || ('\u{e0000}'..='\u{e007f}').contains(&c)),
        "{text:?}"
    );
    assert!(text.starts_with("visible") && text.ends_with("end"), "{text:?}");
    let is_found = |row: &serde_json::Value| row["details"]["event"] == "hidden_text_found";
    // The row is written beside the reply, which does not wait for it.
    let until = std::time::Instant::now() + toolgate_e2e::PATIENCE;
    while !other.audit().iter().any(is_found) && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let found: Vec<_> = other.audit().into_iter().filter(is_found).collect();
    assert_eq!(found.len(), 1, "one row for one result: {found:?}");
    assert_eq!((&found[0]["tool"], &found[0]["details"]["server"]), (&json!("hidden"), &json!("fix")));
}

#[test]
fn a_plugin_without_the_authority_to_allow_cannot() {
    let sandbox = sandbox();
    sandbox.configure_fixture(
        &[],
        "    capabilities:\n      allow: [\"mcp.call:fix\"]\nplugins:\n  load:\n    - { plugin: toolgate/capabilities, decisions: [ask, deny] }\n",
    );
    let run = sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(3);
    assert!(run.stderr.contains("ask_"), "its allow counts as abstain, so the fallback asks: {run:?}");
}

// CARD-007
#[test]
fn gate_adapter_a_path_is_corrected_before_the_verdict_and_one_that_leaves_is_refused() {
    let sandbox = sandbox();
    let root = sandbox.path("root").display().to_string();
    let ledger = sandbox.path("ledger").display().to_string();
    let entry = format!(
        "{}    adapter: {{ plugin: toolgate/filesystem, settings: {{ roots: [{root:?}] }} }}\n",
        sandbox.fixture_entry("fix", &["--ledger", &ledger])
    );
    sandbox.configure(&format!(
        "servers:\n{entry}personas:\n  default:\n    servers: [fix]\n    capabilities: {{ allow: [\"mcp.call:fix\"] }}\n"
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let result = client.call("fix__received", &json!({ "path": "a/../b.txt" }));
    let received = result["content"][0]["text"].as_str().unwrap();
    assert!(received.contains(&format!("{root}/b.txt")), "{received}");
    let refused = client.call("fix__received", &json!({ "path": "../../etc/passwd" }));
    assert_eq!(refused.pointer("/_meta/toolgate~1error/code").unwrap(), "adapter_refused");
    let nested = client.call("fix__received", &json!({ "edits": [{ "path": "/etc/passwd" }] }));
    assert_eq!(nested.pointer("/_meta/toolgate~1error/code").unwrap(), "adapter_refused");
    assert!(!sandbox.read("ledger").contains("passwd"));
    let denied = sandbox.audit().into_iter().find(|row| row["details"]["event"] == "mcp_denied").unwrap();
    assert_eq!(denied["details"]["by"], "toolgate/filesystem", "{denied}");
}

#[test]
fn the_ninth_open_ask_of_a_caller_is_refused_and_an_open_one_is_met_again() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let mut code = |number: u32| {
        let result = client.call("fix__echo", &json!({ "message": number.to_string() }));
        result.pointer("/_meta/toolgate~1error/code").unwrap().as_str().unwrap().to_owned()
    };
    for number in 0..8 {
        assert_eq!(code(number), "approval_required");
    }
    assert_eq!(code(8), "too_many_asks");
    assert_eq!(code(0), "approval_required", "the same call is the same ask");
    let rows = sandbox.audit();
    let with = |event: &str| rows.iter().filter(|row| row["details"]["event"] == event).collect::<Vec<_>>();
    assert_eq!(with("approval.request").len(), 8);
    let refused = with("mcp_denied");
    assert_eq!((refused.len(), &refused[0]["details"]["rule"]), (1, &json!("too_many_asks")), "{refused:?}");
}
