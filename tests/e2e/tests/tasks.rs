//! Tasks: calls that a modern server goes on working on after it answered, for clients that do not know
//! tasks, for clients that do, and for nobody.

mod handles;
mod listened;
mod lost;
mod many;
mod told;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Sandbox, Stdio};

use crate::sandbox;

const TASKS: &[&str] = &["--era", "modern", "--tasks"];
const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;

/// A server that makes tasks, with these lines in its entry.
fn server(options: &[&str], entry: &str) -> Sandbox {
    let sandbox = sandbox();
    configure(&sandbox, &[TASKS, options].concat(), entry);
    sandbox
}

fn configure(sandbox: &Sandbox, options: &[&str], entry: &str) {
    sandbox.configure_trusted("job, echo", options, entry);
}

/// A client that knows no tasks.
fn plain(sandbox: &Sandbox) -> Stdio {
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client
}

fn send(client: &mut Stdio, id: u32, arguments: &Value) {
    let params = json!({ "name": "fix__job", "arguments": arguments });
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
}

/// The next request or reply.
fn next(client: &mut Stdio) -> Value {
    loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message.get("id").is_some() {
            return message;
        }
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn code(result: &Value) -> &str {
    result
        .pointer("/_meta/toolgate~1error/code")
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{result}"))
}

/// What the operator sees.
fn listed(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.run(&["mcp", "tasks", "--json"]).exits(0).json()["tasks"].as_array().unwrap().clone()
}

/// Looks again and again until it is so.
#[track_caller]
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("not within {PATIENCE:?}: {what}")
}

/// The one task, once it has this status.
#[track_caller]
fn with_status(sandbox: &Sandbox, status: &str) -> Value {
    until(status, || listed(sandbox).into_iter().find(|task| task["status"] == status))
}

/// Messages of one method that reached the server.
fn reached(sandbox: &Sandbox, method: &str) -> Vec<Value> {
    let ledger = sandbox.read("ledger");
    let messages = ledger.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter(|message| message["method"] == method).collect()
}

fn rows(sandbox: &Sandbox, event: &str) -> Vec<Value> {
    sandbox.audit().into_iter().filter(|row| row["details"]["event"] == event).collect()
}

#[test]
fn a_client_without_tasks_gets_the_plain_result_with_the_id_of_the_task_beside_it_tsk_002_tsk_003_tsk_021() {
    let sandbox = server(&[], "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let params = json!({
        "name": "fix__job", "arguments": { "ms": 1_500, "say": "made it" }, "_meta": { "progressToken": "p" },
    });
    client.send(
        &json!({ "jsonrpc": "2.0", "id": 1_000, "method": "tools/call", "params": params }).to_string(),
    );
    // It is written down before anybody waits for it.
    let task = with_status(&sandbox, "working");
    assert_eq!((&task["server"], &task["tool"]), (&json!("fix"), &json!("job")), "{task}");
    let mut steps = 0;
    let reply = loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message["method"] == "notifications/progress" {
            assert!(message["params"]["message"].as_str().unwrap().contains("still at it"), "{message}");
            assert_eq!(message["params"]["progressToken"], "p");
            steps += 1;
        } else if message["id"] == 1_000 {
            break message;
        }
    };
    assert!(steps > 0, "progress was asked for");
    let result = &reply["result"];
    assert_eq!(text(result), "made it");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task["id"], "{reply}");
    assert!(!reply.to_string().contains("theirs"), "the server's own id stays behind: {reply}");
    let calls = reached(&sandbox, "tools/call");
    let invocation = calls[0]["params"]["_meta"]["toolgate/invocationId"].as_str().unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(rows(&sandbox, "mcp_called")[0]["details"]["invocation"], invocation);
    let task = with_status(&sandbox, "completed");
    assert_eq!((&task["delivery"], &task["invocation"]), (&json!("delivered"), &json!(invocation)));
    assert!(task["counters"]["reads"].as_u64().unwrap() >= 2, "{task}");
    for event in ["mcp_task_created", "mcp_task_completed", "mcp_task_delivered", "mcp_completed"] {
        assert_eq!(rows(&sandbox, event).len(), 1, "{event}");
    }
    // An error of the tool is a result, and one of the protocol is an error.
    let failed = client.call("fix__job", &json!({ "say": "no", "isError": true }));
    assert_eq!((text(&failed), &failed["isError"]), ("no", &json!(true)));
    let error = json!({ "code": -32603, "message": "broke", "data": { "x": 1 } });
    send(&mut client, 1_001, &json!({ "error": error }));
    assert_eq!(next(&mut client)["error"], error);
}

