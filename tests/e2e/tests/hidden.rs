//! Text that a person does not see, on every surface that a server can write to: what reaches the model,
//! the client and the operator's terminal, and what the log says about it (SE-01, SE-03, SE-14).

use serde_json::{Value, json};
use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";
const HIDES: &str = r#"[{"name":"hides","inputSchema":{"type":"object"}}]"#;

/// A server with these options that a policy in this mode looks at.
fn server(options: &[&str], entry: &str, mode: Option<&str>) -> Sandbox {
    let sandbox = sandbox();
    configure(&sandbox, options, entry, mode);
    sandbox
}

fn configure(sandbox: &Sandbox, options: &[&str], entry: &str, mode: Option<&str>) {
    let policy = mode.map_or(String::new(), |mode| {
        format!("plugins:\n  load:\n    - {{ plugin: toolgate/hidden-text, settings: {{ mode: {mode} }} }}\n")
    });
    sandbox.configure(&format!(
        "servers:\n{}{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}{policy}",
        sandbox.fixture_entry("fix", options)
    ));
}

/// A server with the one tool that hides something where it is told to.
fn hiding(mode: Option<&str>) -> Sandbox {
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", HIDES);
    configure(&sandbox, &["--full", "--tools", &tools], "    logging: forward\n", mode);
    sandbox
}

/// Whether a text holds what a person does not see, or what a terminal obeys.
fn hides(text: &str) -> bool {
    text.chars().any(|c| {
        matches!(c, '\u{7}' | '\u{1b}' | '\u{9b}' | '\u{200b}' | '\u{202e}' | '\u{feff}')
            || ('\u{e0000}'..='\u{e007f}').contains(&c)
    })
}

/// The rows about hidden text, of which there has to be one at least.
fn found(sandbox: &Sandbox) -> Vec<Value> {
    let rows = || -> Vec<Value> {
        let is_found = |row: &Value| row["details"]["event"] == "hidden_text_found";
        sandbox.audit().into_iter().filter(is_found).collect()
    };
    let until = std::time::Instant::now() + toolgate_e2e::PATIENCE;
    loop {
        let found = rows();
        if !found.is_empty() || std::time::Instant::now() > until {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// What one call brings: the notifications before its reply, and the reply.
fn call(client: &mut Stdio, place: &str) -> (Vec<Value>, Value) {
    let params =
        json!({ "name": "fix__hides", "arguments": { "in": place }, "_meta": { "progressToken": "t" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params }).to_string());
    let mut said = Vec::new();
    loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message["id"] == 77 {
            return (said, message);
        }
        if message["method"] == "notifications/progress" || message["method"] == "notifications/message" {
            said.push(message["params"].clone());
        }
    }
}

#[test]
fn gate_hidden_error_se_01_a_servers_own_error_hides_nothing_from_the_client_and_keeps_its_code() {
    let sandbox = hiding(None);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let (_, reply) = call(&mut client, "error");
    assert_eq!(reply["error"]["code"], -32050, "{reply}");
    assert_eq!(reply["error"]["message"], "seenend");
    assert_eq!(reply["error"]["data"], json!({ "why": "seenend", "x-own": 1 }));
    let found = found(&sandbox);
    assert_eq!((found.len(), &found[0]["tool"]), (1, &json!("hides")), "{found:?}");
    let findings = found[0]["details"]["findings"].to_string();
    for part in ["/error/message", "/error/data/why", "U+E0068", "U+200B", "U+001B", "U+202E", "\"hi\""] {
        assert!(findings.contains(part), "{part} is missing in {findings}");
    }
}

#[test]
fn se_01_the_mode_says_whether_an_error_is_withheld_stripped_or_shown() {
    let sandbox = hiding(Some("block"));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let (_, reply) = call(&mut client, "error");
    let error = reply.pointer("/result/_meta/toolgate~1error").unwrap();
    assert_eq!((&error["code"], &error["by"]), (&json!("result_denied"), &json!("toolgate/hidden-text")));
    assert!(!hides(&reply.to_string()), "{reply}");
    assert_eq!(found(&sandbox).len(), 1, "what is withheld is in the log");

    let sandbox = hiding(Some("show"));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let (_, reply) = call(&mut client, "error");
    assert!(hides(reply["error"]["message"].as_str().unwrap()), "{reply}");
    assert_eq!(found(&sandbox).len(), 1, "what is shown is in the log too");
}

#[test]
fn gate_hidden_message_se_01_progress_and_log_of_a_call_hide_nothing_and_are_withheld_where_results_are() {
    for (place, text) in [("progress", "/message"), ("log", "/data")] {
        let sandbox = hiding(None);
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        client.request("logging/setLevel", &json!({ "level": "debug" }));
        let (said, reply) = call(&mut client, place);
        assert_eq!(reply["result"]["content"][0]["text"], "done", "{reply}");
        assert_eq!(said.len(), 1, "{place}: {said:?}");
        assert_eq!(said[0].pointer(text).unwrap(), "seenend", "{place}");
        assert_eq!(found(&sandbox).len(), 1, "{place}");

        let sandbox = hiding(Some("block"));
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        client.request("logging/setLevel", &json!({ "level": "debug" }));
        let (said, reply) = call(&mut client, place);
        assert_eq!((said.len(), &reply["result"]["content"][0]["text"]), (0, &json!("done")), "{place}");
        let rows = sandbox.audit();
        let withheld: Vec<_> =
            rows.iter().filter(|row| row["details"]["event"] == "mcp_message_withheld").collect();
        assert_eq!(withheld.len(), 1, "{place}");
        assert_eq!(withheld[0]["details"]["by"], "toolgate/hidden-text");
    }
}

#[test]
fn se_01_resources_prompts_and_completions_hide_nothing() {
    let tag = "a\u{e0068}\u{200b}\u{202e}b";
    let sandbox = server(&["--full", "--tag", tag], "", None);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let requests = [
        ("resources/read", json!({ "uri": "fix://static" }), "/result/contents/0/text"),
        (
            "prompts/get",
            json!({ "name": "fix__greet", "arguments": { "who": "me" } }),
            "/result/messages/0/content/text",
        ),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "fix__greet" }, "argument": { "name": "who", "value": "" } }),
            "/result/completion/values/0",
        ),
    ];
    for (method, params, pointer) in requests {
        let reply = client.request(method, &params);
        let text =
            reply.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{method}: {reply}"));
        assert!(text.starts_with("ab"), "{method}: {text:?}");
        assert!(!hides(&reply.to_string()), "{method}: {reply}");
    }
    assert_eq!(found(&sandbox).len(), 3);
}

