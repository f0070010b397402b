//! The strict door: what a policy judged is what a server reads.

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

#[test]
fn gate_door_a_message_with_a_key_twice_reaches_no_server() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    sandbox.configure_fixture(&["--ledger", &ledger], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client.send(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"fix__echo","arguments":{"path":"/ok","path":"/etc/passwd"}}}"#);
    let reply = client.reply_to("5");
    assert!(reply.contains("-32600"), "{reply}");
    let after = client.call("fix__echo", &serde_json::json!({ "message": "next" }));
    assert_eq!(after["content"][0]["text"], "next", "the session goes on");
    assert!(!sandbox.read("ledger").contains("/etc/passwd"));
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
