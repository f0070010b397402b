use super::*;

fn refused(text: &[u8]) -> Refusal {
    read(text, &Limits::default()).unwrap_err()
}

#[test]
fn a_duplicate_key_is_refused_with_the_id_of_its_request() {
    let text = br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{"path":"/ok","path":"/etc/passwd"}}}"#;
    let refusal = refused(text);
    assert_eq!(refusal.error.code, -32600);
    assert_eq!(serde_json::to_string(&refusal.id.unwrap()).unwrap(), "\"a\"");
}

#[test]
fn broken_syntax_is_a_parse_error() {
    assert_eq!(refused(br#"{"jsonrpc":"2.0","id":1,"#).error.code, -32700);
}

#[test]
fn bytes_that_are_not_utf8_and_lone_surrogates_are_invalid_requests() {
    assert_eq!(refused(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}").error.code, -32600);
    assert_eq!(refused(br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#).error.code, -32600);
}

#[test]
fn a_batch_is_read_message_by_message_and_bounded() {
    let text = br#" [{"jsonrpc":"2.0","id":1,"method":"ping"},{"id":2}]"#;
    let Ok(Inbound::Batch(items)) = read(text, &Limits::default()) else { panic!("a batch") };
    assert!(items[0].is_ok());
    assert_eq!(items[1].as_ref().unwrap_err().error.code, -32600);
    assert_eq!(refused(b"[]").error.code, -32600);
    let many = format!("[{}]", vec!["{}"; MAX_BATCH + 1].join(","));
    assert_eq!(refused(many.as_bytes()).error.code, -32600);
}
