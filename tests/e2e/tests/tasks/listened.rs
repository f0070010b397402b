//! Clients that listen for their tasks: `taskIds` in `subscriptions/listen`, `notifications/tasks` to them.

use std::io::Write as _;
use std::net::TcpStream;

use super::handles::{AWARE, ask, get, make};
use super::lost::Web;
use super::*;
use crate::subscriptions::web::Stream;

const TOLD: &str = "notifications/tasks";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A request of the stateless era as this client writes it.
fn modern(id: &str, method: &str, capabilities: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": serde_json::from_str::<Value>(capabilities).unwrap(),
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A stream over HTTP on which these tasks are listened for, as the claimed thread.
fn listen(server: &toolgate_e2e::Http, thread: &str, capabilities: &str, tasks: &[&str]) -> Stream {
    let body =
        modern("sub", "subscriptions/listen", capabilities, json!({ "notifications": { "taskIds": tasks } }));
    let head = format!(
        "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nX-Toolgate-Thread-Id: {thread}"
    );
    Stream::open(server, &head, &body)
}

/// A request over stdio and its reply; what the subscription is told meanwhile is kept.
fn request(client: &mut Stdio, told: &mut Vec<Value>, id: &str, method: &str, params: Value) -> Value {
    client.send(&modern(id, method, AWARE, params));
    loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message["id"] == id {
            return message;
        }
        if message["method"] == TOLD {
            told.push(message["params"].clone());
        }
    }
}

/// What is told next.
fn next_told(client: &mut Stdio, told: &mut Vec<Value>) -> Value {
    if !told.is_empty() {
        return told.remove(0);
    }
    loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message["method"] == TOLD {
            return message["params"].clone();
        }
    }
}

#[test]
fn a_client_that_listens_for_its_task_hears_its_question_and_its_result_and_of_no_other() {
    let sandbox = server(&["--tasks-push"], "");
    let mut client = sandbox.serve_stdio(&[]);
    let mut told = Vec::new();
    let field = json!({ "reason": { "type": "string" } });
    let job = |arguments: &Value| json!({ "name": "fix__job", "arguments": arguments });
    let asks = json!({ "ask": { "why": form(&field) }, "ms": 300 });
    let made = request(&mut client, &mut told, "make", "tools/call", job(&asks));
    let id = made["result"]["taskId"].as_str().unwrap().to_owned();
    let other = request(&mut client, &mut told, "other", "tools/call", job(&json!({ "say": "other" })));
    assert_eq!(other["result"]["resultType"], "task", "{other}");
    let wanted = json!({ "notifications": { "taskIds": [&id, "task_0", &id] } });
    client.send(&modern("sub", "subscriptions/listen", AWARE, wanted));
    let first: Value = loop {
        let message: Value = serde_json::from_str(&client.line()).unwrap();
        if message["method"] == ACKNOWLEDGED {
            break message;
        }
        assert_ne!(message["method"], TOLD, "nothing comes before the acknowledgement");
    };
    assert_eq!(first["params"]["notifications"], json!({ "taskIds": [&id] }), "{first}");
    let refused = &first["params"]["_meta"]["toolgate/refused"];
    assert!(refused["task_0"].as_str().unwrap().contains("unknown task"), "{first}");
    let asked = loop {
        let said = next_told(&mut client, &mut told);
        assert_eq!((&said["taskId"], &said["x-own"]), (&json!(id), &json!(1)), "{said}");
        assert_eq!(said["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub", "{said}");
        if said["status"] == "input_required" {
            break said;
        }
        assert_eq!(said["status"], "working", "{said}");
    };
    let message = asked["inputRequests"]["why"]["params"]["message"].as_str().unwrap();
    assert!(message.contains("NOT Toolgate"), "{asked}");
    let answer = json!({ "action": "accept", "content": { "reason": "because" } });
    let update = json!({ "taskId": id, "inputResponses": { "why": answer } });
    let acknowledged = request(&mut client, &mut told, "answer", "tasks/update", update);
    assert_eq!(acknowledged["result"]["resultType"], "complete", "{acknowledged}");
    let done = loop {
        let said = next_told(&mut client, &mut told);
        assert_eq!(said["taskId"], json!(id));
        assert!(!said.to_string().contains("theirs"), "the server's own id stays behind: {said}");
        if said["status"] == "completed" {
            break said;
        }
        assert!(said["result"].is_null(), "{said}");
    };
    let said: Value = serde_json::from_str(text(&done["result"])).unwrap();
    assert_eq!(said, json!({ "why": answer }));
    let task = listed(&sandbox).into_iter().find(|task| task["id"] == json!(id)).unwrap();
    assert_eq!(task["delivery"], "delivered", "{task}");
    assert_eq!(rows(&sandbox, "mcp_task_delivered")[0]["details"]["to"], "subscription");
    // It can be asked for all the same, and the end of the subscription is silent.
    let again = request(&mut client, &mut told, "get", "tasks/get", json!({ "taskId": id }));
    assert_eq!(again["result"]["status"], "completed", "{again}");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"sub"}}"#);
    let third = request(&mut client, &mut told, "third", "tools/call", job(&json!({ "say": "third" })));
    assert_eq!(third["result"]["resultType"], "task", "{third}");
    while let Some(line) = client.line_within(Duration::from_millis(600)) {
        assert!(!line.contains(TOLD), "nobody listens any more: {line}");
    }
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn gate_task_listener_a_task_is_told_to_its_caller_alone_and_as_long_as_its_call_would_pass() {
    let sandbox = server(&[], "");
    let server = sandbox.serve_http();
    let id = make(&server, &json!({ "ms": 3_000, "say": "made it" }));
    // Somebody else, and somebody without the extension.
    let mut foreign = listen(&server, "two", AWARE, &[&id]);
    let first = foreign.next(ACKNOWLEDGED);
    assert_eq!(first["params"]["notifications"], json!({ "taskIds": [] }), "{first}");
    let wanted = json!({ "notifications": { "taskIds": [&id] } });
    let refused = ask(&server, "one", "{}", "subscriptions/listen", &wanted);
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let many: Vec<String> = (0..300).map(|number| format!("task_{number}")).collect();
    for wrong in [json!("task"), json!([1]), json!(many)] {
        let wanted = json!({ "notifications": { "taskIds": wrong } });
        let answer = ask(&server, "one", AWARE, "subscriptions/listen", &wanted);
        assert_eq!(answer["error"]["code"], -32602, "{wrong}: {answer}");
    }
    let mut own = listen(&server, "one", AWARE, &[&id]);
    assert_eq!(own.next(ACKNOWLEDGED)["params"]["notifications"], json!({ "taskIds": [&id] }));
    assert_eq!(own.next(TOLD)["params"]["status"], "working", "how it stands is told at once");
    // What may not be called any more is not told of any more, and the client hears why.
    sandbox.run(&["mcp", "deny", "fix/job"]).exits(0);
    let end = loop {
        let message = own.message();
        if message["method"].is_null() {
            break message;
        }
        assert!(!message.to_string().contains("made it"), "{message}");
    };
    assert_eq!(end["error"]["data"]["toolgate/error"]["code"], "denied", "{end}");
    assert!(!end.to_string().contains("made it"), "{end}");
}

