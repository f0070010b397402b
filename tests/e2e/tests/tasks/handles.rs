//! Clients that have the extension: they get an id of Toolgate's and ask for themselves.

use toolgate_e2e::Http;

use super::*;

pub(super) const AWARE: &str =
    r#"{"elicitation":{},"sampling":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// A request of a client of the stateless era over HTTP, as the claimed thread.
pub(super) fn ask(server: &Http, thread: &str, capabilities: &str, method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": serde_json::from_str::<Value>(capabilities).unwrap(),
    });
    let body = json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params }).to_string();
    let name = params["name"].as_str().or(params["taskId"].as_str()).unwrap_or_default().to_owned();
    let mut headers = vec![
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
        ("X-Toolgate-Thread-Id", thread),
    ];
    if !name.is_empty() {
        headers.push(("Mcp-Name", &name));
    }
    server.post("/mcp", &headers, &body).message()
}

pub(super) fn make(server: &Http, arguments: &Value) -> String {
    let params = json!({ "name": "fix__job", "arguments": arguments });
    let made = ask(server, "one", AWARE, "tools/call", &params);
    assert_eq!(made["result"]["resultType"], "task", "{made}");
    made["result"]["taskId"].as_str().unwrap().to_owned()
}

pub(super) fn get(server: &Http, id: &str) -> Value {
    let got = ask(server, "one", AWARE, "tasks/get", &json!({ "taskId": id }));
    assert!(got["result"].is_object(), "{got}");
    got["result"].clone()
}

#[track_caller]
pub(super) fn get_until(server: &Http, id: &str, status: &str) -> Value {
    until(status, || Some(get(server, id)).filter(|task| task["status"] == status))
}

#[test]
fn a_client_with_the_extension_gets_an_id_of_toolgates_and_reads_the_result_with_it() {
    let sandbox = server(&[], "");
    let server = sandbox.serve_http();
    let offered = ask(&server, "one", "{}", "server/discover", &json!({}));
    let extensions = &offered["result"]["capabilities"]["extensions"];
    assert!(extensions["io.modelcontextprotocol/tasks"].is_object(), "{offered}");
    let params = json!({ "name": "fix__job", "arguments": { "ms": 1_000, "say": "made it" } });
    let made = ask(&server, "one", AWARE, "tools/call", &params);
    let id = made["result"]["taskId"].as_str().unwrap().to_owned();
    assert_eq!(
        (&made["result"]["status"], &made["result"]["x-own"]),
        (&json!("working"), &json!(1)),
        "{made}"
    );
    assert!(id.starts_with("task_") && !made.to_string().contains("theirs"), "{made}");
    assert_eq!(get(&server, &id)["status"], "working");
    let done = get_until(&server, &id, "completed");
    assert_eq!(text(&done["result"]), "made it");
    assert!(done["result"]["_meta"]["io.modelcontextprotocol/related-task"].is_null(), "{done}");
    assert_eq!(done["taskId"], json!(id));
    assert_eq!(get(&server, &id)["status"], "completed", "as often as it likes");
    // Nobody waited for the row, so it may come a little later.
    until("one row", || (rows(&sandbox, "mcp_task_delivered").len() == 1).then_some(()));
    // A failed one, and a call without the extension, which gets the plain result.
    let id = make(&server, &json!({ "error": { "code": -32603, "message": "broke" } }));
    assert_eq!(get_until(&server, &id, "failed")["error"]["message"], "broke");
    let plain = ask(&server, "one", "{}", "tools/call", &params);
    assert_eq!(text(&plain["result"]), "made it", "{plain}");
}

