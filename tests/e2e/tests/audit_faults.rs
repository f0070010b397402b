//! The audit log when the machine fails: a full disk, and a process that is killed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

/// A file that cannot grow is what a full disk is to whoever writes. The signal that comes with it is
/// ignored, as a full disk sends none.
fn with_little_disk(sandbox: &Sandbox, kilobytes: u32) -> Stdio {
    let plain = sandbox.command(&["serve", "--stdio", "--no-share"]);
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kilobytes * 2);
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", &script]).arg(plain.get_program()).args(plain.get_args()).env_clear();
    for (name, value) in plain.get_envs() {
        command.envs(value.map(|value| (name, value)));
    }
    command.current_dir(sandbox.path("work"));
    Stdio::start(command)
}

#[test]
fn a_full_disk_refuses_calls_and_loses_no_row() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger], ALLOW);
    // Once without the limit, so that pins and compiled plugins are there.
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"first"}"#]).exits(0);
    let before = reached(&sandbox).len();
    let mut client = with_little_disk(&sandbox, 512);
    client.initialize();
    let (mut passed, mut refused) = (0, 0);
    for number in 0..400 {
        let result = client.call("fix__echo", &json!({ "message": format!("m{number}") }));
        match result.pointer("/_meta/toolgate~1error/code").and_then(Value::as_str) {
            None => passed += 1,
            Some("audit_unavailable") => {
                assert!(result["content"][0]["text"].as_str().unwrap().contains("audit"), "{result}");
                refused += 1;
            }
            Some(other) => panic!("{other}: {result}"),
        }
        if refused == 5 {
            break;
        }
    }
    client.kill();
    assert!(passed > 0 && refused == 5, "{passed} passed, {refused} were refused");
    assert_eq!(reached(&sandbox).len() - before, passed, "nothing that was refused reached the server");
    let rows = sandbox.audit();
    let called = rows.iter().filter(|row| row["details"]["event"] == "mcp_called").count();
    assert_eq!(called, passed + before, "each call that left has its row");
    sandbox.run(&["audit", "verify"]).exits(0);
}

/// The message of each call that reached the server.
fn reached(sandbox: &Sandbox) -> Vec<String> {
    let ledger = sandbox.read("ledger");
    let calls = ledger.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let calls = calls.filter(|message| message["method"] == "tools/call");
    calls
        .map(|message| message["params"]["arguments"]["message"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// How many calls are made.
const CALLS: usize = 5_000;
/// How often the gateway is killed on the way.
const KILLS: usize = 10;

#[test]
fn a_kill_during_calls_and_asks_leaves_no_call_without_row_no_row_out_of_chain_and_no_grant_spent_twice() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(
        &["--ledger", &ledger],
        "    capabilities:\n      allow: [\"mcp.call:fix/echo\"]\n      require_approval: [\"mcp.call:fix/big\"]\napprovals: { hold: 20s }\n",
    );
    let mut grants: BTreeMap<String, usize> = BTreeMap::new();
    let mut sent = 0;
    for round in 0..KILLS {
        let mut client = sandbox.serve_alone(&[]);
        client.initialize_with(r#"{"elicitation":{}}"#);
        let share = CALLS / KILLS;
        for number in 0..share {
            // Every tenth call asks; the same one is repeated, so that a grant could be spent twice.
            let (tool, message) = if number % 10 == 0 {
                ("fix__big", format!("ask-{round}-{}", number / 20))
            } else {
                ("fix__echo", format!("plain-{round}-{number}"))
            };
            let id = 1000 + number;
            let params = json!({ "name": tool, "arguments": { "message": message } });
            client.send(
                &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string(),
            );
            sent += 1;
            let pause = Duration::from_millis(u64::from(number % 10 == 0) * 3);
            while let Some(line) = client.line_within(pause) {
                answer(&mut client, &line, &mut grants);
            }
        }
        // Whatever is on its way by now stays there.
        for _ in 0..round * 20 {
            if let Some(line) = client.line_within(Duration::from_millis(5)) {
                answer(&mut client, &line, &mut grants);
            }
        }
        client.kill();
    }
    assert_eq!(sent, CALLS);
    sandbox.run(&["audit", "verify"]).exits(0);
    let rows = sandbox.audit_all();
    let called = rows.iter().filter(|row| row["details"]["event"] == "mcp_called").count();
    let reached = reached(&sandbox);
    assert!(!reached.is_empty() && called >= reached.len(), "{called} rows, {} calls", reached.len());
    let granted = rows.iter().filter(|row| row["details"]["event"] == "approval.grant").count();
    let asked: Vec<&String> = reached.iter().filter(|message| message.starts_with("ask-")).collect();
    assert!(granted > 0, "somebody was asked");
    assert!(asked.len() <= granted, "{} calls on {granted} grants", asked.len());
    for message in asked {
        let times = reached.iter().filter(|other| *other == message).count();
        assert!(times <= grants.get(message).copied().unwrap_or(0), "{message} ran {times} times");
    }
}

/// Says yes to a question, and counts it for what it was about.
fn answer(client: &mut Stdio, line: &str, grants: &mut BTreeMap<String, usize>) {
    let message: Value = serde_json::from_str(line).unwrap();
    if message["method"] != "elicitation/create" {
        return;
    }
    let text = message["params"]["message"].as_str().unwrap();
    let mut about = text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '-'));
    let about = about.rfind(|word| word.starts_with("ask-")).unwrap_or_default().to_owned();
    *grants.entry(about).or_default() += 1;
    let result = json!({ "action": "accept", "content": { "decision": "allow once" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string());
}
