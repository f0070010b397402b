//! Servers that come, go and come back, one at a time and two hundred of them.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Sandbox, Stdio};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:*\"]\n";
const CHANGED: &str = "notifications/tools/list_changed";

#[track_caller]
fn until<T>(what: &str, patience: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + patience;
    while Instant::now() < end {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("not within {patience:?}: {what}")
}

fn status(sandbox: &Sandbox) -> Vec<Value> {
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    status["servers"].as_array().unwrap().clone()
}

/// How the one server stands.
fn standing(sandbox: &Sandbox) -> Value {
    status(sandbox).remove(0)
}

/// One server that all callers share, with these options and lines in its entry.
fn shared(sandbox: &Sandbox, options: &[&str], entry: &str) {
    let ledger = sandbox.path("ledger").display().to_string();
    let options: Vec<&str> = options.iter().copied().chain(["--ledger", &ledger]).collect();
    let fix = sandbox.fixture_entry("fix", &options);
    sandbox.configure(&format!(
        "servers:\n{fix}    instance: shared\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"
    ));
}

fn greetings(sandbox: &Sandbox) -> usize {
    sandbox.read("ledger").matches(r#""method":"initialize""#).count()
}

#[test]
fn gate_comes_back_a_shared_server_that_ended_is_there_again_before_anybody_needs_it() {
    let sandbox = sandbox();
    shared(&sandbox, &[], "    restarts: { first: 700ms, longest: 2s }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let before = standing(&sandbox);
    assert_eq!((&before["state"], &before["last_error"]), (&json!("connected"), &json!(null)));
    let died = client.call("fix__die", &json!({}));
    assert_eq!(died["_meta"]["toolgate/error"]["code"], "may_have_run", "{died}");
    assert_eq!(greetings(&sandbox), 1, "it waits a while");
    // Nobody calls and nobody looks: the status would be a need of its own.
    until("it is started again", PATIENCE, || (greetings(&sandbox) == 2).then_some(()));
    let after = standing(&sandbox);
    assert_eq!((&after["state"], &after["detail"]), (&json!("connected"), &json!(null)), "{after}");
    let last = &after["last_error"];
    assert!(last["reason"].as_str().unwrap().contains("exit"), "what was wrong stays visible: {after}");
    assert!(last["at"].as_str().unwrap().ends_with('Z'), "{after}");
    let shown = sandbox.run(&["mcp", "status"]).exits(0).stdout;
    assert!(shown.contains("last error, at ") && shown.contains("over since"), "{shown}");
    let text = client.call("fix__echo", &json!({ "message": "hi" }))["content"][0]["text"].clone();
    assert_eq!((text, greetings(&sandbox)), (json!("hi"), 2));
    // One that is needed meanwhile waits for no pause.
    client.call("fix__die", &json!({}));
    let text = client.call("fix__echo", &json!({ "message": "hi" }))["content"][0]["text"].clone();
    assert_eq!((text, greetings(&sandbox)), (json!("hi"), 3));
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(greetings(&sandbox), 3, "and is not started once more for it");
}

#[test]
fn gate_thawed_a_shared_server_that_ended_while_it_was_frozen_comes_back_when_it_is_thawed() {
    let sandbox = sandbox();
    shared(&sandbox, &[], "    restarts: { first: 2s, longest: 2s }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    until("it is there", PATIENCE, || (standing(&sandbox)["state"] == "connected").then_some(()));
    client.call("fix__die", &json!({}));
    sandbox.run(&["freeze", "--server", "fix", "--reason", "r"]).exits(0);
    std::thread::sleep(Duration::from_millis(3_500));
    assert_eq!(greetings(&sandbox), 1, "what is frozen is not started, though its pause is over");
    sandbox.run(&["thaw", "--server", "fix"]).exits(0);
    // Nobody calls and nobody looks.
    until("it is started again", PATIENCE, || (greetings(&sandbox) == 2).then_some(()));
    let text = client.call("fix__echo", &json!({ "message": "hi" }))["content"][0]["text"].clone();
    assert_eq!((text, greetings(&sandbox)), (json!("hi"), 2));
}

// ST-15
#[test]
fn gate_never_came_up_st_15_a_call_of_a_server_that_never_came_up_names_it_its_error_and_the_next_step() {
    let sandbox = sandbox();
    let dead = "  dead:\n    command: sh\n    args: [\"-c\", \"echo no database >&2; exit 3\"]\n    protocol: legacy\n";
    let fix = sandbox.fixture_entry("fix", &[]);
    sandbox.configure(&format!(
        "servers:\n{fix}{dead}personas:\n  default:\n    servers: [fix, dead]\n{ALLOW}  other:\n    servers: [fix]\n{ALLOW}"
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for _ in 0..2 {
        let said = client.call("dead__query", &json!({}));
        assert_eq!(said["_meta"]["toolgate/error"]["code"], "server_unavailable", "{said}");
        assert_eq!(said["_meta"]["toolgate/error"]["server"], "dead", "{said}");
        let text = said["content"][0]["text"].as_str().unwrap();
        for part in ["'dead'", "no database", "toolgate mcp status dead"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    // A name of nobody's, and of a server that is there, stay unknown.
    for name in ["nobody__query", "fix__nothing"] {
        let reply = client.request("tools/call", &json!({ "name": name, "arguments": {} }));
        assert_eq!(reply["error"]["code"], -32602, "{name}: {reply}");
    }
    // To who may not see it, it does not exist.
    let mut other = sandbox.serve_stdio(&["--persona", "other"]);
    other.initialize();
    let ask = |client: &mut Stdio, name: &str| {
        client.request("tools/call", &json!({ "name": name, "arguments": {} }))["error"].to_string()
    };
    let (dead, nobody) = (ask(&mut other, "dead__query"), ask(&mut other, "nobd__query"));
    assert_eq!(dead.replace("dead", "nobd"), nobody);
    let run = sandbox.run(&["mcp", "call", "dead__query"]);
    assert!(run.code != 0 && run.stderr.contains("no database"), "{run:?}");
}

#[test]
fn gw_03_a_shared_server_that_ends_again_and_again_is_given_up_and_stays_so_until_somebody_asks() {
    let sandbox = sandbox();
    let starts = sandbox.path("starts").display().to_string();
    let (fixture, mended) = (sandbox.fixture().display().to_string(), sandbox.path("mended"));
    // It greets, lists, and ends half a second later.
    let script = format!(
        "echo x >> {starts}; test -e {} && exec {fixture}; timeout 0.5 {fixture}; exit 7",
        mended.display()
    );
    sandbox.configure(&format!(
        "servers:\n  fix:\n    command: sh\n    args: [\"-c\", {script:?}]\n    instance: shared\n    protocol: legacy\n    restarts: {{ first: 50ms, longest: 200ms, starts: 4, within: 5m }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}"
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let count = || sandbox.read("starts").lines().count();
    until("it is started again by itself", PATIENCE, || (count() == 4).then_some(()));
    std::thread::sleep(Duration::from_millis(1_500));
    let now = standing(&sandbox);
    assert_eq!((&now["state"], count()), (&json!("failed"), 4), "{now}");
    assert!(now["detail"].as_str().unwrap().contains("failed too often"), "{now}");
    assert_eq!(now["next_retry_in"], json!(null), "{now}");
    sandbox.write("mended", "");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(count(), 4, "it stays down though it would stand");
    sandbox.run(&["mcp", "reconnect", "fix"]).exits(0);
    assert_eq!((count(), &standing(&sandbox)["state"]), (5, &json!("connected")));
    drop(client);
}

#[test]
fn pr_20_a_server_that_cries_two_hundred_times_is_listed_a_few_times_and_its_last_word_counts() {
    let sandbox = sandbox();
    let both = r#"[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}},{"name":"slow","inputSchema":{"type":"object"}}]"#;
    let tools = sandbox.write("tools.json", both);
    let ledger = sandbox.path("ledger").display().to_string();
    // Every five milliseconds: more than two hundred in all.
    sandbox.configure_fixture(&["--tools", &tools, "--storm", "1500", "--ledger", &ledger], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let params = json!({ "name": "fix__slow", "arguments": { "ms": 1_200, "say": "done" } });
    client
        .send(&json!({ "jsonrpc": "2.0", "id": 500, "method": "tools/call", "params": params }).to_string());
    let greeted = || sandbox.read("ledger").contains("notifications/initialized");
    until("the storm begins", PATIENCE, || greeted().then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    sandbox.write("tools.json", both.replace(r#"{"name":"two","inputSchema":{"type":"object"}},"#, ""));
    let mut changes = 0;
    let quiet = Duration::from_secs(4);
    while let Some(line) = client.line_within(quiet) {
        changes += usize::from(line.contains(CHANGED));
    }
    assert!((1..=2).contains(&changes), "{changes} list_changed for the client");
    let listings = sandbox.read("ledger").matches(r#""method":"tools/list""#).count();
    assert!(
        (2..=4).contains(&listings),
        "{listings} tools/list, the first of them before the storm: {}",
        sandbox.read("ledger")
    );
    let names = client.tool_names();
    assert!(names.contains(&"fix__one".to_owned()) && !names.contains(&"fix__two".to_owned()), "{names:?}");
}

const SERVERS: usize = 200;
/// Every fifth is dead, and every fourth of the others hangs.
const fn is_dead(number: usize) -> bool {
    number.is_multiple_of(5)
}
const fn hangs(number: usize) -> bool {
    !is_dead(number) && number.is_multiple_of(4)
}

/// The moments at which servers that hang were started, in milliseconds, in order.
fn starts_of_hanging(sandbox: &Sandbox) -> Vec<u64> {
    let text = sandbox.read("hanging");
    let mut moments: Vec<u64> = text
        .lines()
        .filter_map(|line| line.trim().parse::<u64>().ok())
        .map(|nanos| nanos / 1_000_000)
        .collect();
    moments.sort_unstable();
    moments
}

/// The servers of which a client sees tools.
fn shown(client: &mut Stdio) -> Vec<String> {
    let mut names = std::collections::BTreeSet::new();
    let mut params = json!({});
    loop {
        let page = client.request("tools/list", &params)["result"].clone();
        let tools = page["tools"].as_array().unwrap_or_else(|| panic!("{page}"));
        names.extend(
            tools.iter().map(|tool| tool["name"].as_str().unwrap().split("__").next().unwrap().to_owned()),
        );
        match page["nextCursor"].as_str() {
            Some(next) => params = json!({ "cursor": next }),
            None => return names.into_iter().collect(),
        }
    }
}

#[test]
fn gate_starts_two_hundred_servers_are_listed_at_once_and_start_a_few_at_a_time_whatever_some_of_them_do() {
    let sandbox = sandbox();
    let fixture = sandbox.fixture().display().to_string();
    let trouble = sandbox.write("trouble", "");
    let hanging = sandbox.path("hanging").display().to_string();
    let mut servers = String::new();
    let mut names = Vec::new();
    for number in 0..SERVERS {
        let script = if is_dead(number) {
            let own = sandbox.path(&format!("mended-{number}")).display().to_string();
            format!("test -e {trouble} && ! test -e {own} && exit 3; exec {fixture}")
        } else if hangs(number) {
            format!("test -e {trouble} && date +%s%N >> {hanging} && exec sleep 600; exec {fixture}")
        } else {
            format!("exec {fixture}")
        };
        let _ = writeln!(
            servers,
            "  s{number}:\n    command: sh\n    args: [\"-c\", {script:?}]\n    protocol: legacy\n    instance: shared\n    restarts: {{ first: 2s, longest: 5s, starts: 1000 }}"
        );
        names.push(format!("s{number}"));
    }
    sandbox.configure(&format!(
        "servers:\n{servers}personas:\n  default:\n    servers: [{}]\n{ALLOW}",
        names.join(", ")
    ));
    // Once all of them were well, and what they show was taken for approved.
    std::fs::remove_file(&trouble).unwrap();
    let patience = Duration::from_mins(3);
    let well = |states: &[Value]| states.iter().filter(|one| one["state"] == "connected").count();
    until("all were seen", patience, || (well(&status(&sandbox)) == SERVERS).then_some(()));

    sandbox.write("trouble", "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let begun = Instant::now();
    let listed = shown(&mut client);
    assert_eq!(listed.len(), SERVERS, "{listed:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "nobody is waited for: {:?}", begun.elapsed());

    // The calls of those that stand go through while others hang.
    let echoed = client.call("s1__echo", &json!({ "message": "hi" }));
    assert_eq!(echoed["content"][0]["text"], "hi", "{echoed}");
    let hang = (0..SERVERS).filter(|number| hangs(*number)).count();
    let moments = until("all that hang were started", patience, || {
        Some(starts_of_hanging(&sandbox)).filter(|moments| moments.len() >= hang)
    });
    // Each of them holds its place for three seconds. A clock of its own is read a little later.
    for window in moments.windows(17) {
        assert!(window[16] - window[0] > 2_500, "seventeen within {} ms", window[16] - window[0]);
    }
    let dead = (0..SERVERS).filter(|number| is_dead(*number)).count();
    // `mcp status` would wait for those that hang, so what is asked is one that stands.
    let last = SERVERS - 1;
    let echoed = client.call(&format!("s{last}__echo"), &json!({ "message": "last" }));
    assert_eq!(echoed["content"][0]["text"], "last", "{echoed}");
    let refused = client.call("s0__echo", &json!({ "message": "hi" }));
    assert_eq!(refused["_meta"]["toolgate/error"]["code"], "server_unavailable", "{refused}");
    assert_eq!(shown(&mut client).len(), SERVERS, "{dead} dead ones hide nobody");

    // One is mended, and is there without anybody's word.
    sandbox.write("mended-5", "");
    until("it comes back by itself", patience, || {
        let connected = sandbox
            .audit_all()
            .into_iter()
            .filter(|row| row["details"]["event"] == "mcp_initialized" && row["details"]["server"] == "s5");
        (connected.count() >= 2).then_some(())
    });
    let echoed = client.call("s5__echo", &json!({ "message": "back" }));
    assert_eq!(echoed["content"][0]["text"], "back", "{echoed}");
}
