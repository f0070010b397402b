//! How a client comes from the servers to one tool and its result, and the same on the command line.

use serde_json::{Value, json};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

/// Two tools; the schema has what a careless hand would change.
const TOOLS: &str = r##"[
  {"name":"read_text_file","description":"Reads a file.","inputSchema":{"type":"object","required":["path"],"properties":{"path":{"type":"string","x-later":1.50},"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"integer"}},"additionalProperties":false,"x-big":123456789012345678901234567890}},
  {"name":"write","description":"Writes.","inputSchema":{"type":"object"}}
]"##;

#[test]
fn dsp_001_dsp_002_dsp_003_a_client_knows_no_server_but_its_names_and_each_has_description_and_schema() {
    for era in ["legacy", "modern"] {
        let sandbox = sandbox();
        let tools = sandbox.write("tools.json", TOOLS.replace('\n', ""));
        sandbox.configure(&format!(
            "servers:\n{}{}personas:\n  default:\n    servers: [fix, files]\n    capabilities:\n      allow: [\"mcp.call:*\"]\n",
            sandbox.fixture_entry("fix", &["--era", era]),
            sandbox.fixture_entry("files", &["--era", era, "--tools", &tools]),
        ));
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        client.send(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
        let listed = client.reply_to("\"list\"");
        let whole: Value = serde_json::from_str(&listed).unwrap();
        let all = whole["result"]["tools"].as_array().unwrap();
        let tool = all.iter().find(|tool| tool["name"] == "files__read_text_file").unwrap();
        assert_eq!(tool["description"], "Reads a file.", "{era}");
        // DSP-011: the schema is the server's own text, for every client.
        let schema = TOOLS.split_once("\"inputSchema\":").unwrap().1.split_once("},\n").unwrap().0;
        assert!(listed.contains(schema), "{era}: {listed}");
        let echoed = client.call("fix__echo", &json!({ "message": "hi" }));
        assert_eq!(echoed["content"][0]["text"], "hi", "{era}: {echoed}");
    }
}

#[test]
fn dsp_004_dsp_008_the_servers_of_file_and_command_line_are_one_list_and_a_new_one_is_configuration_alone() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    let fixture = sandbox.fixture().display().to_string();
    sandbox.run(&["mcp", "add", "late", "--", &fixture]).exits(0);
    let listed = sandbox.run(&["mcp", "list", "--json"]).exits(0).json();
    let names: Vec<&String> = listed.as_object().unwrap().keys().collect();
    assert_eq!(names, ["fix", "late"]);
    let tools = sandbox.run(&["mcp", "tools", "--json"]).exits(0).stdout;
    assert!(tools.contains("fix__echo") && tools.contains("late__echo"), "{tools}");
}

#[test]
fn dsp_005_dsp_019_an_agent_lists_and_calls_with_nothing_but_an_entry_and_one_word_of_its_person() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "approvals: { hold: 20s }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(r#"{"elicitation":{}}"#);
    assert!(client.tool_names().contains(&"fix__echo".to_owned()));
    client.send(
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"fix__echo","arguments":{"message":"once"}}}"#,
    );
    let question: Value = loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"],
        "result": { "action": "accept", "content": { "decision": "allow once" } } });
    client.send(&answer.to_string());
    let reply: Value = serde_json::from_str(&client.reply_to("7")).unwrap();
    assert_eq!(reply["result"]["content"][0]["text"], "once", "{question} {reply}");
}

