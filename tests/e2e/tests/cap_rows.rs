//! Rows about labels and scopes: what a persona has, sees and may do.

use serde_json::{Value, json};
use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;
use crate::servers::{alive, wait_until_gone};

fn code(reply: &Value) -> &str {
    reply.pointer("/result/_meta/toolgate~1error/code").and_then(Value::as_str).unwrap_or("none")
}

fn call(client: &mut Stdio, tool: &str) -> Value {
    client.request("tools/call", &json!({ "name": tool, "arguments": { "message": "hi" } }))
}

/// A persona with labels, at a server that writes down what reaches it.
fn labelled(capabilities: &str) -> Sandbox {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox
        .configure_fixture(&["--full", "--ledger", &ledger], &format!("    capabilities: {capabilities}\n"));
    sandbox
}

fn client(sandbox: &Sandbox) -> Stdio {
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client
}

#[test]
fn cap_001_cap_002_cap_007_without_a_label_nothing_is_listed_and_nothing_runs() {
    let sandbox = labelled("{ allow: [] }");
    let mut client = client(&sandbox);
    assert_eq!(client.tool_names(), [""; 0]);
    assert_eq!(code(&call(&mut client, "fix__echo")), "denied");
    assert!(!sandbox.read("ledger").contains("tools/call"));
}

#[test]
fn cap_003_cap_004_both_lists_are_written_in_one_syntax_and_either_spelling() {
    for spelling in ["require_approval", "requireApproval"] {
        let sandbox =
            labelled(&format!("{{ allow: [\"mcp.call:fix/echo\"], {spelling}: [\"mcp.call:fix/big\"] }}"));
        let mut client = client(&sandbox);
        assert_eq!(code(&call(&mut client, "fix__echo")), "none");
        assert_eq!(code(&call(&mut client, "fix__big")), "approval_required");
    }
    for list in ["allow", "require_approval"] {
        let sandbox = labelled(&format!("{{ {list}: [\"mcp.call:f*x\"] }}"));
        let told = sandbox.run(&["config", "check"]).exits(2);
        assert!(told.stderr.contains(&format!("capabilities.{list}[0]")), "{told:?}");
    }
}

#[test]
fn cap_008_a_grant_that_is_taken_back_between_list_and_call_opens_nothing() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    sandbox.run(&["mcp", "tools", "fix"]).exits(0);
    sandbox.run(&["mcp", "allow", "fix/echo"]).exits(0);
    let mut client = client(&sandbox);
    assert!(client.tool_names().contains(&"fix__echo".to_owned()));
    assert_eq!(code(&call(&mut client, "fix__echo")), "none");
    sandbox.run(&["mcp", "deny", "fix/echo"]).exits(0);
    let until = std::time::Instant::now() + toolgate_e2e::PATIENCE;
    while code(&call(&mut client, "fix__echo")) != "denied" {
        assert!(std::time::Instant::now() < until, "the running gateway does not follow");
    }
}

#[test]
fn cap_022_what_is_read_and_rendered_passes_the_same_filter_as_what_is_called() {
    let sandbox = labelled("{ allow: [\"mcp.call:fix/echo\"] }");
    let mut client = client(&sandbox);
    let requests = [
        ("resources/read", json!({ "uri": "fix://static" })),
        ("prompts/get", json!({ "name": "fix__greet", "arguments": {} })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "fix__greet" }, "argument": { "name": "who", "value": "" } }),
        ),
    ];
    for (method, params) in requests {
        let reply = client.request(method, &params);
        assert!(
            reply["error"]["message"].as_str().unwrap_or_default().contains("capability"),
            "{method}: {reply}"
        );
        assert!(!sandbox.read("ledger").contains(&format!("\"{method}\"")), "{method}");
    }
    for (method, member) in [("prompts/list", "prompts"), ("resources/list", "resources")] {
        let reply = client.request(method, &json!({}));
        assert_eq!(reply["result"][member], json!([]), "{reply}");
    }
}

