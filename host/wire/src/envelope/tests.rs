//! Envelopes are put on and taken off without a trace on the rest.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;
use crate::edit;
use crate::testing::{config, object_text};

fn raw(text: &str) -> Box<RawValue> {
    edit::raw(text.to_owned()).unwrap()
}

fn meta() -> ModernMeta {
    ModernMeta {
        protocol_version: MODERN.to_owned(),
        client_capabilities: raw(r#"{"elicitation":{}}"#),
        client_info: Some(raw(r#"{"name":"toolgate","version":"0.1.0"}"#)),
        log_level: None,
    }
}

#[test]
fn a_message_without_a_protocol_version_is_legacy() {
    for params in [
        None,
        Some("{}"),
        Some(r#"{"_meta":{}}"#),
        Some(r#"{"_meta":{"progressToken":1}}"#),
        Some(r#"{"_meta":null}"#),
    ] {
        let params = params.map(raw);
        assert!(modern_meta(params.as_deref()).unwrap().is_none());
    }
}

#[test]
fn a_modern_envelope_is_read() {
    let params = raw(
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"x":1.0},"io.modelcontextprotocol/logLevel":"info"},"name":"t"}"#,
    );
    let read = modern_meta(Some(&params)).unwrap().unwrap();
    assert_eq!((read.protocol_version.as_str(), read.client_capabilities.get()), (MODERN, r#"{"x":1.0}"#));
    assert_eq!((read.client_info.is_none(), read.log_level.as_deref()), (true, Some("info")));
}

#[test]
fn a_modern_envelope_that_breaks_the_rules_is_an_invalid_params_error() {
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let cases = [
        version.to_owned(),
        format!("{version},\"io.modelcontextprotocol/clientCapabilities\":[]"),
        format!("{version},{capabilities},\"io.modelcontextprotocol/clientInfo\":1"),
        format!("{version},{capabilities},\"io.modelcontextprotocol/logLevel\":{{}}"),
        format!("\"io.modelcontextprotocol/protocolVersion\":1,{capabilities}"),
    ];
    for members in cases {
        let params = raw(&format!("{{\"_meta\":{{{members}}}}}"));
        let error = modern_meta(Some(&params)).unwrap_err();
        assert_eq!(error.to_error_object().code, crate::codes::INVALID_PARAMS, "{members}");
    }
}

#[test]
fn adding_an_envelope_replaces_that_of_another_sender() {
    let old = r#"{"name":"t","_meta":{"progressToken":7,"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/clientInfo":{"name":"agent"}}}"#;
    let new = add_modern_meta(Some(old), &meta());
    assert_eq!(edit::get(&new, "/_meta/io.modelcontextprotocol~1logLevel"), None);
    assert_eq!(
        edit::get(&new, "/_meta/io.modelcontextprotocol~1clientInfo"),
        Some(r#"{"name":"toolgate","version":"0.1.0"}"#)
    );
    assert_eq!(progress_token(&new), Some("7"));
    assert!(new.starts_with(r#"{"name":"t","#));
    assert_eq!(strip_modern_meta(&new), r#"{"name":"t","_meta":{"progressToken":7}}"#);
}

#[test]
fn an_envelope_is_added_where_there_was_no_meta() {
    for params in [None, Some("{}"), Some(r#"{"_meta":null}"#), Some(r#"{"_meta":{}}"#)] {
        let new = add_modern_meta(params, &meta());
        assert!(modern_meta(Some(&raw(&new))).unwrap().is_some(), "{new}");
        assert!(matches!(&*strip_modern_meta(&new), "{}"), "{new}");
    }
}

#[test]
fn progress_tokens_are_set_and_removed_in_place() {
    assert_eq!(set_progress_token(None, "1"), r#"{"_meta":{"progressToken":1}}"#);
    assert_eq!(
        set_progress_token(Some(r#"{"_meta":{"a":1,"progressToken":"x"},"b":2}"#), "9"),
        r#"{"_meta":{"a":1,"progressToken":9},"b":2}"#
    );
    assert_eq!(set_progress_token(Some(r#"{"_meta":null}"#), "9"), r#"{"_meta":{"progressToken":9}}"#);
    assert_eq!(set_progress_token(Some("{}"), "no json"), "{}");
    assert_eq!(remove_progress_token(r#"{"_meta":{"progressToken":1},"b":2}"#), r#"{"b":2}"#);
    assert_eq!(remove_progress_token(r#"{"_meta":{}}"#), r#"{"_meta":{}}"#);
}

#[test]
fn a_complete_result_crosses_the_eras() {
    assert_eq!(complete_result(r#"{"content":[]}"#), r#"{"content":[],"resultType":"complete"}"#);
    assert_eq!(complete_result(r#"{"resultType":"task"}"#), r#"{"resultType":"task"}"#);
    assert_eq!(complete_result("[]"), "[]");
    assert_eq!(
        legacy_result(r#"{"resultType":"complete","tools":[],"ttlMs":5,"cacheScope":"private"}"#),
        r#"{"tools":[]}"#
    );
    assert_eq!(legacy_result(r#"{"ttlMs":5}"#), r#"{"ttlMs":5}"#);
    assert_eq!(
        legacy_result(r#"{"resultType":"input_required","ttlMs":5}"#),
        r#"{"resultType":"input_required","ttlMs":5}"#
    );
}

#[test]
fn a_result_says_what_it_is() {
    assert_eq!(result_kind("{}"), ResultKind::Complete);
    assert_eq!(result_kind(r#"{"resultType":"complete"}"#), ResultKind::Complete);
    assert_eq!(result_kind(r#"{"resultType":"input_required"}"#), ResultKind::InputRequired);
    assert_eq!(result_kind(r#"{"resultType":"task"}"#), ResultKind::Other("task".to_owned()));
    assert_eq!(result_kind(r#"{"resultType":null}"#), ResultKind::Other("null".to_owned()));
}

#[test]
fn every_known_revision_has_an_era() {
    assert_eq!(Era::of_version(MODERN), Some(Era::Modern));
    assert!(LEGACY.iter().all(|version| Era::of_version(version) == Some(Era::Legacy)));
    assert_eq!(Era::of_version("2027-01-01"), None);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn pr_03_an_envelope_put_on_and_taken_off_leaves_all_other_members(params in object_text()) {
        let with = add_modern_meta(Some(&params), &meta());
        let through = strip_modern_meta(&with);
        let others = |text: &str| -> Vec<(String, String)> {
            let members = edit::members(text).unwrap();
            members.into_iter().filter(|(key, _)| key != "_meta").map(|(key, value)| (key, value.to_owned())).collect()
        };
        prop_assert_eq!(others(&through), others(&params));
    }

    #[test]
    fn results_cross_the_eras_and_back(result in object_text()) {
        prop_assert_eq!(legacy_result(&complete_result(&result)), result);
    }
}
