//! Rows about faults that somebody has to understand and mend: where a server's state is told, how it comes
//! back, what is said where a sign-in is missing, and which kinds of sign-in there are.

use std::net::TcpListener;

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Receiver, Sandbox, Stdio};

use crate::{HI, sandbox};

const ALLOW: &str = "    capabilities: { allow: [\"mcp.call:*\"] }\n";

fn client(sandbox: &Sandbox) -> Stdio {
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client
}

/// State and reason of a server as `mcp status --json` has them.
fn status(sandbox: &Sandbox, name: &str) -> (String, String) {
    let told = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    let servers = told["servers"].as_array().unwrap_or_else(|| panic!("{told}"));
    let server = servers.iter().find(|server| server["name"] == name).unwrap_or_else(|| panic!("{told}"));
    let text = |key: &str| server[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("detail"))
}

#[test]
fn trb_001_every_place_that_tells_of_a_server_tells_the_same() {
    let sandbox = sandbox();
    let missing = sandbox.path("nothing-here").display().to_string();
    sandbox.configure(&format!(
        "servers:\n{}  broken:\n    command: {missing}\npersonas:\n  default:\n    servers: [fix, broken]\n{ALLOW}",
        sandbox.fixture_entry("fix", &[]),
    ));
    // Alone, by a gateway that runs, as a table, to the client of an agent.
    let alone = status(&sandbox, "broken");
    assert_eq!(alone.0, "failed");
    assert!(alone.1.contains("nothing-here"), "{alone:?}");
    assert_eq!(status(&sandbox, "fix").0, "connected");
    let mut client = client(&sandbox);
    assert!(sandbox.gateway().is_some());
    let running = status(&sandbox, "broken");
    assert_eq!(running.0, "failed", "{running:?}");
    assert!(running.1.contains("nothing-here"), "{running:?}");
    assert_eq!(status(&sandbox, "fix").0, "connected");
    let table = sandbox.run(&["mcp", "status"]).exits(0).stdout;
    let of = |name: &str| table.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{table}"));
    assert!(of("broken").contains("failed") && of("fix").contains("connected"), "{table}");
    assert!(table.contains("nothing-here"), "{table}");
    assert!(client.tool_names().iter().all(|name| name.starts_with("fix__")));
    let asked = sandbox.run(&["mcp", "call", "broken.echo", "--json", HI]);
    assert_ne!(asked.code, 0);
    assert!(asked.stderr.contains("nothing-here"), "whoever calls is told the same: {asked:?}");
}

#[test]
fn trb_002_why_a_server_did_not_start_is_in_the_log_and_a_mended_file_connects_it() {
    let sandbox = sandbox();
    let missing = sandbox.path("nothing-here").display().to_string();
    let with = |entry: &str| {
        sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
    };
    with(&format!("  fix:\n    command: {missing}\n"));
    let mut first = client(&sandbox);
    assert_eq!(first.tool_names(), [""; 0]);
    let gateway = sandbox.gateway();
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let log = sandbox.run(&["logs", "--self"]).exits(0).stdout;
        if log.lines().any(|line| line.contains("fix") && line.contains("nothing-here")) {
            break;
        }
        assert!(std::time::Instant::now() < until, "the reason is not in the log: {log}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // Saved, and the next client has it: the gateway goes on.
    with(&sandbox.fixture_entry("fix", &[]));
    let mut next = client(&sandbox);
    assert_eq!(next.call("fix__echo", &json!({ "message": "hi" }))["content"][0]["text"], "hi");
    assert_eq!(sandbox.gateway(), gateway, "without a start of anything else");
    assert_eq!(status(&sandbox, "fix").0, "connected");
}

/// A server that wants a sign-in, and says where it would begin.
fn wants_sign_in(metadata: &str) -> Receiver {
    let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"all\"");
    Receiver::start(move |_| {
        format!(
            "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: {challenge}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
    })
}

fn remote(port: u16) -> Sandbox {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n  tracker:\n    url: http://127.0.0.1:{port}/mcp\n    headers: {{ Authorization: \"Bearer ${{TRACKER_TOKEN}}\" }}\npersonas:\n  default:\n    servers: [tracker]\n{ALLOW}"
    ));
    sandbox.run_with(&["secret", "set", "TRACKER_TOKEN"], "old-token-0123456789\n", &[]).exits(0);
    sandbox
}

