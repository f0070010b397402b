//! What a client that goes takes with it, and what goes on without it, in the gateway that it shared.

use super::*;

/// What a client can do that can do everything.
const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
/// The same, and it can come back for the outcome of a task.
const AWARE: &str = r#"{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// Servers with one ledger, these options and calls that pass.
fn serving(sandbox: &Sandbox, servers: &[&str], options: &[&str], rest: &str) {
    let ledger = sandbox.path("ledger").display().to_string();
    let options: Vec<&str> = options.iter().copied().chain(["--ledger", &ledger]).collect();
    let entries = servers.iter().map(|name| sandbox.fixture_entry(name, &options)).collect::<String>();
    let allow = "    capabilities:\n      allow: [\"mcp.call:*\"]\n";
    sandbox.configure(&format!(
        "servers:\n{entries}personas:\n  default:\n    servers: [{}]\n{allow}{rest}",
        servers.join(", ")
    ));
}

/// A request of a client of the stateless era, and its reply.
fn modern(client: &mut Stdio, id: u32, capabilities: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": serde_json::from_str::<Value>(capabilities).unwrap(),
    });
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    serde_json::from_str(&client.reply_to(&id.to_string())).unwrap()
}

fn asking(server: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "reason": { "type": "string" } } });
    let params = json!({ "message": "Who?", "requestedSchema": schema });
    let question = json!({ "method": "elicitation/create", "params": params });
    json!({ "name": format!("{server}__ask"), "arguments": { "questions": [question] } })
}

/// What the server heard when a question of its was given up.
fn given_up(sandbox: &Sandbox) -> usize {
    let ledger = sandbox.read("ledger");
    ledger
        .lines()
        .filter(|line| line.contains("notifications/cancelled") || line.contains(r#""action":"cancel""#))
        .count()
}

#[test]
fn gate_left_a_client_that_goes_ends_the_call_that_it_parked_and_nobody_elses() {
    let sandbox = sandbox();
    serving(&sandbox, &["fix", "other"], &["--asks", "--era", "legacy"], "");
    let (mut first, mut second) = (sandbox.serve_stdio(&[]), sandbox.serve_stdio(&[]));
    let parked = modern(&mut first, 1, ALL, asking("fix"));
    assert_eq!(parked["result"]["resultType"], "input_required", "{parked}");
    let params = asking("other");
    let round = modern(&mut second, 1, ALL, params.clone());
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    let gateway = sandbox.gateway();
    assert_eq!(given_up(&sandbox), 0);
    first.kill();
    wait_until("the server hears that nobody answers", || given_up(&sandbox) > 0);
    let heard = given_up(&sandbox);

    let mut answered = params;
    let key = round["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    answered["requestState"] = round["result"]["requestState"].clone();
    answered["inputResponses"] = json!({ key: { "action": "accept", "content": { "reason": "stayed" } } });
    let reply = modern(&mut second, 2, ALL, answered);
    assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
    assert!(reply.to_string().contains("stayed"), "{reply}");
    assert_eq!(given_up(&sandbox), heard, "the other call was left alone");
    assert_eq!(sandbox.gateway(), gateway, "one gateway served both");
}

#[test]
fn a_subscription_ends_with_the_last_client_that_holds_it() {
    let sandbox = sandbox();
    let touch = sandbox.write("touch", "");
    serving(&sandbox, &["fix"], &["--full", "--touch", &touch], "");
    let mut clients = [(); 2].map(|()| sandbox.serve_stdio(&[]));
    for client in &mut clients {
        client.initialize();
        let reply = client.request("resources/subscribe", &json!({ "uri": "fix://static" }));
        assert_eq!(reply["result"], json!({}), "{reply}");
    }
    let status = || sandbox.run(&["mcp", "status", "fix", "--json"]).exits(0).json();
    let held = &status()["servers"][0]["subscriptions"];
    assert_eq!(held[0]["uris"], json!(["fix://static"]), "the operator sees it: {held}");
    let shown = sandbox.run(&["mcp", "status", "fix"]).exits(0).stdout;
    assert!(shown.contains("subscription fix://static, unconfirmed"), "{shown}");
    let asked = |method: &str| sandbox.read("ledger").matches(&format!("\"resources/{method}\"")).count();
    let [mut first, mut second] = clients;
    first.kill();
    std::fs::write(&touch, "fix://static\n").unwrap();
    let until = Instant::now() + PATIENCE;
    while !second.line().contains("notifications/resources/updated") {
        assert!(Instant::now() < until, "it is not told");
    }
    assert_eq!((asked("subscribe"), asked("unsubscribe")), (1, 0));
    second.kill();
    wait_until("nobody holds it any more", || asked("unsubscribe") == 1);
    assert_eq!(status()["servers"][0]["subscriptions"], json!([]));
}

#[test]
fn gate_busy_the_gateway_stays_while_a_task_of_a_server_runs_and_ends_after_it() {
    let sandbox = sandbox();
    serving(&sandbox, &["fix"], &["--era", "modern", "--tasks"], "serve: { idle_exit: 300ms }\n");
    let mut client = sandbox.serve_stdio(&[]);
    let job = json!({ "name": "fix__job", "arguments": { "ms": 4_000, "say": "made it" } });
    let made = modern(&mut client, 1, AWARE, job);
    assert_eq!(made["result"]["resultType"], "task", "{made}");
    let gateway = sandbox.gateway();
    assert!(gateway.is_some());
    assert_eq!(client.close(), 0);
    let listed = || sandbox.run(&["mcp", "tasks", "--json"]).exits(0).json()["tasks"][0].clone();
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(sandbox.gateway(), gateway, "it has something to do");
    wait_until("the gateway ends", || sandbox.gateway().is_none());
    let task = listed();
    assert_eq!(
        (&task["status"], &task["counters"]["recoveries"]),
        (&json!("completed"), &json!(0)),
        "{task}"
    );
}