#[test]
fn dsp_006_dsp_007_server_tool_and_arguments_are_all_that_a_call_names_whatever_the_transport() {
    let sandbox = sandbox();
    let (url, _guard) = crate::http::upstream(&sandbox, &[]);
    let (old, _old_guard) = crate::http::upstream(&sandbox, &["--old-sse"]);
    sandbox.configure(&format!(
        "servers:\n{}  web: {{ url: {url:?} }}\n  old: {{ url: {:?}, transport: sse }}\npersonas:\n  default:\n    servers: [fix, web, old]\n    capabilities:\n      allow: [\"mcp.call:*\"]\n",
        sandbox.fixture_entry("fix", &[]),
        old.replace("/mcp/?k=a%2Fb", "/sse"),
    ));
    for server in ["fix", "web", "old"] {
        let tool = format!("{server}.echo");
        let run = sandbox.run(&["mcp", "call", &tool, "--json", r#"{"message":"hi"}"#]).exits(0);
        assert_eq!(run.stdout.trim(), "hi", "{server}: {run:?}");
    }
}

#[test]
fn dsp_010_every_lane_sees_the_same_names_descriptions_and_schemas() {
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", TOOLS.replace('\n', ""));
    sandbox.configure_fixture(&["--tools", &tools], ALLOW);
    let listed = |lane: &str| {
        let mut client = sandbox.serve_stdio(&["--lane", lane]);
        client.initialize();
        client.send(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
        client.reply_to("\"list\"")
    };
    let main = listed("main");
    assert!(main.contains("fix__read_text_file"), "{main}");
    assert_eq!(main, listed("background_job"));
    assert_eq!(main, listed("automation"));
}

#[test]
fn dsp_013_dsp_020_one_selector_gives_the_schema_of_one_tool_and_no_other_server_is_asked() {
    let sandbox = sandbox();
    let many: Vec<Value> = (0..1_200)
        .map(|number| json!({ "name": format!("t{number:04}"), "inputSchema": { "type": "object", "title": number } }))
        .collect();
    let tools = sandbox.write("tools.json", json!(many).to_string());
    let ledger = sandbox.path("other-ledger").display().to_string();
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  default:\n    servers: [fix, other]\n    capabilities:\n      allow: [\"mcp.call:*\"]\n",
        sandbox.fixture_entry("fix", &["--tools", &tools]),
        sandbox.fixture_entry("other", &["--ledger", &ledger]),
    ));
    let run = |args: &[&str]| sandbox.run(&[&["mcp", "list"], args].concat());
    let schema = run(&["fix.t1199", "--schema", "--json", "--timeout", "60000"]).exits(0).json();
    assert_eq!(schema, json!({ "type": "object", "title": 1_199 }), "far behind the first page");
    assert!(!sandbox.path("other-ledger").exists(), "the other server was not started");
    let none = run(&["fix.nothing", "--schema", "--json"]).exits(1);
    assert!(none.stdout.is_empty() && none.stderr.contains("fix.nothing"), "{none:?}");
}

#[test]
fn dsp_014_dsp_015_dsp_017_arguments_come_over_standard_input_and_standard_output_is_json_alone() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let message = "\"; rm -rf ~; $(id) `id` \\ é\u{1F600}";
    let arguments = json!({ "message": message }).to_string();
    let call = |tool: &str, input: &str| {
        sandbox.run_with(
            &["mcp", "call", tool, "--json", "-", "--output", "json", "--timeout", "360000"],
            input,
            &[],
        )
    };
    let answer = call("fix.echo", &arguments).exits(0).json();
    assert_eq!(answer["content"][0]["text"], message, "no shell reads it");
    let unknown = call("fix.nothing", &arguments).exits(1);
    assert!(unknown.json()["error"]["code"].is_i64(), "{unknown:?}");
    for broken in ["{", "[1]", r#"{"a":1,"a":2}"#] {
        let refused = call("fix.echo", broken).exits(2);
        assert!(refused.stdout.is_empty(), "{refused:?}");
    }
    sandbox.configure_fixture(&[], "    capabilities:\n      allow: [\"mcp.call:fix/slow\"]\n");
    let denied = call("fix.echo", &arguments).exits(3);
    assert_eq!(denied.json()["_meta"]["toolgate/error"]["code"], "denied", "{denied:?}");
}

#[test]
fn dsp_016_the_timeout_of_the_command_line_counts_for_listing_and_for_calling() {
    let sandbox = sandbox();
    sandbox.configure(
        "servers:\n  mute: { command: sh, args: [\"-c\", \"cat > /dev/null\"] }\npersonas:\n  default:\n    servers: [mute]\n    capabilities:\n      allow: [\"mcp.call:*\"]\n",
    );
    let begun = std::time::Instant::now();
    let listed = sandbox.run(&["mcp", "list", "mute.any", "--schema", "--timeout", "300"]).exits(1);
    assert!(listed.stderr.contains("300 ms"), "{listed:?}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());

    let sandbox = crate::sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let arguments = r#"{"ms":30000}"#;
    let slow = sandbox.run(&["mcp", "call", "fix.slow", "--json", arguments, "--timeout", "300"]).exits(1);
    assert!(slow.stderr.contains("0.3 s"), "{slow:?}");
}
