//! Rows about secrets, trust and faults that the operator has to understand.

use std::time::Instant;

use serde_json::{Value, json};

use crate::sandbox;

const ALLOW: &str = "    capabilities: { allow: [\"mcp.call:*\"] }\n";

fn code(reply: &Value) -> &str {
    reply.pointer("/result/_meta/toolgate~1error/code").and_then(Value::as_str).unwrap_or("none")
}

/// Every file below the sandbox that holds these bytes.
fn holding(sandbox: &toolgate_e2e::Sandbox, bytes: &str) -> Vec<String> {
    let mut open = vec![sandbox.dir().to_owned()];
    let mut found = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if std::fs::read(&path)
                .is_ok_and(|text| text.windows(bytes.len()).any(|part| part == bytes.as_bytes()))
            {
                found.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found
}

#[test]
fn sec_001_sec_005_a_credential_is_in_no_configuration_and_showing_one_writes_nothing() {
    let sandbox = sandbox();
    let entry = format!("{}    env: {{ A_TOKEN: \"${{A_TOKEN}}\" }}\n", sandbox.fixture_entry("fix", &[]));
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
    let variables = [("A_TOKEN", "value-0123456789")];
    for command in
        [&["config", "show"][..], &["config", "show", "--json"], &["config", "check"], &["mcp", "get", "fix"]]
    {
        let run = sandbox.run_with(command, "", &variables).exits(0);
        assert!(!format!("{run:?}").contains("value-0123456789"), "{command:?}: {run:?}");
    }
    let shown = sandbox.run_with(&["config", "show", "--json"], "", &variables).json();
    assert_eq!(shown["servers"]["fix"]["env"]["A_TOKEN"], "***");
    sandbox.run_with(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#], "", &variables).exits(0);
    assert_eq!(holding(&sandbox, "value-0123456789"), [""; 0]);
}

#[test]
fn sec_007_of_a_skills_bearer_token_only_the_name_of_its_variable_is_written_anywhere() {
    let sandbox = sandbox();
    let body =
        json!({ "url": "http://127.0.0.1:9/mcp", "headers": { "Authorization": "Bearer ${TRACKER_TOKEN}" } });
    sandbox.write("config/toolgate/skills/triage/mcp/tracker.json", body.to_string());
    sandbox.configure(
        "skills:\n  triage: { directory: skills/triage }\npersonas:\n  default: { skills: [triage] }\n",
    );
    let variables = [("TRACKER_TOKEN", "value-0123456789")];
    for command in [&["config", "show"][..], &["config", "env"], &["-v", "mcp", "status"], &["doctor"]] {
        let run = sandbox.run_with(command, "", &variables);
        assert!(!format!("{run:?}").contains("value-0123"), "{command:?}: {run:?}");
    }
    let env = sandbox.run_with(&["config", "env", "--json"], "", &variables).exits(0).json();
    assert_eq!(env["variables"][0]["name"], "TRACKER_TOKEN");
    assert_eq!(holding(&sandbox, "value-0123"), [""; 0]);
}

#[test]
fn sec_008_sec_009_what_an_install_is_given_goes_to_the_secrets_file_and_nowhere_else() {
    let sandbox = sandbox();
    sandbox.configure("");
    let fixture = sandbox.fixture().display().to_string();
    sandbox.run(&["mcp", "add", "fix", "-e", "API_TOKEN=value-0123456789", "--", &fixture]).exits(0);
    let entry = std::fs::read_to_string(sandbox.data().join("servers.d/fix.yaml")).unwrap();
    assert!(entry.contains("${API_TOKEN}"), "{entry}");
    assert_eq!(holding(&sandbox, "value-0123456789"), ["secrets.env"]);
}

#[test]
fn sec_011_variables_are_expanded_at_the_start_and_not_at_each_call() {
    let sandbox = sandbox();
    let entry = format!("{}    env: {{ A_VALUE: \"${{A_VALUE}}\" }}\n", sandbox.fixture_entry("fix", &[]));
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
    sandbox.run_with(&["secret", "set", "A_VALUE"], "first", &[]).exits(0);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    sandbox.run_with(&["secret", "set", "A_VALUE"], "second", &[]).exits(0);
    let told = |result: &Value| {
        let text = result["content"][0]["text"].as_str().unwrap();
        serde_json::from_str::<Value>(text).unwrap()["A_VALUE"].clone()
    };
    assert_eq!(told(&client.call("fix__environment", &json!({}))), "first");
    let mut next = sandbox.serve_stdio(&[]);
    next.initialize();
    assert_eq!(told(&next.call("fix__environment", &json!({}))), "second");
}

#[test]
fn trb_013_a_missing_variable_is_named_once_with_the_place_that_uses_it() {
    let sandbox = sandbox();
    let entry = format!(
        "{}    env: {{ A: \"${{NOWHERE}}\", B: \"${{NOWHERE}}\" }}\n",
        sandbox.fixture_entry("fix", &[])
    );
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
    let run = sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    let told: Vec<&str> = run.stderr.lines().filter(|line| line.contains("NOWHERE")).collect();
    assert_eq!(told.len(), 1, "{run:?}");
    assert!(told[0].contains("servers.fix.env.A") && told[0].contains("in 1 more"), "{told:?}");
}

#[test]
fn tru_005_the_digest_of_a_server_without_a_pin_of_the_whole_is_logged_ready_to_be_copied() {
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", r#"[{"name":"echo","inputSchema":{"type":"object"}}]"#);
    let with = |trust: &str| {
        let entry = format!("{}{trust}", sandbox.fixture_entry("fix", &["--tools", &tools]));
        sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
    };
    with("");
    let run = sandbox.run(&["-v", "mcp", "tools"]).exits(0);
    let copied = run.stderr.split("pinned_tool_hash: ").nth(1).unwrap_or_else(|| panic!("{run:?}"));
    let copied = format!("pinned_tool_hash: {}", copied.split_whitespace().next().unwrap());
    with(&format!("    trust: {{ {copied} }}\n"));
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    sandbox.write("tools.json", r#"[{"name":"echo","description":"x","inputSchema":{"type":"object"}}]"#);
    let refused = sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]);
    assert_ne!(refused.code, 0, "{refused:?}");
}

#[test]
fn rl_002_the_bucket_is_asked_before_every_tool_of_the_server() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    let entry = format!(
        "{}    rate_limit: {{ requests_per_minute: 1 }}\n    timeouts: {{ call: 1s, max_total: 1s }}\n",
        sandbox.fixture_entry("fix", &["--ledger", &ledger])
    );
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let call = |name: &str| ("tools/call", json!({ "name": name, "arguments": { "message": "hi" } }));
    assert_eq!(code(&client.requests(&[call("fix__echo")])[0]), "none");
    let held = client.requests(&[call("fix__big"), call("fix__blocks"), call("fix__echo")]);
    assert!(held.iter().all(|reply| code(reply) == "rate_limited"), "{held:?}");
    assert_eq!(sandbox.read("ledger").matches("tools/call").count(), 1);
}

