//! `toolgate logs`: what servers said beside their messages, and what Toolgate said itself.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Sandbox, Stdio};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

/// Two servers that say something on standard error when they start: a word, an escape sequence and the
/// value of a variable of the entry.
fn talking() -> Sandbox {
    let sandbox = sandbox();
    let entry = |name: &str| {
        let script = format!(
            "printf '{name} is up \\033[2J %s\\n' \"$TOKEN\" >&2; exec {}",
            sandbox.fixture().display()
        );
        format!(
            "  {name}:\n    command: sh\n    args: [\"-c\", {script:?}]\n    env: {{ TOKEN: hunter2secret }}\n"
        )
    };
    let servers = format!("{}{}", entry("fix"), entry("other"));
    sandbox
        .configure(&format!("servers:\n{servers}personas:\n  default:\n    servers: [fix, other]\n{ALLOW}"));
    sandbox
}

/// Looks until it is so: a server's lines are written beside its messages.
#[track_caller]
fn until(what: &str, mut look: impl FnMut() -> Option<String>) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn printed(sandbox: &Sandbox, args: &[&str], word: &str) -> String {
    until(word, || Some(sandbox.run(args).exits(0).stdout).filter(|text| text.contains(word)))
}

#[test]
fn se_03_what_a_server_says_on_standard_error_is_printed_escaped_and_without_its_secrets() {
    let sandbox = talking();
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.call("fix__echo", &json!({ "message": "hi" }));
    let told = printed(&sandbox, &["logs", "fix"], "fix is up");
    assert!(told.contains("stderr fix is up \\u{1b}[2J"), "{told}");
    assert!(!told.contains('\u{1b}') && !told.contains("hunter2secret"), "{told:?}");
    assert!(!told.contains("other is up"), "{told}");
    let file = sandbox.read("data/log/servers/fix.log");
    assert!(!file.contains('\u{1b}') && !file.contains("hunter2secret"), "somebody may `cat` it: {file:?}");

    let line = printed(&sandbox, &["logs", "fix", "--json", "-n", "1"], "\"stderr\"");
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["log"], &line["source"]), (&json!("fix"), &json!("stderr")), "{line}");
    // Those of all servers name theirs.
    printed(&sandbox, &["logs", "other"], "other is up");
    let all = sandbox.run(&["logs"]).exits(0).stdout;
    assert!(all.lines().any(|line| line.starts_with("fix: ")), "{all}");
    assert!(all.lines().any(|line| line.starts_with("other: ")), "{all}");
    let unknown = sandbox.run(&["logs", "nobody"]);
    assert!(unknown.code != 0 && unknown.stderr.contains("nobody"), "{unknown:?}");
}

#[test]
fn se_03_the_gateways_own_log_is_printed_and_nothing_in_it_obeys_or_forges_a_line() {
    let hidden = "x\u{1b}[2J\u{202e}\n2026-01-01T00:00:00Z ERROR forged";
    let tools = json!([{ "name": hidden, "inputSchema": { "type": "object" } }]);
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", tools.to_string());
    sandbox.configure_fixture(&["--tools", &tools], ALLOW);
    let mut client = sandbox.serve_stdio(&["-vv"]);
    client.initialize();
    client.request("tools/list", &json!({}));
    let told = printed(&sandbox, &["logs", "--self", "-n", "1000"], "\\u{1b}[2J");
    assert!(told.contains("is ready"), "{told}");
    let file = sandbox.read("data/log/gateway.log");
    for text in [&told, &file] {
        assert!(!text.chars().any(|c| matches!(c, '\u{1b}' | '\u{202e}')), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("2026-01-01")), "{text}");
    }
    let lines: Vec<&str> = told.lines().collect();
    assert!(!lines[0].starts_with("  | "), "what goes on with a line stays behind it: {told}");
    let line = sandbox.run(&["logs", "--self", "--json", "-n", "1"]).exits(0).json();
    assert_eq!(line["log"], "toolgate", "{line}");
    assert!(line["level"].is_string() && line["time"].is_string(), "{line}");
}

#[test]
fn logs_that_are_followed_show_what_comes() {
    let sandbox = talking();
    let mut follower = Stdio::start(sandbox.command(&["logs", "fix", "-f"]));
    assert!(follower.line_within(Duration::from_millis(500)).is_none(), "there is nothing yet");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.call("fix__echo", &json!({ "message": "hi" }));
    assert!(follower.line().contains("fix is up"));
    follower.kill();
}