#[test]
fn only_a_modern_server_that_advertises_the_extension_has_tasks_tsk_001() {
    for options in [&["--era", "legacy", "--tasks"][..], &["--era", "modern"]] {
        let sandbox = sandbox();
        configure(&sandbox, options, "");
        let mut client = plain(&sandbox);
        client.call("fix__echo", &json!({ "message": "hi" }));
        if options.contains(&"--tasks") {
            client.call("fix__job", &json!({ "ms": 60_000, "say": "at once" }));
        }
        let ledger = sandbox.read("ledger");
        assert!(!ledger.contains("invocationId") && !ledger.contains("tasks/get"), "{ledger}");
        let calls = reached(&sandbox, "tools/call");
        assert!(
            !calls.iter().any(|call| call.to_string().contains("modelcontextprotocol/tasks")),
            "{calls:?}"
        );
        assert!(listed(&sandbox).is_empty());
    }
}

#[test]
fn a_task_is_asked_for_until_it_is_done_and_failed_reads_are_tried_again_tsk_006_tsk_010_tsk_015() {
    let sandbox = server(&["--tasks-flaky", "3"], "");
    let mut client = plain(&sandbox);
    let result = client.call("fix__job", &json!({ "ms": 200, "say": "made it" }));
    assert_eq!(text(&result), "made it");
    let task = with_status(&sandbox, "completed");
    assert_eq!(task["counters"]["retries"], 3, "{task}");
    assert!(task["counters"]["reads"].as_u64().unwrap() >= 4, "{task}");
    assert_eq!(reached(&sandbox, "tools/call").len(), 1, "only reads are repeated");
}

fn form(properties: &Value) -> Value {
    json!({
        "method": "elicitation/create",
        "params": { "message": "What now?", "requestedSchema": { "type": "object", "properties": properties } },
    })
}

#[test]
fn what_a_task_asks_goes_to_the_session_it_came_from_and_values_keep_their_types_tsk_007_tsk_008_eli_017() {
    let sandbox = server(&[], "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let fields = json!({
        "s": { "type": "string" }, "b": { "type": "boolean" }, "n": { "type": "number" }, "i": { "type": "integer" },
    });
    send(&mut client, 1_000, &json!({ "ask": { "first": form(&fields) } }));
    let asked = next(&mut client);
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    assert!(asked["params"]["message"].as_str().unwrap().contains("NOT Toolgate"), "{asked}");
    assert_eq!(asked["params"]["requestedSchema"]["properties"]["i"]["type"], "integer");
    let content = r#"{"s":"7","b":false,"n":1.50,"i":123456789012345678901234567890}"#;
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept","content":{content}}}}}"#,
        asked["id"]
    );
    client.send(&answer);
    let reply = next(&mut client);
    assert_eq!(reply["id"], 1_000, "asked once: {reply}");
    let update =
        sandbox.read("ledger").lines().find(|line| line.contains("tasks/update")).unwrap().to_owned();
    assert!(update.contains(content), "as it was typed: {update}");
    assert_eq!(rows(&sandbox, "mcp_task_input").len(), 1);
    assert_eq!(rows(&sandbox, "mcp_elicitation_answered").len(), 1);
    assert!(!sandbox.audit().iter().any(|row| row.to_string().contains("123456789012345678901234567890")));
}