#[test]
fn tru_008_what_a_tool_gives_back_is_judged_as_text_of_a_stranger() {
    let sandbox = sandbox();
    let block = "plugins:\n  load:\n    - { plugin: toolgate/hidden-text, settings: { mode: block } }\n";
    sandbox.configure_fixture(&[], &format!("{ALLOW}{block}"));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let result = client.call("fix__hidden", &json!({}));
    let error = result.pointer("/_meta/toolgate~1error").unwrap();
    assert_eq!((&error["code"], &error["by"]), (&json!("result_denied"), &json!("toolgate/hidden-text")));
    let denied = sandbox.audit().into_iter().find(|row| row["details"]["event"] == "mcp_denied").unwrap();
    assert_eq!(denied["details"]["by"], "toolgate/hidden-text");
}

#[test]
fn gw_01_a_server_that_is_down_hides_no_other_is_told_with_its_reason_and_comes_back_by_itself() {
    let sandbox = sandbox();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    sandbox.configure(&format!(
        "servers:\n{}{}  down:\n    url: http://{address}/mcp\n    restarts: {{ first: 200ms, longest: 200ms, starts: 1000 }}\npersonas:\n  default:\n    servers: [one, two, down]\n{ALLOW}",
        sandbox.fixture_entry("one", &[]),
        sandbox.fixture_entry("two", &[]),
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let servers = |client: &mut toolgate_e2e::Stdio| {
        let mut names: Vec<String> =
            client.tool_names().iter().map(|name| name.split("__").next().unwrap().to_owned()).collect();
        names.dedup();
        names
    };
    assert_eq!(servers(&mut client), ["one", "two"]);
    // What the start of the first two changed is told before.
    while client.line_within(std::time::Duration::from_secs(3)).is_some() {}
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    let down = status["servers"].as_array().unwrap().iter().find(|server| server["name"] == "down").unwrap();
    assert_eq!(down["state"], "failed");
    assert!(down["detail"].as_str().is_some_and(|detail| detail.contains("down")), "{down}");

    let mut fixture = std::process::Command::new(sandbox.fixture())
        .args(["--http", &address.to_string()])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Nobody asks for it: the client is told, and lists what is there now.
    while !client.line().contains("notifications/tools/list_changed") {}
    let until = Instant::now() + toolgate_e2e::PATIENCE;
    while !servers(&mut client).contains(&"down".to_owned()) {
        assert!(Instant::now() < until, "it did not come back");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let _ = fixture.kill();
    let _ = fixture.wait();
}
