//! Subscriptions over HTTP, on either side.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};
use toolgate_e2e::{Http, PATIENCE};

use super::{ALLOW, STATIC, UPDATED, World, modern, next};
use crate::sandbox;

/// A stream of events of a running gateway, read line by line.
pub(crate) struct Stream(BufReader<TcpStream>);

impl Stream {
    pub(crate) fn open(server: &Http, head: &str, body: &str) -> Self {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let token = server.token.trim();
        let text = format!(
            "{head}\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            server.address,
            body.len()
        );
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// The next message of this method.
    #[track_caller]
    pub(crate) fn next(&mut self, method: &str) -> Value {
        loop {
            let message = self.message();
            if message["method"] == method {
                return message;
            }
        }
    }

    /// The next message, whatever it is.
    #[track_caller]
    pub(crate) fn message(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            let Some(data) = line.trim().strip_prefix("data:") else { continue };
            if let Ok(message) = serde_json::from_str(data.trim()) {
                return message;
            }
        }
    }
}

#[test]
fn over_http_a_stream_hears_of_a_resource_and_its_end_ends_the_subscription() {
    let world = World::new(&[], ALLOW);
    let server = world.sandbox.serve_http();
    let body = json!({
        "jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen",
        "params": modern(json!({ "notifications": { "resourceSubscriptions": [STATIC] } })),
    });
    let head = "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen";
    let mut stream = Stream::open(&server, head, &body.to_string());
    let ack = stream.next("notifications/subscriptions/acknowledged");
    assert_eq!(ack["params"]["notifications"], json!({ "resourceSubscriptions": [STATIC] }), "{ack}");
    world.touch(STATIC);
    let told = stream.next(UPDATED);
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub", "{told}");
    drop(stream);
    world.ledger_with("resources/unsubscribe", 1);
}

#[test]
fn over_http_a_session_that_reads_late_misses_no_update_and_its_end_ends_the_subscription() {
    let world = World::new(&[], ALLOW);
    let server = world.sandbox.serve_http();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"by-hand","version":"1"}}}"#;
    let session = server.post("/mcp", &[], hello).header("mcp-session-id").unwrap().to_owned();
    let own = [("Mcp-Session-Id", session.as_str())];
    let subscribe =
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"fix://static"}}"#;
    assert_eq!(server.post("/mcp", &own, subscribe).message()["result"], json!({}));
    // Nobody reads yet.
    world.touch(STATIC);
    world.row("mcp_resource_updated");
    let head = format!("GET /mcp HTTP/1.1\r\nMcp-Session-Id: {session}");
    let mut stream = Stream::open(&server, &head, "");
    assert_eq!(stream.next(UPDATED)["params"], json!({ "uri": STATIC }));
    let (host, bearer) = (server.address.to_string(), format!("Bearer {}", server.token.trim()));
    let all = [("Host", host.as_str()), ("Authorization", bearer.as_str()), own[0]];
    assert_eq!(server.raw("DELETE", "/mcp", &all, "").status, 204);
    world.ledger_with("resources/unsubscribe", 1);
}

#[test]
fn servers_over_http_are_subscribed_to_in_the_way_of_their_era() {
    for (options, transport) in [
        (&["--era", "modern"][..], ""),
        (&["--era", "legacy"][..], ""),
        (&["--old-sse"][..], ", transport: sse"),
    ] {
        let sandbox = sandbox();
        let (touch, ledger) = (sandbox.path("touch"), sandbox.path("ledger"));
        let own = ["--full", "--touch", touch.to_str().unwrap(), "--ledger", ledger.to_str().unwrap()];
        let (url, _guard) = crate::http::upstream(&sandbox, &[&own[..], options].concat());
        let url = if transport.is_empty() { url } else { url.replace("/mcp/?k=a%2Fb", "/sse") };
        sandbox.configure(&format!(
            "servers:\n  fix: {{ url: {url:?}{transport} }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}"
        ));
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        let subscribed = client.request("resources/subscribe", &json!({ "uri": STATIC }));
        assert_eq!(subscribed["result"], json!({}), "{options:?}: {subscribed}");
        std::fs::write(&touch, "fix://static\n").unwrap();
        assert_eq!(next(&mut client, UPDATED)["params"], json!({ "uri": STATIC }), "{options:?}");
    }
}

#[test]
fn res_011_a_server_over_http_that_forgot_its_sessions_is_greeted_once_and_subscribed_to_again() {
    for era in ["legacy", "modern"] {
        let sandbox = sandbox();
        let (touch, ledger) = (sandbox.path("touch"), sandbox.path("ledger"));
        let own = ["--full", "--touch", touch.to_str().unwrap(), "--ledger", ledger.to_str().unwrap()];
        let (url, _guard) = crate::http::upstream(&sandbox, &[&own[..], &["--era", era]].concat());
        sandbox.configure(&format!(
            "servers:\n  fix: {{ url: {url:?} }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}"
        ));
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        let subscribed = client.request("resources/subscribe", &json!({ "uri": STATIC }));
        assert_eq!(subscribed["result"], json!({}), "{era}: {subscribed}");
        std::fs::write(&touch, "!forget\n").unwrap();
        // Nobody calls. The client is told to read again, and what changes after that is heard of.
        assert_eq!(next(&mut client, UPDATED)["params"], json!({ "uri": STATIC }), "{era}");
        std::fs::write(&touch, "!forget\nfix://static\n").unwrap();
        assert_eq!(next(&mut client, UPDATED)["params"], json!({ "uri": STATIC }), "{era}");
        assert_eq!(client.close(), 0);
        let greeted = std::fs::read_to_string(&ledger).unwrap().matches(r#""method":"initialize""#).count();
        assert_eq!(greeted, if era == "legacy" { 2 } else { 0 });
        let rows = sandbox.audit();
        let resync = rows.iter().filter(|row| row["details"]["resync"] == true).count();
        assert_eq!(resync, 1, "{era}: {rows:?}");
    }
}
