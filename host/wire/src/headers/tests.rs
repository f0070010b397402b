//! Headers repeat the body, exactly.

use proptest::prelude::*;

use super::*;
use crate::codes;
use crate::testing::config;

fn lookup<'h>(headers: &'h [(&'h str, &'h str)]) -> impl Fn(&str) -> Option<String> + 'h {
    |name| {
        headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| (*value).to_owned())
    }
}

const CALL: &str =
    r#"{"name":"get","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
const SOUND: [(&str, &str); 3] =
    [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "get")];

#[test]
fn values_are_plain_where_every_hop_keeps_them() {
    for plain in ["us-west1", "a b\tc", "=?base64?", "?=", "=?BASE64?eA==?=", "", "~!@"] {
        assert_eq!(encode_value(plain), plain);
    }
    assert_eq!(encode_value("é"), "=?base64?w6k=?=");
    for coded in [" a", "a ", "\ta", "a\nb", "\u{7f}", "=?base64?eA==?=", "=?base64??="] {
        assert!(encode_value(coded).starts_with("=?base64?") && encode_value(coded) != coded, "{coded:?}");
    }
}

#[test]
fn a_value_that_claims_to_be_base64_must_be() {
    for bad in ["=?base64?!?=", "=?base64?eA?=", "=?base64?/w==?="] {
        assert_eq!(decode_value(bad), None, "{bad}");
    }
    assert_eq!(decode_value(" =?base64?eA==?= "), Some("x".to_owned()));
    assert_eq!(decode_value("=?Base64?eA==?="), Some("=?Base64?eA==?=".to_owned()));
}