#[test]
fn a_client_over_http_that_hangs_up_finds_the_result_of_its_task_when_it_comes_back() {
    let sandbox = server(&[], "");
    let server = sandbox.serve_http();
    let id = make(&server, &json!({ "ms": 1_500, "say": "made it" }));
    let mut stream = listen(&server, "one", AWARE, &[&id]);
    assert_eq!(stream.next(TOLD)["params"]["status"], "working");
    drop(stream);
    // Nobody is connected, and it goes on.
    let task = with_status(&sandbox, "completed");
    assert_eq!((&task["deliveryPending"], &task["id"]), (&json!(true), &json!(id)), "{task}");
    assert_eq!(reached(&sandbox, "tasks/cancel").len(), 0);
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    assert_eq!(status["servers"][0]["tasks"]["delivery_pending"], 1, "{status}");
    let foreign = ask(&server, "two", AWARE, "tasks/get", &json!({ "taskId": id }));
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    assert_eq!(text(&get(&server, &id)["result"]), "made it");
    assert_eq!(reached(&sandbox, "tools/call").len(), 1);
    // It is told at once to whoever listens only now.
    let mut late = listen(&server, "one", AWARE, &[&id]);
    assert_eq!(text(&late.next(TOLD)["params"]["result"]), "made it");
    // Without the extension the connection is all there is: who hangs up has given up.
    let call = modern("c", "tools/call", "{}", json!({ "name": "fix__job", "arguments": { "ms": 60_000 } }));
    let mut plain = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: fix__job\r\nContent-Length: {}\r\n\r\n{call}",
        server.address,
        server.token.trim(),
        call.len()
    );
    plain.write_all(head.as_bytes()).unwrap();
    with_status(&sandbox, "working");
    drop(plain);
    with_status(&sandbox, "cancelled");
    assert_eq!(reached(&sandbox, "tasks/cancel").len(), 1);
}

#[test]
fn gate_recovered_verdict_a_task_that_is_taken_up_after_its_call_was_denied_is_cancelled_and_nobody_hears_of_it()
 {
    let sandbox = sandbox();
    let _web = Web::serve(&sandbox, &[]);
    let server = sandbox.serve_http();
    let long = make(&server, &json!({ "ms": 600_000 }));
    let done = make(&server, &json!({ "ms": 1_000, "say": "made it", "stubborn": true }));
    assert_eq!(get(&server, &long)["status"], "working");
    drop(server);
    sandbox.run(&["mcp", "deny", "fix/job"]).exits(0);
    let server = sandbox.serve_http();
    let by_id = |id: &str| listed(&sandbox).into_iter().find(|task| task["id"] == id).unwrap();
    until("the long one is cancelled", || (by_id(&long)["status"] == "cancelled").then_some(()));
    assert_eq!(by_id(&long)["cancel_requested_by"], "policy", "{}", by_id(&long));
    until("the other one is over", || by_id(&done)["closed_at_ms"].is_i64().then_some(()));
    assert_eq!(by_id(&done)["cancel_requested_by"], "policy");
    assert!(reached(&sandbox, "tasks/cancel").len() >= 2);
    for id in [&long, &done] {
        let refused = ask(&server, "one", AWARE, "tasks/get", &json!({ "taskId": id }));
        assert_eq!(refused["error"]["data"]["toolgate/error"]["code"], "denied", "{refused}");
        let mut stream = listen(&server, "one", AWARE, &[id]);
        let first = stream.next(ACKNOWLEDGED);
        assert_eq!(first["params"]["notifications"], json!({ "taskIds": [] }), "{first}");
    }
    assert!(rows(&sandbox, "mcp_task_delivered").is_empty(), "nobody got anything");
}