#[test]
fn names_that_mean_something_to_programs_are_not_passed_on_tsk_009() {
    let sandbox = server(&[], "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    // A field of that name: the form is declined, and nobody sees it.
    let fields = json!({ "constructor": { "type": "string" } });
    let result = client.call("fix__job", &json!({ "ask": { "first": form(&fields) } }));
    assert_eq!(text(&result), r#"{"first":{"action":"decline"}}"#);
    assert_eq!(rows(&sandbox, "mcp_elicitation_auto_declined")[0]["details"]["reason"], "malformed");
    // An input of that name: nothing can be answered under it, so the task ends.
    let result = client.call("fix__job", &json!({ "ask": { "__proto__": form(&json!({})) } }));
    assert_eq!(code(&result), "server_misbehaved", "{result}");
    assert_eq!(reached(&sandbox, "tasks/cancel").len(), 1);
    assert_eq!(rows(&sandbox, "mcp_elicitation_requested").len(), 0);
}

#[test]
fn a_call_that_is_given_up_is_cancelled_at_its_server_however_it_is_given_up_tsk_011() {
    let sandbox = server(&[], "");
    let cancelled = |times: usize| {
        until("a cancellation", || (reached(&sandbox, "tasks/cancel").len() == times).then_some(()));
    };
    // By the client.
    let mut client = plain(&sandbox);
    send(&mut client, 1_000, &json!({ "ms": 60_000 }));
    with_status(&sandbox, "working");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1000}}"#);
    cancelled(1);
    let task = with_status(&sandbox, "cancelled");
    assert_eq!((&task["cancel_requested_by"], &task["delivery"]), (&json!("caller"), &json!("none")));
    // By the operator, from another process.
    send(&mut client, 1_001, &json!({ "ms": 60_000 }));
    let task = with_status(&sandbox, "working");
    sandbox.run(&["mcp", "tasks", task["id"].as_str().unwrap(), "--cancel"]).exits(0);
    let reply = next(&mut client);
    assert_eq!(reply["id"], 1_001);
    cancelled(2);
    // By a freeze.
    send(&mut client, 1_002, &json!({ "ms": 60_000 }));
    with_status(&sandbox, "working");
    sandbox.run(&["freeze", "--server", "fix", "--reason", "stop"]).exits(0);
    let reply = next(&mut client);
    assert_eq!(code(&reply["result"]), "denied", "{reply}");
    cancelled(3);
    assert_eq!(rows(&sandbox, "mcp_task_cancelled").len(), 3);
}

#[test]
fn a_client_that_goes_away_leaves_no_task_running_tsk_011() {
    let sandbox = server(&[], "");
    let mut client = plain(&sandbox);
    send(&mut client, 1_000, &json!({ "ms": 60_000 }));
    with_status(&sandbox, "working");
    assert_eq!(client.close(), 0);
    assert_eq!(reached(&sandbox, "tasks/cancel").len(), 1, "before the gateway has ended");
}

#[test]
fn what_comes_after_the_caller_stopped_waiting_is_kept_for_whoever_takes_it_once_tsk_018_tsk_019() {
    let sandbox = server(&[], "    timeouts: { call: 400ms, max_total: 500ms }\n");
    let mut client = plain(&sandbox);
    let result = client.call("fix__job", &json!({ "ms": 2_500, "say": "made it" }));
    assert_eq!(code(&result), "task_running", "{result}");
    let id = with_status(&sandbox, "working")["id"].as_str().unwrap().to_owned();
    assert!(text(&result).contains(&id), "{result}");
    let task = with_status(&sandbox, "completed");
    assert_eq!((&task["deliveryPending"], &task["delivery"]), (&json!(true), &json!("pending")));
    // Nobody is told as if they had asked.
    assert!(client.line_within(Duration::from_millis(300)).is_none());
    let shown = sandbox.run(&["mcp", "tasks", &id, "--json"]).exits(0).json();
    assert_eq!(text(&shown["outcome"]["result"]), "made it", "{shown}");
    assert!(sandbox.run(&["mcp", "tasks", &id, "--take"]).exits(0).stdout.contains("made it"));
    let shown = sandbox.run(&["mcp", "tasks", &id, "--json"]).exits(0).json();
    assert_eq!((&shown["delivery"], &shown["outcome"]), (&json!("delivered"), &Value::Null));
    assert_eq!(rows(&sandbox, "mcp_task_delivered")[0]["details"]["to"], "operator");
    assert_eq!(reached(&sandbox, "tools/call").len(), 1);
    // A question that comes when nobody waits is kept too, and nobody answers it.
    let result =
        client.call("fix__job", &json!({ "ms": 0, "ask": { "late": form(&json!({})) }, "poll": 1_500 }));
    assert_eq!(code(&result), "task_running", "{result}");
    let task = with_status(&sandbox, "input_required");
    let id = task["id"].as_str().unwrap();
    until("the question is kept", || {
        let shown = sandbox.run(&["mcp", "tasks", id, "--json"]).exits(0).json();
        shown["outcome"]["inputRequests"]["late"].is_object().then_some(())
    });
    assert_eq!(reached(&sandbox, "tasks/update").len(), 0);
}

