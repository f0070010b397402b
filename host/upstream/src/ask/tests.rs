use super::*;
use toolgate_wire::envelope::MODERN;

fn raw(text: &str) -> Box<RawValue> {
    edit::raw(text.to_owned()).unwrap()
}

fn prepared(method: &str, params: Option<&str>, modern: bool, token: Option<u64>) -> String {
    let meta = ModernMeta {
        protocol_version: MODERN.to_owned(),
        client_capabilities: raw("{}"),
        client_info: Some(raw(r#"{"name":"toolgate","version":"0"}"#)),
        log_level: None,
    };
    let params = params.map(raw);
    let meta = modern.then_some(&meta);
    prepare("s", method, params.as_deref(), meta, token).unwrap().get().to_owned()
}

/// PR-09
#[test]
fn a_call_without_arguments_is_sent_with_empty_ones() {
    for given in [r#"{"name":"t"}"#, r#"{"name":"t","arguments":null}"#] {
        assert_eq!(prepared("tools/call", Some(given), false, None), r#"{"name":"t","arguments":{}}"#);
    }
    let own = r#"{"name":"t","arguments":{"a":1.00,"b":9007199254740993}}"#;
    assert_eq!(prepared("tools/call", Some(own), false, None), own, "nothing else is touched");
    assert_eq!(prepared("tools/list", None, false, None), "{}");
}

/// PR-13: the client's progress token and envelope never go upstream.
#[test]
fn token_and_envelope_are_this_connections_own() {
    let given = r#"{"name":"t","arguments":{},"_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"traceparent":"00-x"}}"#;
    let legacy = prepared("tools/call", Some(given), false, None);
    assert_eq!(legacy, r#"{"name":"t","arguments":{},"_meta":{"traceparent":"00-x"}}"#);
    let with_token = prepared("tools/call", Some(given), false, Some(7));
    assert_eq!(edit::get(&with_token, "/_meta/progressToken"), Some("7"));
    let modern = prepared("tools/call", Some(given), true, Some(8));
    assert_eq!(edit::get(&modern, "/_meta/io.modelcontextprotocol~1clientCapabilities"), Some("{}"));
    assert_eq!(edit::get(&modern, "/_meta/progressToken"), Some("8"));
    assert_eq!(edit::get(&modern, "/_meta/traceparent"), Some("\"00-x\""));
}

#[test]
fn params_that_are_no_object_are_not_sent() {
    let list = raw("[1]");
    let error = prepare("s", "tools/call", Some(&list), None, None).unwrap_err();
    assert!(!error.may_have_run() && error.to_string().contains("no object"), "{error}");
}
