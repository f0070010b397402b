//! One call, from the client to the server and back.

use serde_json::{Value, json};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

#[test]
fn pr_11_ids_come_back_in_type_and_value() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for id in ["\"1\"", "1", "\"init-1\"", "9007199254740993"] {
        client.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"fix__echo","arguments":{{"message":"hi"}}}}}}"#
        ));
        let reply = client.reply_to(id);
        assert!(reply.contains(r#""text":"hi""#), "{reply}");
    }
}

#[test]
fn pr_03_a_tool_arrives_with_every_member_that_nobody_knows() {
    let sandbox = sandbox();
    let definition = r#"{"name":"odd","title":"Odd","description":"d","inputSchema":{"type":"object","x-own":1},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"x-own":1},"icons":[{"src":"https://example.com/i.png"}],"execution":{"taskSupport":"optional"},"_meta":{"a.b/c":1,"n":123456789012345678901234567890},"x-vendor":{"deep":[1.50,null]},"futureField":[1]}"#;
    let tools = sandbox.write("tools.json", format!("[{definition}]"));
    sandbox.configure_fixture(&["--tools", &tools], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.send(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
    let reply = client.reply_to("\"list\"");
    let expected = definition.replace(r#""name":"odd""#, r#""name":"fix__odd""#);
    assert!(reply.contains(&expected), "{reply}\nlacks\n{expected}");
}

#[test]
fn pr_09_a_call_without_arguments_reaches_the_server_with_an_empty_object() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let reply = client.request("tools/call", &json!({ "name": "fix__received" }));
    let received = reply["result"]["content"][0]["text"].as_str().unwrap();
    let params: serde_json::Value = serde_json::from_str(received).unwrap();
    assert_eq!(params["arguments"], json!({}), "{received}");
    assert_eq!(params["name"], "received", "the server reads its own name");
}

#[test]
fn unknown_members_of_a_call_reach_the_server_as_they_are() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.send(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"fix__received","arguments":{"n":123456789012345678901234567890,"f":1.50},"x-own":{"a":[1]},"_meta":{"vendor/k":true}}}"#);
    let reply = client.reply_to("7");
    let value: serde_json::Value = serde_json::from_str(&reply).unwrap();
    let received = value["result"]["content"][0]["text"].as_str().unwrap();
    for part in
        [r#""n":123456789012345678901234567890"#, r#""f":1.50"#, r#""x-own":{"a":[1]}"#, r#""vendor/k":true"#]
    {
        assert!(received.contains(part), "{received} lacks {part}");
    }
}

#[test]
fn pr_16_every_kind_of_content_passes_unchanged() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.send(
        r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"fix__blocks","arguments":{}}}"#,
    );
    let reply = client.reply_to("8");
    for part in [
        r#""size":123456789012345678901234567890"#,
        r#""priority":0.50"#,
        r#""type":"audio""#,
        r#""blob":"AAAA""#,
        r#""futureField":[1,2]"#,
        r#""x-own":1"#,
    ] {
        assert!(reply.contains(part), "{reply} lacks {part}");
    }
}

#[test]
fn pr_24_an_error_result_passes_with_its_structured_content() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let result = client.call("fix__fails", &json!({}));
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"], json!({ "error": 1 }));
    assert!(
        result.pointer("/_meta/toolgate~1error").is_none(),
        "a server's own error passes as it is: {result}"
    );
}