#[test]
fn se_01_a_definition_of_any_kind_is_blocked_stripped_or_shown_as_the_mode_says() {
    let hidden = "Reads\u{e0068}\u{200b}.";
    let lists = json!({
        "prompts": [{ "name": "greet", "description": hidden }],
        "resources": [{ "uri": "fix://static", "name": "static", "description": hidden }],
        "resourceTemplates": [{ "uriTemplate": "fix://item/{id}", "name": "item", "description": hidden }],
    });
    let schema = json!([{ "name": "echo", "inputSchema": { "type": "object",
        "properties": { "message": { "type": "string", "enum": [hidden] } } } }]);
    for (mode, shown) in [(None, false), (Some("block"), false), (Some("strip"), true), (Some("show"), true)]
    {
        let sandbox = sandbox();
        let (tools, lists) =
            (sandbox.write("tools.json", schema.to_string()), sandbox.write("lists.json", lists.to_string()));
        configure(&sandbox, &["--full", "--tools", &tools, "--lists", &lists], "", mode);
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        let kinds = [
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ];
        for (method, member) in kinds {
            let reply = client.request(method, &json!({}));
            let listed = reply["result"][member].as_array().unwrap_or_else(|| panic!("{reply}"));
            assert_eq!(listed.len(), usize::from(shown), "{mode:?} {method}: {reply}");
            assert_eq!(hides(&reply.to_string()), mode == Some("show"), "{mode:?} {method}: {reply}");
        }
        let found = found(&sandbox);
        assert_eq!(found.len(), 4, "{mode:?}: the log has each, whatever became of it");
        assert!(found.iter().all(|row| row["details"]["findings"][0]["decoded"] == "h"), "{found:?}");
    }
}

#[test]
fn a_mode_that_is_none_lets_nothing_pass_and_names_the_setting() {
    let sandbox = server(&[], "", Some("blok"));
    let run = sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("mode"), "{run:?}");
}

#[test]
fn gate_look_alike_se_14_a_name_with_letters_that_look_like_others_is_blocked_and_told() {
    let sandbox = sandbox();
    let tools = json!([
        { "name": "read_file", "inputSchema": { "type": "object" } },
        { "name": "r\u{435}ad_file", "inputSchema": { "type": "object" } },
        { "name": "write", "inputSchema": { "type": "object", "properties": { "p\u{430}th": {} } } },
        { "name": "\u{43f}\u{440}\u{43e}\u{447}\u{438}\u{442}\u{430}\u{442}\u{44c}", "inputSchema": { "type": "object" } },
    ]);
    let tools = sandbox.write("tools.json", tools.to_string());
    configure(&sandbox, &["--tools", &tools], "", None);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let names = client.tool_names();
    assert_eq!(names.len(), 2, "a name in a script of its own is none: {names:?}");
    assert!(names.contains(&"fix__read_file".to_owned()), "{names:?}");
    let found = found(&sandbox);
    let findings: Vec<&Value> = found.iter().map(|row| &row["details"]["findings"][0]).collect();
    assert_eq!(findings.len(), 2, "{found:?}");
    assert!(findings.iter().all(|finding| finding["kind"] == "look-alike"), "{findings:?}");
    let decoded: Vec<&Value> = findings.iter().map(|finding| &finding["decoded"]).collect();
    assert!(decoded.contains(&&json!("read_file")) && decoded.contains(&&json!("path")), "{findings:?}");
}

