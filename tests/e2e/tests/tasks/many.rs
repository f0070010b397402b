//! Several clients, and several gateways of one process: the tasks of a server are counted once and known
//! to their callers through each.

use super::handles::AWARE;
use super::*;

/// A request of the stateless era over stdio and its reply.
fn modern(client: &mut Stdio, id: u32, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": serde_json::from_str::<Value>(AWARE).unwrap(),
    });
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
    serde_json::from_str(&client.reply_to(&id.to_string())).unwrap()
}

#[test]
fn all_clients_of_a_gateway_share_the_places_of_a_server_tsk_013_tsk_014() {
    let sandbox = server(&[], "    env: { A: \"${NAMED:-none}\" }\n");
    let mut clients = [(); 3].map(|()| plain(&sandbox));
    // From the first on it is known that the tool makes tasks.
    clients[0].call("fix__job", &json!({ "say": "first" }));
    let mut id = 1_000;
    for client in &mut clients {
        for _ in 0..24 {
            send(client, id, &json!({ "ms": 60_000 }));
            id += 1;
        }
    }
    let counts = || sandbox.run(&["mcp", "status", "--json"]).exits(0).json()["servers"][0]["tasks"].clone();
    until("eight run and the rest waits", || {
        (counts() == json!({ "active": 8, "queued": 64, "lost": 0, "delivery_pending": 0 })).then_some(())
    });
    assert_eq!(reached(&sandbox, "tools/call").len(), 9, "what waits, waits here");
    let shown = sandbox.run(&["mcp", "status"]).exits(0).stdout;
    assert!(shown.contains("tasks: 8 active, 64 queued"), "{shown}");
    let mut fourth = plain(&sandbox);
    send(&mut fourth, 1, &json!({ "ms": 60_000 }));
    let reply = next(&mut fourth);
    assert_eq!(code(&reply["result"]), "too_many_tasks", "{reply}");
    // One that comes with other variables has servers of its own, and the same bound.
    let mut command = sandbox.command(&["serve", "--stdio"]);
    command.env("NAMED", "other");
    let mut other = Stdio::start(command);
    other.initialize();
    assert_eq!(text(&other.call("fix__echo", &json!({ "message": "hi" }))), "hi");
    send(&mut other, 1_000, &json!({ "ms": 60_000 }));
    let reply = next(&mut other);
    assert_eq!(code(&reply["result"]), "too_many_tasks", "{reply}");
    // A client that goes takes what it waits for with it.
    let [first, ..] = clients;
    drop(first);
    until("there is room", || (counts()["queued"].as_u64().unwrap() <= 64 - 16).then_some(()));
    assert_eq!(counts()["active"], 8);
}

#[test]
fn a_task_is_known_to_its_caller_through_each_gateway_of_the_process() {
    let sandbox = server(&[], "");
    let mut before = sandbox.serve_stdio(&[]);
    let fields = json!({ "reason": { "type": "string" } });
    let arguments = json!({ "ask": { "why": form(&fields) } });
    let make = |client: &mut Stdio, id, arguments: &Value| {
        let made = modern(client, id, "tools/call", json!({ "name": "fix__job", "arguments": arguments }));
        made["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    };
    let asks = make(&mut before, 1, &arguments);
    let long = make(&mut before, 2, &json!({ "ms": 600_000 }));
    let process = sandbox.gateway();
    // The configuration changes, so the next client has another gateway in the same process.
    let fixture = sandbox.fixture().display().to_string();
    sandbox.run(&["mcp", "add", "more", "--", &fixture]).exits(0);
    let mut after = sandbox.serve_stdio(&[]);
    let mut id = 100;
    let mut get = |client: &mut Stdio, task: &str| {
        id += 1;
        modern(client, id, "tasks/get", json!({ "taskId": task }))["result"].clone()
    };
    let asked = until("its question", || {
        Some(get(&mut after, &asks)).filter(|task| task["status"] == "input_required")
    });
    assert!(asked["inputRequests"]["why"].is_object(), "{asked}");
    let answer = json!({ "action": "accept", "content": { "reason": "because" } });
    let update = json!({ "taskId": asks, "inputResponses": { "why": answer } });
    modern(&mut after, 3, "tasks/update", update);
    let done =
        until("it is done", || Some(get(&mut after, &asks)).filter(|task| task["status"] == "completed"));
    assert!(text(&done["result"]).contains("because"), "{done}");
    modern(&mut after, 4, "tasks/cancel", json!({ "taskId": long }));
    until("it is cancelled", || (get(&mut before, &long)["status"] == "cancelled").then_some(()));
    assert_eq!(sandbox.gateway(), process, "one process serves both");
    let tasks = listed(&sandbox);
    assert!(tasks.iter().all(|task| task["counters"]["recoveries"] == 0), "observed once: {tasks:?}");
    assert_eq!(reached(&sandbox, "tasks/cancel").len(), 1);
}

#[test]
fn gate_tasks_two_thousand_and_forty_eight_tasks_are_kept_and_the_next_is_given_back_to_its_server() {
    let sandbox = server(&[], "");
    let mut client = plain(&sandbox);
    client.call("fix__job", &json!({ "say": "first" }));
    until("it is over", || listed(&sandbox)[0]["closed_at_ms"].is_i64().then_some(()));
    let database = rusqlite::Connection::open(sandbox.data().join("state.db")).unwrap();
    // As many, which are over and were not handed over: none of them is removed to make room.
    let filled = database
        .execute_batch(
            "BEGIN IMMEDIATE;
             INSERT INTO tasks (id, owner, server, server_identity, task_id, about, caller, handed, status,
                 snapshot, delivery, created_at_ms, updated_at_ms, closed_at_ms)
             WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2048)
             SELECT printf('task_%032x', n), owner, server, server_identity, 'more-' || n, about, caller,
                 handed, 'completed', snapshot, 'pending', created_at_ms, updated_at_ms, closed_at_ms
             FROM numbers, tasks;
             DELETE FROM tasks WHERE delivery <> 'pending';
             COMMIT;",
        )
        .is_ok();
    assert!(filled);
    let refused = client.call("fix__job", &json!({ "say": "one too many" }));
    assert!(refused.to_string().contains("2048 tasks of servers are kept"), "{refused}");
    assert_eq!(reached(&sandbox, "tasks/cancel").len(), 1, "its server is told");
    let handed_over = "UPDATE tasks SET delivery = 'delivered' WHERE task_id = 'more-7'";
    assert_eq!(database.execute(handed_over, []).unwrap(), 1);
    let passes = client.call("fix__job", &json!({ "say": "room again" }));
    assert_eq!(text(&passes), "room again", "{passes}");
    let left = listed(&sandbox);
    assert_eq!(left.len(), 2_048);
    assert!(left.iter().all(|task| task["task_id"] != "more-7"));
}
