use super::*;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn beside(deed: Deed, params: &str) -> String {
    of(deed, &raw(params)).unwrap()
}

#[test]
fn every_member_that_is_not_an_argument_is_what_goes_beside_them() {
    let params =
        r#"{"name":"n","x":{"b":1,"a":2},"arguments":{"_meta":{"traceparent":"q"}},"_meta":{"v/k":1.50}}"#;
    assert_eq!(beside(Deed::Call, params), r#"{"_meta":{"v/k":1.5},"x":{"a":2,"b":1}}"#);
    assert_eq!(beside(Deed::Call, r#"{"name":"n","arguments":{"a":1}}"#), "");
    assert_eq!(beside(Deed::Call, r#"{"name":"n","_meta":{}}"#), "");
    assert_eq!(beside(Deed::Call, r#"{"name":"n","_meta":7}"#), r#"{"_meta":7}"#);
    assert_eq!(beside(Deed::Prompt, r#"{"name":"n","arguments":null,"z":0}"#), r#"{"z":0}"#);
    assert_eq!(beside(Deed::Read, r#"{"uri":"u","arguments":{}}"#), r#"{"arguments":{}}"#);
    let completion =
        r#"{"ref":{"type":"ref/prompt","name":"p","uri":"other"},"argument":{},"_meta":{"k":1}}"#;
    assert_eq!(beside(Deed::Complete, completion), r#"{"ref":{"uri":"other"}}"#);
}

#[test]
fn only_trace_ids_in_their_form_are_outside_and_nothing_hides_in_them() {
    let with = |key: &str, value: &str| {
        beside(Deed::Call, &format!(r#"{{"name":"n","_meta":{{"{key}":{value}}}}}"#))
    };
    assert_eq!(with("traceparent", &format!("\"{TRACE}\"")), "");
    assert_eq!(with("tracestate", "\"dd=s:1;p:ab,vendor@x=1\""), "");
    let longest = format!("\"k={}\"", "v".repeat(511));
    for (key, value) in [
        ("traceparent", "\"pay 100\""),
        ("traceparent", "5"),
        ("traceparent", "{\"a\":1}"),
        ("traceparent", "\"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01\""),
        ("tracestate", "\"pay\""),
        ("tracestate", "\"k=v\\n\""),
        ("tracestate", longest.as_str()),
        ("baggage", "\"k=v\""),
        ("progressToken2", "1"),
    ] {
        assert!(with(key, value).contains(key), "{key}: {value}");
    }
    let completion = format!(r#"{{"argument":{{}},"_meta":{{"traceparent":"{TRACE}"}}}}"#);
    assert_eq!(bound(Deed::Complete, &completion).unwrap(), r#"{"argument":{}}"#);
    let arguments = format!(r#"{{"_meta":{{"traceparent":"{TRACE}"}}}}"#);
    assert_eq!(bound(Deed::Call, &arguments).unwrap(), arguments);
}

#[test]
fn what_is_addressed_to_toolgate_goes_no_further_however_its_key_is_written() {
    let strip = |params: &str| without_claims(&raw(params)).unwrap().map(|rest| rest.get().to_owned());
    let params = r#"{"name":"n","_meta":{"toolgate/run_id":"r","toolgate/thread_id":"t","k":1}}"#;
    assert_eq!(strip(params).as_deref(), Some(r#"{"name":"n","_meta":{"k":1}}"#));
    let escaped = r#"{"name":"n","_meta":{"toolg\u0061te/persona":"p"}}"#;
    assert_eq!(strip(escaped).as_deref(), Some(r#"{"name":"n"}"#));
    assert_eq!(strip(r#"{"name":"toolgate/run_id","_meta":{"toolgate/other":1}}"#), None);
}