#[test]
fn the_name_header_repeats_what_the_method_is_about() {
    assert_eq!(mcp_name("tools/call", r#"{"name":"a\u0062"}"#).as_deref(), Some("ab"));
    assert_eq!(mcp_name("prompts/get", r#"{"name":"p"}"#).as_deref(), Some("p"));
    assert_eq!(mcp_name("resources/read", r#"{"uri":"file:///x"}"#).as_deref(), Some("file:///x"));
    assert_eq!(mcp_name("tasks/cancel", r#"{"taskId":"7"}"#).as_deref(), Some("7"));
    assert_eq!(mcp_name("tools/list", r#"{"name":"a"}"#), None);
    assert_eq!(mcp_name("tools/call", r#"{"name":1}"#), None);
}

#[test]
fn headers_that_repeat_the_body_pass() {
    assert_eq!(check("tools/call", Some(CALL), &lookup(&SOUND)), Ok(()));
    let coded = r#"{"name":" é "}"#;
    assert_eq!(
        check("tools/call", Some(coded), &lookup(&[SOUND[1], ("mcp-name", &encode_value(" é "))])),
        Ok(())
    );
    assert_eq!(check("server/discover", None, &lookup(&[("Mcp-Method", "server/discover")])), Ok(()));
}

#[test]
fn headers_that_say_something_else_are_a_mismatch() {
    let with = |position: usize, value: Option<&'static str>| {
        let mut headers = SOUND.to_vec();
        match value {
            Some(value) => headers[position].1 = value,
            None => drop(headers.remove(position)),
        }
        check("tools/call", Some(CALL), &lookup(&headers)).unwrap_err()
    };
    assert_eq!(with(0, Some("2025-11-25")).fault, HeaderFault::Different);
    assert_eq!(with(0, None).header, PROTOCOL_VERSION);
    assert_eq!(with(1, Some("tools/list")).header, METHOD);
    assert_eq!(with(1, Some("Tools/call")).fault, HeaderFault::Different);
    assert_eq!(with(1, None).fault, HeaderFault::Missing);
    assert_eq!(with(2, Some("drop")).header, NAME);
    assert_eq!(with(2, None).fault, HeaderFault::Missing);
    assert_eq!(with(2, Some("=?base64?!?=")).fault, HeaderFault::Undecodable);
    assert_eq!(with(2, Some("x")).to_error_object().code, codes::HEADER_MISMATCH);
    let nameless = check("tools/call", Some("{}"), &lookup(&SOUND[1..]));
    assert_eq!(nameless.unwrap_err().fault, HeaderFault::Unexpected);
}

const SCHEMA: &str = r#"{"type":"object","required":["x-mcp-header"],"default":{"x-mcp-header":1},"properties":{
    "region":{"type":"string","x-mcp-header":"Region"},"count":{"type":"integer","x-mcp-header":"Count"},
    "flag":{"type":"boolean","x-mcp-header":"Flag"},"x-mcp-header":{"type":"string"},
    "in/ner":{"type":"object","properties":{"deep":{"type":"string","x-mcp-header":"Deep"}}}},
    "$defs":{"x-mcp-header":{"type":"string"}},"dependentRequired":{"x-mcp-header":["region"]},"dependencies":{"x-mcp-header":["a"]}}"#;

#[test]
fn annotated_arguments_become_headers() {
    let arguments = r#"{"region":"köln","count":42.0,"flag":true,"in/ner":{"deep":"d"},"other":"x"}"#;
    let expected = [
        ("Mcp-Param-Region", "=?base64?a8O2bG4=?="),
        ("Mcp-Param-Count", "42"),
        ("Mcp-Param-Flag", "true"),
        ("Mcp-Param-Deep", "d"),
    ];
    let found = param_headers(SCHEMA, arguments).unwrap();
    assert_eq!(
        found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(check_params(SCHEMA, arguments, &lookup(&expected)), Ok(()));
}

#[test]
fn an_argument_that_is_absent_null_or_of_another_type_has_no_header() {
    for arguments in [
        "{}",
        r#"{"region":null,"count":null}"#,
        r#"{"region":1,"count":1.5,"flag":"true","in/ner":[]}"#,
        r#"{"count":9007199254740993}"#,
    ] {
        assert_eq!(param_headers(SCHEMA, arguments).unwrap(), [], "{arguments}");
        assert_eq!(check_params(SCHEMA, arguments, &lookup(&[])), Ok(()), "{arguments}");
    }
}

#[test]
fn param_headers_that_differ_from_the_arguments_are_a_mismatch() {
    let fault = |arguments: &str, headers: &[(&str, &str)]| {
        check_params(SCHEMA, arguments, &lookup(headers)).map_err(|error| error.fault)
    };
    assert_eq!(fault(r#"{"region":"a"}"#, &[("Mcp-Param-Region", "b")]), Err(HeaderFault::Different));
    assert_eq!(fault(r#"{"region":"a"}"#, &[]), Err(HeaderFault::Missing));
    assert_eq!(fault("{}", &[("Mcp-Param-Region", "a")]), Err(HeaderFault::Unexpected));
    assert_eq!(fault(r#"{"region":null}"#, &[("Mcp-Param-Region", "null")]), Err(HeaderFault::Unexpected));
    assert_eq!(fault(r#"{"count":42}"#, &[("mcp-param-count", "42.0")]), Ok(()));
    assert_eq!(fault(r#"{"count":42}"#, &[("mcp-param-count", "43")]), Err(HeaderFault::Different));
    assert_eq!(fault(r#"{"flag":true}"#, &[("mcp-param-flag", "True")]), Err(HeaderFault::Different));
    assert_eq!(fault("{}", &[("Mcp-Param-Unknown", "x")]), Ok(()));
}

#[test]
fn annotations_that_break_the_rules_are_refused() {
    let property = |body: &str| format!(r#"{{"type":"object","properties":{{"p":{body}}}}}"#);
    let fault = |schema: String| annotations(&schema).unwrap_err();
    for name in ["\"\"", "\"a b\"", "\"a:b\"", "\"é\"", "1", "{}"] {
        assert!(matches!(
            fault(property(&format!(r#"{{"type":"string","x-mcp-header":{name}}}"#))),
            SchemaHeaderError::BadName(_)
        ));
    }
    for kind in ["\"number\"", "\"array\"", "[\"string\",\"null\"]"] {
        assert!(matches!(
            fault(property(&format!(r#"{{"type":{kind},"x-mcp-header":"A"}}"#))),
            SchemaHeaderError::BadType(_)
        ));
    }
    assert!(matches!(fault(property(r#"{"x-mcp-header":"A"}"#)), SchemaHeaderError::BadType(_)));
    let inner = r#"{"type":"string","x-mcp-header":"A"}"#;
    for part in [
        "{\"items\":X}",
        "{\"oneOf\":[X]}",
        "{\"not\":X}",
        "{\"if\":X}",
        "{\"additionalProperties\":X}",
        "{\"items\":{\"properties\":{\"q\":X}}}",
        "{\"$defs\":{\"default\":X}}",
        "{\"dependentSchemas\":{\"q\":X}}",
    ] {
        assert!(
            matches!(fault(property(&part.replace('X', inner))), SchemaHeaderError::Unreachable(_)),
            "{part}"
        );
    }
    assert!(matches!(fault(inner.to_owned()), SchemaHeaderError::Unreachable(_)));
    let twice = r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-\u006dcp-header":"a"}}}"#;
    assert!(matches!(annotations(twice), Err(SchemaHeaderError::Duplicate(_))));
    let deep = format!("{}{inner}{}", "{\"items\":".repeat(100), "}".repeat(100));
    assert_eq!(fault(deep), SchemaHeaderError::TooDeep);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn encoding_and_decoding_give_the_value_back(value: String) {
        let encoded = encode_value(&value);
        prop_assert!(encoded.chars().all(|c| c.is_ascii_graphic() || c == ' ' || c == '\t'));
        prop_assert_eq!(decode_value(&encoded), Some(value));
    }

    #[test]
    fn decoding_any_value_does_not_panic(value in "(=\\?base64\\?)?[ -~]{0,12}(\\?=)?") {
        let _ = decode_value(&value);
    }
}