#[test]
fn cap_024_trb_007_the_name_of_a_server_is_the_scope_and_a_denial_names_both() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  default:\n    servers: [my-notes.v2, other]\n    capabilities: {{ allow: [\"mcp.call:my-notes.v2\"] }}\n",
        sandbox.fixture_entry("my-notes.v2", &[]),
        sandbox.fixture_entry("other", &[]),
    ));
    sandbox.run(&["mcp", "call", "my-notes.v2.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    let denied = sandbox.run(&["mcp", "call", "other.echo", "--json", r#"{"message":"hi"}"#]).exits(3);
    assert!(denied.stderr.contains("`other`") && denied.stderr.contains("mcp.call:other/echo"), "{denied:?}");
}

#[test]
fn scp_004_a_server_is_there_in_every_kind_of_run_of_its_persona_and_in_none_of_another() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n{}personas:\n  coder: {{ servers: [forge] }}\n  other: {{}}\n",
        sandbox.fixture_entry("forge", &[])
    ));
    for lane in ["main", "background_job", "automation"] {
        for (persona, sees) in [("coder", true), ("other", false)] {
            let mut client = sandbox.serve_stdio(&["--persona", persona, "--lane", lane]);
            client.initialize();
            let names = client.tool_names();
            assert_eq!(
                names.iter().any(|name| name.starts_with("forge__")),
                sees,
                "{persona} {lane}: {names:?}"
            );
        }
    }
}

#[test]
fn scp_008_a_server_starts_with_the_agent_of_its_persona_and_ends_with_it() {
    let sandbox = sandbox();
    let (pid, ledger) =
        (sandbox.path("pid").display().to_string(), sandbox.path("ledger").display().to_string());
    sandbox.configure_fixture(&["--grandchild", &pid, "--ledger", &ledger], "serve: { idle_exit: 200ms }\n");
    assert_eq!(sandbox.read("ledger"), "");
    let mut client = client(&sandbox);
    client.tool_names();
    assert!(sandbox.read("ledger").contains("\"initialize\""));
    let written = sandbox.read("pid");
    let pids: Vec<&str> = written.split_whitespace().collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| alive(pid)), "{written}");
    client.close();
    wait_until_gone(&pids);
}

#[test]
fn scp_009_no_registry_of_servers_is_written_beside_the_configuration() {
    let sandbox = labelled("{ allow: [\"mcp.call:fix\"] }");
    let mut client = client(&sandbox);
    call(&mut client, "fix__echo");
    client.close();
    let mut open = vec![sandbox.dir().to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(!name.contains("mcporter") && name != "mcp.json", "{}", path.display());
            let text = std::fs::read(&path).unwrap_or_default();
            let holds = text.windows(12).any(|window| window == b"\"mcpServers\"");
            assert!(!holds, "{} is a generated registry", path.display());
        }
    }
}

#[test]
fn scp_010_the_catalog_of_a_skills_server_reaches_no_lane_that_cannot_read_the_skill() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n{}skills:\n  nightly: {{ servers: [job], runtime: background_job }}\npersonas:\n  default: {{ skills: [nightly] }}\n",
        sandbox.fixture_entry("job", &[])
    ));
    let mut main = client(&sandbox);
    for (method, member) in
        [("tools/list", "tools"), ("prompts/list", "prompts"), ("resources/list", "resources")]
    {
        assert_eq!(main.request(method, &json!({}))["result"][member], json!([]), "{method}");
    }
    let one = sandbox.run(&["mcp", "tools", "job", "--lane", "background_job", "--json"]).exits(0);
    assert!(one.stdout.contains("job__echo"), "{one:?}");
}

#[test]
fn scp_024_scp_025_tools_of_all_servers_are_one_list_under_server_and_tool() {
    let sandbox = sandbox();
    let tools = |name: &str| {
        sandbox.write(
            &format!("{name}.json"),
            format!(r#"[{{"name":"{name}_it","inputSchema":{{"type":"object"}}}}]"#),
        )
    };
    let (create, search) = (tools("create"), tools("search"));
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  default:\n    servers: [github, web]\n    capabilities: {{ allow: [\"mcp.call:*\"] }}\n",
        sandbox.fixture_entry("github", &["--tools", &create]),
        sandbox.fixture_entry("web", &["--tools", &search]),
    ));
    let mut client = client(&sandbox);
    assert_eq!(client.tool_names(), ["github__create_it", "web__search_it"]);
}
