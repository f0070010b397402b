//! Each condition, kept and broken.

use serde_json::{Value, json};
use toolgate_sdk::{Decision, Error};

use super::{Host, Rule, Settings, judge};

/// A stand-in for the host: patterns and directories as plain prefixes.
struct Stand;

impl Host for Stand {
    fn covers(&self, pattern: &str, label: &str) -> Result<bool, Error> {
        if pattern.is_empty() {
            return Err(Error::Invalid("no label".to_owned()));
        }
        Ok(label.starts_with(pattern))
    }

    fn matches(&self, rule: usize, text: &str) -> Result<bool, Error> {
        Ok(rule == 0 && text.contains(".md"))
    }

    fn within(&self, _: usize, path: &str) -> Result<bool, Error> {
        Ok(path.starts_with("/work/"))
    }
}

fn rules(rules: &Value) -> Vec<Rule> {
    serde_json::from_value::<Settings>(json!({ "rules": rules })).unwrap().rules
}

fn said(rule: &Value, arguments: &Value) -> Decision {
    judge(&rules(&json!([rule])), "mcp.call:files/write", arguments, &Stand).unwrap()
}

#[test]
fn each_condition_is_kept_and_broken() {
    for (condition, fine, broken) in [
        (json!({ "equals": { "a": [1, "x"] } }), json!({ "a": [1.0, "x"] }), json!({ "a": [1, "y"] })),
        (json!({ "equals": null }), json!(null), json!(0)),
        (json!({ "prefix": "draft-" }), json!("draft-1"), json!("final")),
        (json!({ "range": { "min": 1, "max": 10 } }), json!(10), json!(10.5)),
        (json!({ "range": { "max": 10 } }), json!(-5), json!("3")),
        (json!({ "pattern": ["*.md"] }), json!("a.md"), json!("a.sh")),
        (json!({ "within": ["/work"] }), json!("/work/a"), json!("/etc/passwd")),
        (json!({ "prefix": "x" }), json!("x"), json!(["x"])),
    ] {
        let mut rule = json!({ "calls": ["mcp.call:files"], "at": "/value" });
        rule.as_object_mut().unwrap().extend(condition.as_object().unwrap().clone());
        assert!(matches!(said(&rule, &json!({ "value": fine })), Decision::Abstain), "{rule}");
        let Decision::Deny(reason) = said(&rule, &json!({ "value": broken })) else { panic!("{rule}") };
        assert!(reason.contains("`/value`"), "{reason}");
        assert!(matches!(said(&rule, &json!({})), Decision::Deny(_)), "absent: {rule}");
    }
}

#[test]
fn a_rule_applies_to_its_calls_and_to_no_other() {
    let rules = rules(&json!([{ "calls": ["mcp.call:mail"], "at": "/to", "equals": "me" }]));
    assert!(matches!(judge(&rules, "mcp.call:files/write", &json!({}), &Stand), Ok(Decision::Abstain)));
    assert!(matches!(judge(&rules, "mcp.call:mail/send", &json!({}), &Stand), Ok(Decision::Deny(_))));
}

#[test]
fn optional_each_and_ask_do_what_they_say() {
    let base = json!({ "calls": ["mcp"], "at": "/paths", "within": ["/work"], "each": true, "optional": true, "otherwise": "ask" });
    assert!(matches!(said(&base, &json!({})), Decision::Abstain));
    assert!(matches!(said(&base, &json!({ "paths": ["/work/a", "/work/b"] })), Decision::Abstain));
    assert!(matches!(said(&base, &json!({ "paths": ["/work/a", "/etc"] })), Decision::Ask(_)));
    assert!(matches!(said(&base, &json!({ "paths": "/work/a" })), Decision::Ask(_)), "no list");
}

#[test]
fn a_denial_comes_before_a_question_and_the_reason_of_the_operator_is_told() {
    let rules = rules(&json!([
        { "calls": ["mcp"], "at": "/a", "equals": 1, "otherwise": "ask" },
        { "calls": ["mcp"], "at": "/b", "equals": 1, "reason": "house rule" },
    ]));
    let Ok(Decision::Deny(reason)) = judge(&rules, "mcp.call:x/y", &json!({}), &Stand) else { panic!() };
    assert!(reason.contains("house rule"), "{reason}");
}

#[test]
fn a_rule_that_is_none_is_an_error_and_never_skipped() {
    for rule in [
        json!({ "calls": ["mcp"], "at": "/a" }),
        json!({ "calls": ["mcp"], "at": "/a", "equals": 1, "prefix": "x" }),
        json!({ "calls": [""], "at": "/a", "equals": 1 }),
    ] {
        assert!(judge(&rules(&json!([rule])), "mcp.call:x/y", &json!({}), &Stand).is_err());
    }
    let unknown = json!({ "rules": [{ "calls": [], "at": "/a", "equal": 1 }] });
    assert!(serde_json::from_value::<Settings>(unknown).is_err());
}
