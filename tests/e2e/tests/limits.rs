//! Limits that one client, one token or one server runs into, while everybody else goes on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_e2e::{Http, PATIENCE, Reply, Sandbox};

use crate::sandbox;
use crate::servers::wait_until_gone;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

/// One fixture server with more keys of its entry, and more of the file.
fn configure(sandbox: &Sandbox, options: &[&str], keys: &str, rest: &str) {
    let entry = format!("{}{keys}", sandbox.fixture_entry("fix", options));
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}{rest}"));
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A modern call of `echo` in a thread that the client claims.
fn echo_in(server: &Http, thread: &str) -> Value {
    let params = r#"{"name":"fix__echo","arguments":{"message":"hi"}}"#;
    server.modern_with("/mcp", "1", "tools/call", params, &[("X-Toolgate-Thread-Id", thread)]).message()
}

#[test]
fn gate_storm_a_server_that_changes_without_end_is_listed_once_a_second() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    configure(&sandbox, &["--storm", "2500", "--ledger", &ledger], "", "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    // A call that lasts as long as the storm, and is answered in the middle of it.
    let result = client.call("fix__slow", &json!({ "ms": 2600, "say": "still here" }));
    assert_eq!(result["content"][0]["text"], "still here");
    let listings = sandbox.read("ledger").matches("tools/list").count();
    assert!((2..=4).contains(&listings), "{listings} listings in 2.5 s");
    let rows = sandbox.events().iter().filter(|event| *event == "mcp_tool_list_changed").count();
    assert!(rows <= 3, "{rows} rows");
}

#[test]
fn gate_connections_a_server_has_so_many_at_a_time_and_idle_ones_make_room() {
    let sandbox = sandbox();
    configure(
        &sandbox,
        &[],
        "    instance: session\n    max_connections: 2\n",
        "serve: { session_idle: 1500ms }\n",
    );
    let server = sandbox.serve_http();
    for thread in ["a", "b"] {
        assert_eq!(echo_in(&server, thread)["result"]["content"][0]["text"], "hi");
    }
    let refused = echo_in(&server, "c").to_string();
    assert!(refused.contains("max_connections") && refused.contains("2 connections"), "{refused}");
    // Threads a and b have no end of their own: their connections are closed because they idle.
    wait_until("a place for thread c", || echo_in(&server, "c")["result"]["content"][0]["text"] == "hi");
}

#[test]
fn gate_session_end_a_servers_process_of_one_session_ends_with_the_session() {
    let sandbox = sandbox();
    let pids = sandbox.path("pids").display().to_string();
    configure(&sandbox, &["--grandchild", &pids], "    instance: session\n", "");
    let server = sandbox.serve_http();
    let session = server.post("/mcp", &[], INITIALIZE).header("mcp-session-id").unwrap().to_owned();
    let headers = [("Mcp-Session-Id", session.as_str())];
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    assert!(server.post("/mcp", &headers, list).message().to_string().contains("fix__echo"));
    let written = sandbox.read("pids");
    let (host, bearer) = (server.address.to_string(), format!("Bearer {}", server.token.trim()));
    let delete =
        [("Host", host.as_str()), ("Authorization", bearer.as_str()), ("Mcp-Session-Id", session.as_str())];
    assert_eq!(server.raw("DELETE", "/mcp", &delete, "").status, 204);
    wait_until_gone(&written.split_whitespace().collect::<Vec<_>>());
}

/// The same server, as the holder of another token of the same persona.
fn as_another(sandbox: &Sandbox, server: &mut Http) -> String {
    let other = sandbox.run(&["token", "issue"]).exits(0).stdout;
    std::mem::replace(&mut server.token, other)
}

#[test]
fn gate_sessions_one_token_cannot_take_the_sessions_of_all() {
    let sandbox = sandbox();
    configure(&sandbox, &[], "", "serve: { max_sessions_per_token: 2, max_sessions: 3 }\n");
    let mut server = sandbox.serve_http();
    for _ in 0..2 {
        assert_eq!(server.post("/mcp", &[], INITIALIZE).status, 200);
    }
    let third = server.post("/mcp", &[], INITIALIZE);
    assert_eq!(third.status, 429, "{third:?}");
    assert!(third.body.contains("serve.max_sessions_per_token"), "{third:?}");
    as_another(&sandbox, &mut server);
    assert_eq!(server.post("/mcp", &[], INITIALIZE).status, 200, "the other token is not hurt");
    let full = server.post("/mcp", &[], INITIALIZE);
    assert!(full.status == 429 && full.body.contains("serve.max_sessions)"), "{full:?}");
}