#[test]
fn gate_task_places_eight_tasks_of_a_server_run_sixty_four_calls_wait_and_the_next_is_refused_tsk_013_tsk_014()
 {
    let sandbox = server(&[], "");
    let mut client = plain(&sandbox);
    // From the first on it is known that the tool makes tasks.
    client.call("fix__job", &json!({ "say": "first" }));
    for id in 0..72 {
        send(&mut client, 1_000 + id, &json!({ "ms": 60_000 }));
    }
    until("eight run", || {
        (listed(&sandbox).iter().filter(|task| task["status"] == "working").count() == 8).then_some(())
    });
    send(&mut client, 2_000, &json!({ "ms": 60_000 }));
    let reply = next(&mut client);
    assert_eq!((&reply["id"], code(&reply["result"])), (&json!(2_000), "too_many_tasks"), "{reply}");
    assert_eq!(reached(&sandbox, "tools/call").len(), 9, "what waits, waits here");
    // Another tool of the server is not held up.
    assert_eq!(text(&client.call("fix__echo", &json!({ "message": "hi" }))), "hi");
    // One that ends makes room for one that waits.
    let running = with_status(&sandbox, "working");
    sandbox.run(&["mcp", "tasks", running["id"].as_str().unwrap(), "--cancel"]).exits(0);
    until("the ninth runs", || (reached(&sandbox, "tools/call").len() == 11).then_some(()));
}

#[test]
fn a_task_past_the_time_its_server_keeps_it_is_over_tsk_016() {
    let sandbox = server(&[], "");
    let mut client = plain(&sandbox);
    let begun = Instant::now();
    let result = client.call("fix__job", &json!({ "ms": 60_000, "ttl": 1_000 }));
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(code(&result), "timed_out", "{result}");
    let task = with_status(&sandbox, "expired");
    assert!(task["expires_at_ms"].is_u64(), "{task}");
    assert_eq!(rows(&sandbox, "mcp_task_expired")[0]["details"]["status"], "expired");
}

#[test]
fn what_was_over_for_seven_days_is_removed_and_nothing_else_tsk_017() {
    let sandbox = server(&[], "");
    let mut client = plain(&sandbox);
    for say in ["old", "new"] {
        client.call("fix__job", &json!({ "say": say }));
    }
    let all = until("both are over", || {
        Some(listed(&sandbox)).filter(|all| all.iter().all(|task| task["closed_at_ms"].is_i64()))
    });
    client.close();
    let database = rusqlite::Connection::open(sandbox.data().join("state.db")).unwrap();
    let age = |id: &Value, days: u32| {
        let by = i64::from(days) * 24 * 3_600 * 1_000;
        let changed = database.execute(
            "UPDATE tasks SET closed_at_ms = closed_at_ms - ?2 WHERE id = ?1",
            rusqlite::params![id.as_str().unwrap(), by],
        );
        assert_eq!(changed.unwrap(), 1);
    };
    age(&all[0]["id"], 8);
    age(&all[1]["id"], 6);
    let left = listed(&sandbox);
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0]["id"], all[1]["id"]);
}
