//! Sessions.

use std::time::Duration;

use super::client::{Request, Server, call, events, message, read_until};
use serde_json::{Value, json};

#[tokio::test]
async fn a_session_lists_and_calls_and_ends() {
    let server = Server::start().await;
    let id = server.session("alpha", "2025-06-18").await;
    assert!(id.len() >= 32);
    let list = message(1, "tools/list", json!({})).to_string();
    let request = Request::post(&list).session(&id).header("MCP-Protocol-Version", "2025-06-18");
    let reply = server.send(request).await;
    assert_eq!(reply.header("content-type").unwrap(), "application/json");
    assert_eq!(reply.json()["result"]["tools"][0]["name"], "echo");
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(server.send(Request::post(&initialized).session(&id)).await.status, 202);
    let body = call(2, "echo").to_string();
    let reply = server.send(Request::post(&body).session(&id)).await.json();
    assert_eq!(reply["result"], json!({ "content": [{ "type": "text", "text": "{\"a\":1}" }] }));
    assert_eq!(server.send(Request::new("DELETE", "").session(&id)).await.status, 204);
    assert_eq!(server.send(Request::post(&list).session(&id)).await.status, 404);
}

#[tokio::test]
async fn a_session_id_works_only_with_its_own_credential_and_endpoint() {
    let server = Server::start().await;
    let id = server.session("alpha", "2025-11-25").await;
    let list = message(1, "tools/list", json!({})).to_string();
    assert_eq!(server.send(Request::post(&list).session(&id)).await.status, 200);
    // The same persona, another token.
    assert_eq!(server.send(Request::post(&list).session(&id).token("beta")).await.status, 404);
    assert_eq!(server.send(Request::new("GET", "").session(&id).token("beta")).await.status, 404);
    assert_eq!(server.send(Request::new("DELETE", "").session(&id).token("gamma")).await.status, 404);
    assert_eq!(server.send(Request::post(&list).session(&id).path("/mcp/coder/github")).await.status, 404);
    assert_eq!(server.send(Request::post(&list).session("0123")).await.status, 404);
    assert_eq!(server.send(Request::post(&list)).await.status, 400);
    let odd = Request::post(&list).session(&id).header("MCP-Protocol-Version", "1999-01-01");
    assert_eq!(server.send(odd).await.status, 400);
}