#[test]
fn trb_003_trb_009_a_missing_sign_in_fails_at_once_and_says_at_which_server_to_renew_what() {
    let server = wants_sign_in("http://127.0.0.1:9/metadata");
    let sandbox = remote(server.port);
    // Nobody is there who could sign in: no terminal, no browser, and nothing waits for one.
    let begun = std::time::Instant::now();
    let command = sandbox.command(&["mcp", "call", "tracker.list", "--json", "{}"]);
    let refused = sandbox.run_detached(&command, "");
    assert!(begun.elapsed() < PATIENCE, "it waited for somebody");
    assert_eq!(refused.code, 4, "{refused:?}");
    for part in ["`tracker`", "HTTP 401", "sign in", "headers of its entry"] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    let (state, detail) = status(&sandbox, "tracker");
    assert_eq!(state, "failed");
    assert!(detail.contains("HTTP 401") && detail.contains("headers of its entry"), "{detail}");
    assert!(!format!("{refused:?}{detail}").contains("old-token"), "the old token is not repeated");
}

#[test]
fn trb_012_a_kind_of_sign_in_that_is_not_supported_stops_the_start_with_its_place() {
    let sandbox = sandbox();
    sandbox.configure(
        "servers:\n  tracker:\n    url: https://tracker.example/mcp\n    auth: { kind: kerberos }\npersonas:\n  default:\n    servers: [tracker]\n",
    );
    for verb in [&["serve", "--stdio", "--no-share"][..], &["mcp", "tools"], &["config", "check"]] {
        let told = sandbox.run(verb).exits(2);
        assert!(told.stderr.contains("servers.tracker.auth"), "{told:?}");
        assert!(told.stderr.contains("toolgate.yaml:"), "with its line: {told:?}");
    }
}

#[test]
fn sec_015_adding_a_server_writes_the_secrets_of_its_own_entry_and_changes_none_that_is_there() {
    let sandbox = sandbox();
    sandbox.configure("personas:\n  default: {}\n");
    let fixture = sandbox.fixture().display().to_string();
    let add = |name: &str, value: &str| {
        let given = format!("TRACKER_TOKEN={value}");
        sandbox.run(&["mcp", "add", name, "-e", &given, "-e", "LEVEL=3", "--", &fixture])
    };
    add("one", "ghp_0123456789abcdefghijABCDEFGHIJ012345").exits(0);
    let names = || sandbox.run(&["secret", "list", "--json"]).exits(0).json()["secrets"].clone();
    assert_eq!(names(), json!(["TRACKER_TOKEN"]), "what is no secret of the entry is written nowhere");
    let before = sandbox.read("config/toolgate/secrets.env");
    // Somebody adds a server, and with it a token of their own for every other server that uses the name.
    let refused = add("two", "ghp_zzzzzzzzzzzzzzzzzzzzABCDEFGHIJ012345").exits(2);
    for part in ["TRACKER_TOKEN", "another value", "toolgate secret set TRACKER_TOKEN"] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    assert!(!format!("{refused:?}").contains("ghp_zzzz"), "{refused:?}");
    assert_eq!(sandbox.read("config/toolgate/secrets.env"), before);
    assert!(!sandbox.run(&["mcp", "list", "--json"]).stdout.contains("two"), "and no server is there");
    // The same value is the same secret, and the name alone uses the one that is there.
    add("three", "ghp_0123456789abcdefghijABCDEFGHIJ012345").exits(0);
    sandbox.run(&["mcp", "add", "four", "-e", "TRACKER_TOKEN", "--", &fixture]).exits(0);
    assert_eq!(sandbox.read("config/toolgate/secrets.env"), before);
}

#[test]
fn se_07_where_a_server_says_that_its_sign_in_begins_nothing_is_asked_on_another_machine() {
    // Another host of this machine stands for everything beside the server's own.
    let elsewhere = TcpListener::bind("127.0.0.2:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let place = elsewhere.local_addr().unwrap();
    for metadata in [
        format!("http://{place}/.well-known/oauth-protected-resource"),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "http://[::1]:9/".to_owned(),
    ] {
        let server = wants_sign_in(&metadata);
        let sandbox = remote(server.port);
        let begun = std::time::Instant::now();
        sandbox.run(&["mcp", "call", "tracker.list", "--json", "{}"]).exits(4);
        assert!(begun.elapsed() < PATIENCE);
        assert!(!server.requests().is_empty(), "the server itself was asked");
        let met = elsewhere.accept();
        assert!(met.is_err(), "somebody was asked at {place}: {met:?}");
    }
}

#[test]
fn ft_24_no_switch_shows_secrets() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    sandbox.run(&["config", "show", "--show-secrets"]).exits(2);
    sandbox.run(&["secret", "list", "--show"]).exits(2);
}

#[test]
fn ft_13_each_spelling_of_a_rate_limit_is_read() {
    for key in ["requests_per_minute", "requestsPerMinute", "callsPerMinute"] {
        let sandbox = sandbox();
        let entry = format!("{}    rateLimit: {{ {key}: 60 }}\n", sandbox.fixture_entry("fix", &[]));
        sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
        let shown = sandbox.run(&["config", "show", "--json"]).exits(0).json();
        let limit: &Value = &shown["servers"]["fix"]["rate_limit"]["requests_per_minute"];
        assert_eq!(limit, &json!(60), "{shown}");
    }
}
