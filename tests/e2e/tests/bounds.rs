//! Bounds of what is kept and of what one call may cost, reached where they are: what is full refuses with its
//! number, and a narrower word still finds room.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use serde_json::json;
use toolgate_e2e::{PATIENCE, Sandbox};

use crate::capabilities::{asks_http_and, http, install};
use crate::{ECHO, sandbox};

/// Changes the state behind the binary's back; `numbers(n)` counts from 1 to `count`.
fn fill(sandbox: &Sandbox, into: &str, count: u32, columns: &str) {
    let state = rusqlite::Connection::open(sandbox.data().join("state.db")).unwrap();
    let text = format!(
        "INSERT INTO {into} WITH RECURSIVE numbers(n) AS \
         (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) SELECT {columns} FROM numbers"
    );
    assert_eq!(state.execute(&text, []).unwrap(), usize::try_from(count).unwrap());
}

#[test]
fn gate_kept_grants_ten_thousand_wider_grants_are_kept_and_the_next_call_can_still_be_granted_once() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    sandbox.run(&ECHO).exits(3);
    let asks = sandbox.run(&["approvals", "list", "--json"]).exits(0).json();
    let ask = asks["asks"][0]["id"].as_str().unwrap();
    let digest = format!("'sha256:{}'", "0".repeat(64));
    let columns = format!(
        "'grant_' || n, 'ask_x', 'persona', 'default', NULL, 'other', {digest}, 'call', 'tool' || n, {digest}, \
         'me', 'cli', 0, NULL, NULL"
    );
    fill(&sandbox, "grants", 10_000, &columns);
    let refused = sandbox.run(&["approvals", "grant", ask, "--for", "persona"]).exits(1);
    assert!(refused.stderr.contains("10000 grants are kept, which is the limit"), "{refused:?}");
    sandbox.run(&ECHO).exits(3);
    sandbox.run(&["approvals", "grant", ask]).exits(0);
    sandbox.run(&ECHO).exits(0);
}

#[test]
fn gate_decided_ten_thousand_decisions_stand_and_where_there_are_more_nothing_passes() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "    capabilities:\n      allow: [\"mcp.call:fix\"]\n");
    sandbox.run(&ECHO).exits(0);
    let columns = "'default', 'mcp.call:other/t' || n, 'ask', 0, 'me', 0";
    fill(&sandbox, "standing", 9_999, columns);
    sandbox.run(&["mcp", "deny", "fix/slow"]).exits(0);
    let refused = sandbox.run(&["mcp", "deny", "fix/received"]).exits(1);
    assert!(refused.stderr.contains("10000 standing decisions are kept, which is the limit"), "{refused:?}");
    // What stands can be said again, and nothing of it is lost.
    sandbox.run(&["mcp", "deny", "fix/slow"]).exits(0);
    sandbox.run(&ECHO).exits(0);
    sandbox.run(&["mcp", "call", "fix.slow", "--json", "{}"]).exits(3);
    // More than can be read: what was left out could be a denial.
    fill(&sandbox, "standing", 1, "'default', 'mcp.call:other/more', 'ask', 0, 'me', 0");
    let refused = sandbox.run(&ECHO).exits(3);
    assert!(refused.stderr.contains("cannot be read"), "{refused:?}");
}

/// A server that says when somebody asks, and answers when it is told to.
fn asked_and_told() -> (String, Receiver<()>, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (asks, asked) = channel();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 2048]);
            if asks.send(()).is_err() || told.recv().is_err() {
                return;
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
        }
    });
    (origin, asked, tell)
}

#[test]
fn gate_reviews_a_call_whose_tool_changes_each_time_while_it_is_judged_is_given_up_after_four_times() {
    let (origin, asked, tell) = asked_and_told();
    let sandbox = sandbox();
    // A change where no pin looks, so that it is no drift.
    let tools = |note: u32| {
        json!([{ "name": "echo", "inputSchema": { "type": "object" }, "_meta": { "note": note } }])
            .to_string()
    };
    let path = sandbox.write("tools.json", tools(0));
    let ledger = sandbox.path("ledger").display().to_string();
    let guest = asks_http_and(&origin, "(call $said (i32.const 0) (i32.const 0) (i32.const 0))");
    let grants = format!("{{ http: {{ api: [\"{origin}\"] }} }}");
    install(&sandbox, &guest, http(), &grants, &["--tools", &path, "--watch", "--ledger", &ledger]);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.tool_names();
    client.send(
        r#"{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"fix__echo","arguments":{"message":"hi"}}}"#,
    );
    for review in 1..=4 {
        asked.recv_timeout(PATIENCE).unwrap();
        sandbox.write("tools.json", tools(review));
        let until = Instant::now() + PATIENCE;
        while client.request("tools/list", &json!({}))["result"]["tools"][0]["_meta"]["note"] != review {
            assert!(Instant::now() < until, "change {review} was not seen");
        }
        tell.send(()).unwrap();
    }
    let reply = client.reply_to("\"call\"");
    assert!(reply.contains("changed while the request waited, again and again"), "{reply}");
    assert!(!sandbox.read("ledger").contains("tools/call"), "{reply}");
    let events = sandbox.events();
    let of = |event: &str| events.iter().filter(|found| *found == event).count();
    assert_eq!((of("mcp_called"), of("mcp_failed")), (4, 4), "{events:?}");
}
