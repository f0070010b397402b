use super::*;
use toolgate_wire::Message;

fn request(method: &str, params: &str) -> Request {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let Message::Request(request) = Message::parse(&text).unwrap() else { panic!("a request") };
    request
}

#[test]
fn the_envelope_decides_the_era_of_each_message() {
    let modern = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;
    assert_eq!(era_of(&request("tools/list", modern)).unwrap(), Era::Modern);
    assert_eq!(era_of(&request("tools/list", "{}")).unwrap(), Era::Legacy);
    assert_eq!(era_of(&request("initialize", r#"{"protocolVersion":"2025-06-18"}"#)).unwrap(), Era::Legacy);
}

#[test]
fn a_missing_key_is_invalid_params_and_an_unknown_revision_names_the_known_ones() {
    let half = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    assert_eq!(era_of(&request("tools/list", half)).unwrap_err().code, -32602);
    assert_eq!(era_of(&request("server/discover", "{}")).unwrap_err().code, -32602);
    let later = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}"#;
    let error = era_of(&request("tools/list", later)).unwrap_err();
    assert_eq!(error.code, -32022);
    assert_eq!(error.data.unwrap().get(), r#"{"supported":["2026-07-28"],"requested":"2099-01-01"}"#);
}

#[test]
fn a_subscription_accepts_only_what_is_served_and_keeps_the_type_of_its_id() {
    let raw =
        RawValue::from_string(r#"{"notifications":{"toolsListChanged":true,"somethingElse":true}}"#.into());
    let filter = filter(Some(&raw.unwrap())).unwrap();
    let id: Id = serde_json::from_str("\"1\"").unwrap();
    let value: serde_json::Value =
        serde_json::from_str(&acknowledged(&id, &filter, &serde_json::Map::new())).unwrap();
    assert_eq!(value["params"]["notifications"], json!({ "toolsListChanged": true }));
    assert_eq!(value["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!("1"));
}

#[test]
fn a_subscription_without_a_filter_is_refused() {
    assert_eq!(filter(None).unwrap_err().code, -32602);
    let raw = RawValue::from_string(r#"{"notifications":[]}"#.into()).unwrap();
    assert_eq!(filter(Some(&raw)).unwrap_err().code, -32602);
}

#[test]
fn a_read_says_how_long_it_may_be_kept_and_is_never_for_others() {
    let read =
        |text: &str| read_result(RawValue::from_string(text.to_owned()).unwrap()).unwrap().get().to_owned();
    assert_eq!(read(r#"{"contents":[]}"#), r#"{"contents":[],"ttlMs":0,"cacheScope":"private"}"#);
    let shared = r#"{"cacheScope":"public","contents":[],"ttlMs":5000,"resultType":"complete"}"#;
    assert_eq!(read(shared), shared.replace("public", "private"));
    assert_eq!(
        read(r#"{"contents":[],"ttlMs":-1}"#),
        r#"{"contents":[],"ttlMs":0,"cacheScope":"private"}"#,
        "a negative time counts as none"
    );
    let asks = r#"{"resultType":"input_required","requestState":"s"}"#;
    assert_eq!(read(asks), asks);
}