#[test]
fn gate_terminal_se_03_nothing_that_a_server_says_obeys_or_hides_on_the_operators_terminal() {
    let hidden = "ok\u{1b}[2J\u{1b}]0;pwn\u{7}\u{9b}31m\u{202e}\u{200b}\u{e0068}";
    let tools = json!([
        { "name": format!("t{hidden}"), "description": hidden, "inputSchema": { "type": "object" } },
        { "name": "hides", "description": hidden, "inputSchema": { "type": "object" } },
    ]);
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", tools.to_string());
    // The tag stands in the configuration, which takes no such character but by its number.
    let (tag, said) = (hidden.replace('\u{9b}', ""), sandbox.write("instructions", hidden));
    let options = ["--full", "--tools", &tools, "--tag", &tag, "--instructions-file", &said];
    configure(&sandbox, &options, "", Some("show"));
    let commands: &[&[&str]] = &[
        &["-v", "mcp", "tools"],
        &["-v", "mcp", "tools", "--json"],
        &["mcp", "status"],
        &["mcp", "status", "--json"],
        &["mcp", "list"],
        &["mcp", "explain", "fix.hides"],
        &["mcp", "call", "fix.hides", "--json", "{}"],
        &["mcp", "read", "fix", "fix://static"],
        &["mcp", "prompt", "fix.greet", "--json", r#"{"who":"me"}"#],
        &["mcp", "diff", "fix"],
        &["audit", "tail", "-n", "100"],
        &["audit", "tail", "-n", "100", "--json"],
        &["doctor"],
    ];
    for command in commands {
        let run = sandbox.run(command);
        assert!(!hides(&run.stdout) && !hides(&run.stderr), "{command:?}: {run:?}");
    }
    let told = sandbox.run(&["mcp", "tools"]).exits(0);
    assert!(told.stdout.contains("\\u{1b}[2J"), "it stands there as what it is: {told:?}");
}

// SE-14
#[test]
fn gate_written_out_se_14_a_name_that_looks_like_another_is_told_apart_on_the_operators_terminal() {
    let sandbox = sandbox();
    let tools = json!([
        { "name": "read_file", "inputSchema": { "type": "object" } },
        { "name": "r\u{435}ad_file", "description": "\u{43f}\u{440}\u{43e}\u{447}\u{438}\u{442}\u{430}\u{442}\u{44c}", "inputSchema": { "type": "object" } },
    ]);
    let tools = sandbox.write("tools.json", tools.to_string());
    configure(&sandbox, &["--tools", &tools], "", Some("show"));
    let commands: &[&[&str]] = &[
        &["mcp", "tools"],
        &["mcp", "status"],
        &["mcp", "status", "--json"],
        &["mcp", "pin", "fix"],
        &["mcp", "list", "--json"],
        &["audit", "tail", "-n", "100"],
        &["audit", "tail", "-n", "100", "--json"],
        &["logs", "--self"],
    ];
    for command in commands {
        let run = sandbox.run(command);
        assert!(
            !run.stdout.contains("r\u{435}ad") && !run.stderr.contains("r\u{435}ad"),
            "{command:?}: {run:?}"
        );
    }
    let told = sandbox.run(&["mcp", "status"]).exits(0).stdout;
    assert!(told.contains("r\\u{435}ad_file") && told.contains("read_file"), "{told}");
    let words = sandbox.run(&["mcp", "status", "--json"]).exits(0);
    assert!(words.stdout.contains("\u{447}\u{438}\u{442}"), "a word of a language stays: {words:?}");
    assert_eq!(words.json()["servers"][0]["tools"][1]["name"], "r\u{435}ad_file", "and JSON means the same");
    // What is kept keeps its letters.
    let row = sandbox.audit().into_iter().find(|row| row["details"]["event"] == "hidden_text_found").unwrap();
    assert_eq!(row["tool"], "r\u{435}ad_file");
}

#[test]
fn gate_log_se_03_nothing_in_the_log_obeys_or_forges_a_line() {
    let hidden = "x\u{1b}[2J\u{202e}\n2026-01-01T00:00:00Z ERROR forged";
    let tools = json!([{ "name": hidden, "inputSchema": { "type": "object" } }]);
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", tools.to_string());
    configure(&sandbox, &["--tools", &tools], "", None);
    let run = sandbox.run(&["-vv", "mcp", "tools"]).exits(0);
    assert!(run.stderr.contains("\\u{1b}[2J"), "the log names it: {}", run.stderr);
    assert!(!hides(&run.stderr), "{:?}", run.stderr);
    assert!(!run.stderr.lines().any(|line| line.starts_with("2026-01-01")), "{}", run.stderr);
}