#[tokio::test]
async fn pr_11_ids_come_back_in_type_and_value() {
    let server = Server::start().await;
    let session = server.session("alpha", "2025-11-25").await;
    for id in [r#""1""#, "1", r#""init-1""#, "9007199254740993"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let reply = server.send(Request::post(&body).session(&session)).await;
        assert_eq!(reply.body, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[tokio::test]
async fn pr_13_two_clients_with_the_same_id_and_token_get_their_own_replies_and_steps() {
    let server = Server::start().await;
    let ask = async |token: &str, name: &str| {
        let session = server.session(token, "2025-11-25").await;
        let params =
            json!({ "name": "slow", "arguments": { "who": name }, "_meta": { "progressToken": "p" } });
        let body = message(1, "tools/call", params).to_string();
        server.send(Request::post(&body).session(&session).token(token)).await.events()
    };
    let (a, b) = tokio::join!(ask("alpha", "A"), ask("gamma", "B"));
    for (events, name) in [(a, "A"), (b, "B")] {
        assert_eq!(events.len(), 3, "two steps and the reply");
        assert_eq!(events[0]["params"], json!({ "progressToken": "p", "progress": 1 }));
        let text = events[2]["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!((&events[2]["id"], text), (&json!(1), format!(r#"{{"who":"{name}"}}"#).as_str()));
    }
    for (_, params) in server.fake.calls() {
        assert!(!params.contains("progressToken"), "{params}");
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_without_a_reply() {
    let server = Server::start().await;
    let session = server.session("alpha", "2025-11-25").await;
    let body = call(101, "stuck").to_string();
    let stuck = server.send(Request::post(&body).session(&session));
    let cancel = async {
        while server.fake.calls().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let note =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 101 } });
        let reply = server.send(Request::post(&note.to_string()).session(&session)).await;
        assert_eq!(reply.status, 202);
    };
    let (reply, ()) = tokio::join!(stuck, cancel);
    assert!(reply.events().is_empty());
    assert_eq!(server.fake.cancelled(), ["stuck"]);
}

#[tokio::test]
async fn the_stream_of_a_session_tells_of_changes_and_only_the_newest_is_open() {
    let server = Server::start().await;
    let session = server.session("alpha", "2025-11-25").await;
    let get = Request::new("GET", "").session(&session).header("Accept", "text/event-stream");
    let mut first = server.open(get.clone()).await;
    read_until(&mut first, |text| text.contains("\n:")).await;
    let mut second = server.open(get).await;
    read_until(&mut second, |text| text.contains("\n:")).await;
    read_until(&mut first, |text| text.ends_with("0\r\n\r\n")).await;
    server.fake.change(2);
    let text = read_until(&mut second, |text| text.contains("list_changed")).await;
    assert_eq!(events(&text), [json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })]);
    server.send(Request::new("DELETE", "").session(&session)).await;
    read_until(&mut second, |text| text.ends_with("0\r\n\r\n")).await;
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_revoked() {
    let server = Server::start().await;
    let session = server.session("alpha", "2025-11-25").await;
    let mut stream = server.open(Request::new("GET", "").session(&session)).await;
    read_until(&mut stream, |text| text.contains("\n:")).await;
    server.tokens.0.lock().unwrap().retain(|(token, _)| *token != "alpha");
    read_until(&mut stream, |text| text.ends_with("0\r\n\r\n")).await;
}

#[tokio::test]
async fn idle_sessions_end_and_open_streams_keep_theirs() {
    let server = Server::with(|options| options.session_idle = Duration::from_millis(150)).await;
    let idle = server.session("alpha", "2025-11-25").await;
    let kept = server.session("alpha", "2025-11-25").await;
    let _stream = server.open(Request::new("GET", "").session(&kept)).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    let ping = message(1, "ping", json!({})).to_string();
    assert_eq!(server.send(Request::post(&ping).session(&idle)).await.status, 404);
    assert_eq!(server.send(Request::post(&ping).session(&kept)).await.status, 200);
}

#[tokio::test]
async fn sessions_are_bounded_with_an_error_that_names_the_bound() {
    let server = Server::with(|options| options.max_sessions = 2).await;
    server.session("alpha", "2025-11-25").await;
    let second = server.session("alpha", "2025-11-25").await;
    let hello = message(1, "initialize", json!({ "protocolVersion": "2025-11-25" }));
    let reply = server.post(&hello).await;
    assert_eq!(reply.status, 429);
    assert!(reply.header("retry-after").is_some());
    assert!(reply.body.contains("2 sessions"), "{}", reply.body);
    server.send(Request::new("DELETE", "").session(&second)).await;
    assert_eq!(server.fake.ended().len(), 1, "what was opened for it can be closed");
    assert_eq!(server.post(&hello).await.status, 200);
}

#[tokio::test]
async fn batches_exist_in_one_revision_only() {
    let server = Server::start().await;
    let batch =
        json!([message(1, "ping", json!({})), call("b", "slow"), message(3, "initialize", json!({}))]);
    let batch = batch.to_string();
    let newer = server.session("alpha", "2025-06-18").await;
    let reply = server.send(Request::post(&batch).session(&newer)).await;
    assert_eq!((reply.status, reply.code()), (400, -32600));
    let older = server.session("alpha", "2025-03-26").await;
    let replies = server.send(Request::post(&batch).session(&older)).await.json();
    let ids: Vec<&Value> = replies.as_array().unwrap().iter().map(|reply| &reply["id"]).collect();
    assert_eq!(ids, [&json!(3), &json!(1), &json!("b")]);
    let notes = json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]).to_string();
    assert_eq!(server.send(Request::post(&notes).session(&older)).await.status, 202);
}

#[tokio::test]
async fn a_long_call_becomes_a_stream_with_comments_while_it_waits() {
    let server = Server::with(|options| {
        options.stream_after = Duration::from_millis(50);
        options.keep_alive = Duration::from_millis(50);
    })
    .await;
    let session = server.session("alpha", "2025-11-25").await;
    let body = call(1, "slow").to_string();
    let reply = server.send(Request::post(&body).session(&session)).await;
    assert_eq!(reply.header("content-type").unwrap(), "text/event-stream");
    assert!(reply.body.contains(":\n\n"), "a comment while nothing happens: {}", reply.body);
    assert_eq!(reply.events()[0]["id"], 1);
    let plain = Request::post(&body).session(&session).header("Accept", "application/json");
    assert_eq!(server.send(plain).await.json()["id"], 1);
}

#[tokio::test]
async fn a_stop_ends_streams_and_waits_for_calls() {
    let server = Server::start().await;
    let session = server.session("alpha", "2025-11-25").await;
    let mut stream = server.open(Request::new("GET", "").session(&session)).await;
    read_until(&mut stream, |text| text.contains("\n:")).await;
    let body = call(1, "slow").to_string();
    let mut running = server.open(Request::post(&body).session(&session)).await;
    while server.fake.calls().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(server.stop);
    let text = read_until(&mut running, |text| text.contains("\"id\":1")).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    read_until(&mut stream, |text| text.ends_with("0\r\n\r\n")).await;
    tokio::time::timeout(Duration::from_secs(3), server.task).await.unwrap().unwrap().unwrap();
}