#[test]
fn pr_13_two_clients_with_the_same_id_and_token_get_their_own_replies_and_progress() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut clients = [sandbox.serve_stdio(&[]), sandbox.serve_stdio(&[])];
    for client in &mut clients {
        client.initialize();
    }
    for (client, name) in clients.iter_mut().zip(["A", "B"]) {
        client.send(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"fix__slow","arguments":{{"ms":200,"say":"{name}"}},"_meta":{{"progressToken":"p"}}}}}}"#
        ));
    }
    for (client, name) in clients.iter_mut().zip(["A", "B"]) {
        let mut progress = 0;
        loop {
            let line = client.line();
            if line.contains("notifications/progress") {
                assert!(line.contains(r#""progressToken":"p""#), "{line}");
                progress += 1;
            } else if line.contains(r#""id":1"#) {
                assert!(line.contains(&format!(r#""text":"{name}""#)), "{line}");
                break;
            }
        }
        assert!(progress > 0, "{name} asked for progress");
    }
}

// FR-05
#[test]
fn st_15_a_server_that_dies_fails_the_call_at_once_and_the_call_is_not_sent_again() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let begun = std::time::Instant::now();
    let result = client.call("fix__die", &json!({}));
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("fix") && text.contains('3') && text.contains("last words"), "{text}");
    assert_eq!(result.pointer("/_meta/toolgate~1error/code").unwrap(), "may_have_run");
    let again = client.call("fix__echo", &json!({ "message": "back" }));
    assert_eq!(again["content"][0]["text"], "back", "the server is started again");
    assert_eq!(sandbox.read("ledger").matches(r#""name":"die""#).count(), 1);
}

#[test]
fn gate_masked_end_what_a_server_printed_of_its_environment_before_it_died_stands_nowhere() {
    let sandbox = sandbox();
    sandbox.run_with(&["secret", "set", "TOKEN_OF_FIX"], "sup3r-secret-value", &[]).exits(0);
    sandbox.configure_trusted("die", &[], "    env: { TOKEN: \"${TOKEN_OF_FIX}\" }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let died = client.call("fix__die", &json!({})).to_string();
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0);
    let last = status.json()["servers"][0]["last_error"]["reason"].to_string();
    assert!(last.contains("told before the end: ***"), "{last}");
    let logs = sandbox.run(&["logs", "fix"]).exits(0).stdout;
    let own = sandbox.read("data/log/gateway.log");
    assert!(own.contains("connection ended"), "{own}");
    let human = sandbox.run(&["mcp", "status"]).exits(0).stdout;
    for text in [died, status.stdout, human, logs, own] {
        assert!(!text.contains("sup3r-secret-value"), "{text}");
    }
}

// SEC-006
#[test]
fn gate_masked_cut_no_half_of_a_secret_stays_where_a_line_was_cut_nor_a_short_one_that_stands_alone() {
    let sandbox = sandbox();
    sandbox.run_with(&["secret", "set", "TOKEN_OF_FIX"], "sup3r-secret-value", &[]).exits(0);
    // The value lies across the 8 KiB at which a line of the log is cut.
    let script = format!(
        "head -c 8185 /dev/zero | tr '\\0' x >&2; echo \"$TOKEN after\" >&2; echo \"pin=$DOOR_PIN, port 4711x, debug $DEBUG\" >&2; echo \"banner $TOKEN\"; exec {}",
        sandbox.fixture().display()
    );
    sandbox.configure(&format!(
        "servers:\n  fix:\n    command: sh\n    args: [\"-c\", {}]\n    env: {{ TOKEN: \"${{TOKEN_OF_FIX}}\", DOOR_PIN: \"4711\", DEBUG: \"1\" }}\n    protocol: legacy\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}",
        Value::from(script)
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.call("fix__echo", &json!({ "message": "hi" }));
    let logs = sandbox.run(&["logs", "fix"]).exits(0).stdout;
    assert!(logs.contains("x*** a"), "{logs}");
    assert!(logs.contains("pin=***, port 4711x, debug 1"), "{logs}");
    let own = sandbox.read("data/log/gateway.log");
    assert!(own.contains("banner ***"), "{own}");
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).stdout;
    for text in [logs, own, status] {
        for half in ["sup3r-s", "ecret-value"] {
            assert!(!text.contains(half), "{half}: {text}");
        }
    }
}

#[test]
fn gate_masked_within_what_a_variable_held_is_taken_out_though_it_stood_inside_a_text() {
    let sandbox = sandbox();
    sandbox.run_with(&["secret", "set", "TOKEN_OF_FIX"], "sup3r-secret-value", &[]).exits(0);
    sandbox.configure_trusted("die", &[], "    env: { TOKEN: \"Bearer ${TOKEN_OF_FIX}\" }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let died = client.call("fix__die", &json!({})).to_string();
    let logs = sandbox.run(&["logs", "fix"]).exits(0).stdout;
    assert!(logs.contains("and its last word: ***"), "{logs}");
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).stdout;
    for text in [died, status, logs, sandbox.read("data/log/gateway.log")] {
        assert!(!text.contains("sup3r-secret-value"), "{text}");
    }
}

#[test]
fn st_08_a_large_result_arrives_byte_for_byte() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let result = client.call("fix__big", &json!({ "bytes": 300 * 1024 }));
    assert_eq!(result["content"][0]["text"].as_str().unwrap().len(), 300 * 1024);
}

#[test]
fn st_11_a_reply_that_is_no_utf_8_fails_alone() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let broken = client.call("fix__broken", &json!({}));
    assert_eq!(broken["isError"], true, "{broken}");
    let clean = client.call("fix__echo", &json!({ "message": "still here" }));
    assert_eq!(clean["content"][0]["text"], "still here");
}

#[test]
fn mcp_call_prints_the_answer_and_reads_arguments_from_standard_input() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let run = sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    assert_eq!(run.stdout, "hi\n");
    let run = sandbox
        .run_with(&["mcp", "call", "fix.echo", "--json", "-", "--output", "json"], r#"{"message":"in"}"#, &[])
        .exits(0);
    assert_eq!(run.json()["content"][0]["text"], "in");
    sandbox.run(&["mcp", "call", "fix.echo", "--json", "[1]"]).exits(2);
    sandbox.run(&["mcp", "call", "fix.nothing", "--json", "{}"]).exits(1);
}

#[test]
fn what_continues_an_input_round_is_refused_and_a_wish_for_a_task_is_not_sent() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let params = json!({ "name": "fix__received", "arguments": {}, "requestState": { "ttl": 1 } });
    let reply = client.request("tools/call", &params);
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    assert!(!sandbox.read("ledger").contains("tools/call"));
    // Whether there is a task is the server's choice, and nobody judged the wish.
    let params = json!({ "name": "fix__received", "arguments": {}, "task": { "ttl": 1 } });
    let reply = client.request("tools/call", &params);
    assert!(reply["result"]["content"][0]["text"].is_string(), "{reply}");
    assert!(!sandbox.read("ledger").contains("ttl"));
    // Answers to nothing that is asked are ignored, and no server sees them.
    let params = json!({ "name": "fix__received", "arguments": {}, "inputResponses": { "x": 1 } });
    let reply = client.request("tools/call", &params);
    assert!(reply["result"]["content"][0]["text"].is_string(), "{reply}");
    assert!(!sandbox.read("ledger").contains("inputResponses"));
}

#[test]
fn a_result_that_is_none_and_a_servers_question_are_the_servers_fault() {
    let sandbox = sandbox();
    let tools = sandbox.write(
        "tools.json",
        r#"[{"name":"bare","inputSchema":{"type":"object"}},{"name":"question","inputSchema":{"type":"object"}}]"#,
    );
    sandbox.configure_fixture(&["--era", "modern", "--tools", &tools], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for tool in ["fix__bare", "fix__question"] {
        let result = client.call(tool, &json!({}));
        assert_eq!(result.pointer("/_meta/toolgate~1error/code").unwrap(), "server_misbehaved", "{result}");
        assert!(!result.to_string().contains("password"), "{result}");
    }
}

#[test]
fn se_12_what_a_dying_server_prints_of_its_secrets_reaches_nobody() {
    let sandbox = sandbox();
    let entry = format!("{}    env: {{ TOKEN: \"${{TOKEN}}\" }}\n", sandbox.fixture_entry("fix", &[]));
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
    let run = sandbox.run_with(&["mcp", "call", "fix.die", "--json", "{}"], "", &[("TOKEN", "s3cret-value")]);
    assert!(run.stderr.contains("told before the end: ***"), "{run:?}");
    assert!(!format!("{run:?}").contains("s3cret-value"));
    assert!(!format!("{:?}", sandbox.audit()).contains("s3cret-value"));
}