#[test]
fn gate_task_holder_an_id_is_good_for_its_caller_and_for_nobody_else_and_every_use_is_judged() {
    let sandbox = server(&[], "");
    let server = sandbox.serve_http();
    let id = make(&server, &json!({ "ms": 60_000 }));
    let params = json!({ "taskId": id });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let mut params = params.clone();
        params["inputResponses"] = json!({});
        let undeclared = ask(&server, "one", "{}", method, &params);
        assert_eq!(undeclared["error"]["code"], -32021, "{undeclared}");
        let needed = &undeclared["error"]["data"]["requiredCapabilities"]["extensions"];
        assert!(needed["io.modelcontextprotocol/tasks"].is_object(), "{undeclared}");
        let foreign = ask(&server, "two", AWARE, method, &params);
        assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
        let unknown =
            ask(&server, "one", AWARE, method, &json!({ "taskId": "task_0", "inputResponses": {} }));
        assert_eq!(foreign["error"], unknown["error"], "nobody learns whose it is");
    }
    let denied = |sandbox: &Sandbox| {
        rows(sandbox, "mcp_denied").into_iter().filter(|row| row["details"]["rule"] == "task").count()
    };
    assert_eq!(denied(&sandbox), 6);
    assert_eq!(reached(&sandbox, "tasks/cancel").len(), 0);
    // A client of the initialize era has no such methods.
    let mut old = plain(&sandbox);
    assert_eq!(old.request("tasks/get", &params)["error"]["code"], -32601);
    // What may not be called any more is not told of any more.
    sandbox.run(&["mcp", "deny", "fix/job"]).exits(0);
    let refused = until("the denial counts", || {
        Some(ask(&server, "one", AWARE, "tasks/get", &params)).filter(|reply| reply["error"].is_object())
    });
    assert_eq!(refused["error"]["data"]["toolgate/error"]["code"], "denied", "{refused}");
}

#[test]
fn a_client_with_the_extension_answers_questions_one_by_one_and_cancels() {
    let sandbox = server(&[], "");
    let server = sandbox.serve_http();
    let field = json!({ "reason": { "type": "string" } });
    let id = make(&server, &json!({ "ask": { "a": form(&field), "b": form(&field) } }));
    let task = until("both questions", || {
        Some(get_until(&server, &id, "input_required"))
            .filter(|task| task["inputRequests"].as_object().is_some_and(|all| all.len() == 2))
    });
    let message = task["inputRequests"]["a"]["params"]["message"].as_str().unwrap();
    assert!(message.contains("NOT Toolgate"), "{task}");
    let accepted = json!({ "action": "accept", "content": { "reason": "because" } });
    let update = |answers: Value| {
        let params = json!({ "taskId": id, "inputResponses": answers });
        let acknowledged = ask(&server, "one", AWARE, "tasks/update", &params);
        assert_eq!(acknowledged["result"]["resultType"], "complete", "{acknowledged}");
        assert!(acknowledged["result"]["status"].is_null());
    };
    update(json!({ "stranger": 1 }));
    update(json!({ "a": accepted }));
    let task = get(&server, &id);
    assert_eq!(task["status"], "input_required");
    assert_eq!(task["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["b"], "{task}");
    update(json!({ "b": accepted }));
    let done = get_until(&server, &id, "completed");
    let said: Value = serde_json::from_str(text(&done["result"])).unwrap();
    assert_eq!(said, json!({ "a": accepted, "b": accepted }));
    assert_eq!(reached(&sandbox, "tasks/update").len(), 1, "the answers go together");
    // It is cancelled by its id, and closing a request cancels nothing.
    let id = make(&server, &json!({ "ms": 60_000 }));
    assert_eq!(get(&server, &id)["status"], "working");
    let acknowledged = ask(&server, "one", AWARE, "tasks/cancel", &json!({ "taskId": id }));
    assert_eq!(acknowledged["result"]["resultType"], "complete", "{acknowledged}");
    get_until(&server, &id, "cancelled");
    ask(&server, "one", AWARE, "tasks/cancel", &json!({ "taskId": id }));
    assert_eq!(reached(&sandbox, "tasks/cancel").len(), 1, "what is over is not told again");
}

#[test]
fn an_id_outlives_the_gateway() {
    let sandbox = sandbox();
    let file = sandbox.path("tasks.json").display().to_string();
    configure(&sandbox, &[TASKS, &["--tasks-file", &file]].concat(), "");
    let server = sandbox.serve_http();
    let id = make(&server, &json!({ "ms": 2_000, "say": "made it" }));
    drop(server);
    let server = sandbox.serve_http();
    let done = get_until(&server, &id, "completed");
    assert_eq!(text(&done["result"]), "made it");
    assert_eq!(reached(&sandbox, "tools/call").len(), 1);
}