#[test]
fn gate_running_one_token_cannot_run_modern_requests_without_end() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    configure(&sandbox, &["--ledger", &ledger], "", "serve: { max_running: 2 }\n");
    let mut server = sandbox.serve_http();
    let slow = r#"{"name":"fix__slow","arguments":{"ms":3000}}"#;
    let list = |server: &Http| -> Reply { server.modern("/mcp", "9", "tools/list", "{}") };
    assert_eq!(list(&server).status, 200);
    std::thread::scope(|scope| {
        let (address, token) = (server.address, server.token.clone());
        let body = modern_call(slow);
        for _ in 0..2 {
            let (body, token) = (body.clone(), token.clone());
            scope.spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.write_all(modern_head(address, &token, "fix__slow", &body).as_bytes()).unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).unwrap();
                assert!(text.starts_with("HTTP/1.1 200"), "{text}");
            });
        }
        wait_until("both calls run", || sandbox.read("ledger").matches("tools/call").count() == 2);
        let third = list(&server);
        assert_eq!(third.status, 429, "{third:?}");
        assert!(third.body.contains("serve.max_running"), "{third:?}");
        let first = as_another(&sandbox, &mut server);
        assert_eq!(list(&server).status, 200, "the other token is not hurt");
        server.token = first;
    });
    assert_eq!(list(&server).status, 200, "a place is free again when a request ends");
}

fn modern_call(params: &str) -> String {
    let inner = params.strip_suffix('}').unwrap();
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{inner},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

fn modern_head(address: std::net::SocketAddr, token: &str, name: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {name}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        token.trim(),
        body.len()
    )
}

#[test]
fn gate_head_a_connection_that_says_nothing_is_closed_soon_and_one_that_spoke_is_kept() {
    let sandbox = sandbox();
    configure(&sandbox, &[], "", "serve: { head_timeout: 400ms }\n");
    let server = sandbox.serve_http();
    let mut silent = TcpStream::connect(server.address).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
    let mut half = TcpStream::connect(server.address).unwrap();
    half.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
    half.write_all(b"POST /mcp HTTP/1.1\r\nHost: ").unwrap();
    let request = format!(
        "GET /nothing HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.address,
        server.token.trim()
    );
    let mut known = TcpStream::connect(server.address).unwrap();
    known.set_read_timeout(Some(PATIENCE)).unwrap();
    let ask = |stream: &mut TcpStream| {
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    assert!(ask(&mut known).contains("404"));
    for stream in [&mut silent, &mut half] {
        // The end, without a byte, or a reset; a time-out is the failure.
        let read = stream.read(&mut [0; 16]);
        let closed = match &read {
            Ok(count) => *count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        assert!(closed, "{read:?}");
    }
    assert!(ask(&mut known).contains("404"), "it spoke before, so it is kept longer");
}

#[test]
fn a_connection_without_a_valid_token_is_closed_with_its_refusal() {
    let sandbox = sandbox();
    configure(&sandbox, &[], "", "");
    let server = sandbox.serve_http();
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
    stream.write_all(format!("GET /mcp HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 401"), "{text}");
}

#[test]
fn gate_restarts_gw_03_a_server_that_fails_too_often_is_given_up_until_somebody_mends_it() {
    let sandbox = sandbox();
    let starts = sandbox.path("starts").display().to_string();
    sandbox.configure(&format!(
        "servers:\n  fix:\n    command: sh\n    args: [\"-c\", \"echo x >> {starts}; echo broken >&2; exit 7\"]\n    protocol: legacy\n    restarts: {{ first: 10ms, longest: 20ms, starts: 3, within: 60s }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}",
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let mut told = String::new();
    wait_until("it is given up", || {
        told = client.request("tools/call", &json!({ "name": "fix__echo", "arguments": {} })).to_string();
        told.contains("failed too often") || {
            // Unknown tools are answered in one way, so the reason stands in the log of the audit.
            sandbox.read("starts").lines().count() >= 3
        }
    });
    for _ in 0..20 {
        client.request("tools/call", &json!({ "name": "fix__echo", "arguments": {} }));
        std::thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(sandbox.read("starts").lines().count(), 3, "no start after the last");
}

#[test]
fn gate_restarts_gw_03_a_server_that_ends_after_each_start_is_given_up_too() {
    let sandbox = sandbox();
    configure(&sandbox, &[], "    restarts: { starts: 3, within: 60s }\n", "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for _ in 0..3 {
        assert_eq!(client.call("fix__echo", &json!({ "message": "up" }))["content"][0]["text"], "up");
        client.call("fix__die", &json!({}));
    }
    let refused = client.call("fix__echo", &json!({ "message": "up" })).to_string();
    assert!(refused.contains("failed too often") && refused.contains("restarts.starts"), "{refused}");
}
