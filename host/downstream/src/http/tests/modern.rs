//! Requests that stand alone.

use std::time::Duration;

use super::client::{Request, Server, events, modern, modern_post, read_until};
use serde_json::json;

use crate::fake::CHATTY_STEPS;

#[tokio::test]
async fn a_modern_client_discovers_lists_and_calls_without_a_session() {
    let server = Server::start().await;
    let body = modern("d", "server/discover", json!({})).to_string();
    let reply = server.send(modern_post(&body, "server/discover", None)).await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("mcp-session-id").is_none());
    assert_eq!(reply.json()["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(reply.json()["result"]["resultType"], "complete");
    let body = modern(1, "tools/list", json!({})).to_string();
    let list = server.send(modern_post(&body, "tools/list", None).session("ignored")).await.json();
    assert_eq!(list["result"]["cacheScope"], "private");
    let body = modern(2, "tools/call", json!({ "name": "echo", "arguments": {} })).to_string();
    let reply = server.send(modern_post(&body, "tools/call", Some("echo"))).await.json();
    assert_eq!(reply["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolgate");
    let (caller, _) = server.fake.calls().remove(0);
    assert_eq!((caller.persona.as_str(), caller.credential.as_str()), ("coder", "token:a"));
}

#[tokio::test]
async fn headers_that_say_something_else_than_the_body_are_refused() {
    let server = Server::start().await;
    let body = modern(1, "tools/call", json!({ "name": "echo" })).to_string();
    let wrong = [
        modern_post(&body, "tools/list", Some("echo")),
        modern_post(&body, "tools/call", Some("other")),
        modern_post(&body, "tools/call", None),
        Request::post(&body).header("Mcp-Method", "tools/call").header("Mcp-Name", "echo"),
        Request::post(&body)
            .header("MCP-Protocol-Version", "2025-11-25")
            .header("Mcp-Method", "tools/call")
            .header("Mcp-Name", "echo"),
        modern_post(&body, "tools/call", Some("echo")).header("Mcp-Name", "echo"),
    ];
    for request in wrong {
        let reply = server.send(request).await;
        assert_eq!((reply.status, reply.code()), (400, -32020), "{}", reply.body);
    }
    assert!(server.fake.calls().is_empty());
    let encoded = modern_post(&body, "tools/call", Some("=?base64?ZWNobw==?="));
    assert_eq!(server.send(encoded).await.status, 200);
}

#[tokio::test]
async fn a_wrong_envelope_is_refused_with_the_code_that_says_why() {
    let server = Server::start().await;
    let later = modern(1, "tools/list", json!({})).to_string().replace("2026-07-28", "2099-01-01");
    let reply = server.send(
        Request::post(&later).header("MCP-Protocol-Version", "2099-01-01").header("Mcp-Method", "tools/list"),
    );
    let reply = reply.await;
    assert_eq!((reply.status, reply.code()), (400, -32022));
    assert_eq!(reply.json()["error"]["data"]["supported"], json!(["2026-07-28"]));
    let other =
        Request::post(&later).header("MCP-Protocol-Version", "2026-07-28").header("Mcp-Method", "tools/list");
    let reply = server.send(other).await;
    assert_eq!((reply.status, reply.code()), (400, -32020), "which revision is meant comes first");
    let bare = super::client::message(1, "tools/list", json!({})).to_string();
    let reply = server.send(modern_post(&bare, "tools/list", None)).await;
    assert_eq!((reply.status, reply.code()), (400, -32602));
}

#[tokio::test]
async fn what_this_era_has_not_is_not_found() {
    let server = Server::start().await;
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "nonsense"] {
        let body = modern(1, method, json!({})).to_string();
        let reply = server.send(modern_post(&body, method, None)).await;
        assert_eq!((reply.status, reply.code()), (404, -32601), "{method}");
    }
    for method in ["GET", "DELETE"] {
        let request = Request::new(method, "").header("MCP-Protocol-Version", "2026-07-28");
        assert_eq!(server.send(request).await.status, 405);
    }
    let body = modern(1, "tools/call", json!({ "name": "nobody" })).to_string();
    let reply = server.send(modern_post(&body, "tools/call", Some("nobody"))).await;
    assert_eq!((reply.status, reply.code()), (200, -32602));
}

#[tokio::test]
async fn a_call_whose_connection_closes_is_cancelled() {
    let server = Server::start().await;
    let body = modern(1, "tools/call", json!({ "name": "stuck" })).to_string();
    let socket = server.open(modern_post(&body, "tools/call", Some("stuck"))).await;
    while server.fake.calls().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(socket);
    let cancelled = async {
        while server.fake.cancelled().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(1), cancelled)
        .await
        .expect("closing the connection cancels the call");
}

#[tokio::test]
async fn a_streaming_call_whose_client_goes_away_is_cancelled() {
    let server = Server::with(|options| options.stream_after = Duration::from_millis(20)).await;
    let body = modern(1, "tools/call", json!({ "name": "stuck" })).to_string();
    let mut socket = server.open(modern_post(&body, "tools/call", Some("stuck"))).await;
    read_until(&mut socket, |text| text.contains("text/event-stream")).await;
    drop(socket);
    let cancelled = async {
        while server.fake.cancelled().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(1), cancelled)
        .await
        .expect("closing the stream cancels the call");
}

#[tokio::test]
async fn progress_comes_on_the_stream_of_its_request() {
    let server = Server::start().await;
    let params = json!({ "name": "slow", "_meta": { "progressToken": 5 } });
    let body = modern("s", "tools/call", params).to_string();
    let reply = server.send(modern_post(&body, "tools/call", Some("slow"))).await;
    assert_eq!(reply.header("x-accel-buffering").unwrap(), "no");
    let events = reply.events();
    assert_eq!(events[0]["params"], json!({ "progressToken": 5, "progress": 1 }));
    assert_eq!(events[2]["id"], "s");
    assert_eq!(events[2]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn steps_that_nobody_reads_are_dropped_and_do_not_hold_up_their_call() {
    let server = Server::start().await;
    let params = json!({ "name": "chatty", "_meta": { "progressToken": 5 } });
    let body = modern("c", "tools/call", params).to_string();
    let mut stream = server.open(modern_post(&body, "tools/call", Some("chatty"))).await;
    let told = async {
        while server.fake.finished().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), told).await.expect("the call ends although nobody reads");
    let text = read_until(&mut stream, |text| text.ends_with("0\r\n\r\n")).await;
    assert!(text.contains(r#""id":"c","result""#), "the reply is never dropped");
    assert!(text.matches("notifications/progress").count() < CHATTY_STEPS);
}

#[tokio::test]
async fn a_subscription_is_acknowledged_fed_kept_alive_and_ended_with_a_result() {
    let server = Server::start().await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let body = modern("sub", "subscriptions/listen", filter).to_string();
    let mut stream = server.open(modern_post(&body, "subscriptions/listen", None)).await;
    let text = read_until(&mut stream, |text| text.contains("\n:")).await;
    assert_eq!(events(&text)[0]["method"], "notifications/subscriptions/acknowledged");
    server.fake.change(3);
    let text = read_until(&mut stream, |text| text.contains("list_changed")).await;
    assert_eq!(events(&text)[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
    drop(server.stop);
    let text = read_until(&mut stream, |text| text.ends_with("0\r\n\r\n")).await;
    let last = events(&text).pop().unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!("sub"), &json!("complete")));
}
