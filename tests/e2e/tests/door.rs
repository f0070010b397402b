//! The strict door: what a policy judged is what a server reads.

use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

/// A server that notes what reaches it, and a client.
fn noting() -> (Sandbox, Stdio) {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    (sandbox, client)
}

#[test]
fn gate_door_a_message_with_a_key_twice_reaches_no_server() {
    let (sandbox, mut client) = noting();
    client.send(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"fix__echo","arguments":{"path":"/ok","path":"/etc/passwd"}}}"#);
    let reply = client.reply_to("5");
    assert!(reply.contains("-32600"), "{reply}");
    let after = client.call("fix__echo", &serde_json::json!({ "message": "next" }));
    assert_eq!(after["content"][0]["text"], "next", "the session goes on");
    assert!(!sandbox.read("ledger").contains("/etc/passwd"));
}

#[test]
fn a_batch_of_more_than_64_messages_is_refused_and_nothing_of_it_runs() {
    let (sandbox, mut client) = noting();
    let batch = |count: usize| {
        let call = |id| {
            format!(
                r#"{{"jsonrpc":"2.0","id":"b{id}","method":"tools/call","params":{{"name":"fix__echo","arguments":{{"message":"batched"}}}}}}"#
            )
        };
        format!("[{}]", (0..count).map(call).collect::<Vec<_>>().join(","))
    };
    client.send(&batch(65));
    let refused = client.line();
    assert!(refused.contains("-32600") && refused.contains("more than 64 messages"), "{refused}");
    let after = client.call("fix__echo", &serde_json::json!({ "message": "next" }));
    assert_eq!(after["content"][0]["text"], "next", "the session goes on");
    assert!(!sandbox.read("ledger").contains("batched"));
}

#[test]
fn a_message_that_is_nested_deeper_than_64_reaches_no_server() {
    let (sandbox, mut client) = noting();
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(
            r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{{"name":"fix__echo","arguments":{{"message":"deep","more":{open}1{close}}}}}}}"#
        )
    };
    client.send(&nested(70));
    let refused = client.reply_to("\"deep\"");
    assert!(
        refused.contains("-32600") && refused.contains("nested deeper than the limit of 64 levels"),
        "{refused}"
    );
    assert!(!sandbox.read("ledger").contains("deep"));
    client.send(&nested(40));
    assert!(client.reply_to("\"deep\"").contains("result"));
}

#[test]
fn st_04_a_byte_order_mark_before_the_first_message_is_no_message() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&["--bom"], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.send_bytes(b"\xEF\xBB\xBF");
    client.initialize();
    let result = client.call("fix__echo", &serde_json::json!({ "message": "bom" }));
    assert_eq!(result["content"][0]["text"], "bom");
}

#[test]
fn st_05_blank_lines_line_ends_and_chunks_make_no_difference() {
    for options in [&["--crlf"][..], &["--crlf", "--dribble"], &["--dribble"]] {
        let sandbox = sandbox();
        sandbox.configure_fixture(options, ALLOW);
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        for byte in b"\r\n   \n{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/call\",\"params\":{\"name\":\"fix__echo\",\"arguments\":{\"message\":\"slow bytes\"}}}\r\n" {
            client.send_bytes(std::slice::from_ref(byte));
        }
        let reply = client.reply_to("\"x\"");
        assert!(reply.contains("slow bytes"), "{options:?}: {reply}");
    }
}
