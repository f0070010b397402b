//! The rule over the two lists of labels, and the text of a denial.

use toolgate_sdk::Decision;

use super::{decide, denial};

fn none() -> String {
    "no label".to_owned()
}

#[test]
fn an_allowed_label_lets_the_request_pass_and_is_named() {
    let Decision::Allow(reason) = decide(None, Some("mcp.call:github".to_owned()), none) else {
        panic!("must allow");
    };
    assert!(reason.contains("`mcp.call:github`"), "{reason}");
}

#[test]
fn apr_001_a_label_that_requires_approval_asks() {
    assert!(matches!(decide(Some("db.query:own".to_owned()), None, none), Decision::Ask(_)));
}

#[test]
fn require_approval_wins_where_both_lists_cover_the_request() {
    let decision =
        decide(Some("mcp.call:github/delete".to_owned()), Some("mcp.call:github".to_owned()), none);
    let Decision::Ask(reason) = decision else {
        panic!("must ask");
    };
    assert!(reason.contains("`mcp.call:github/delete`"), "{reason}");
}

#[test]
fn cap_023_without_a_matching_label_it_is_denied() {
    assert_eq!(decide(None, None, none), Decision::Deny("no label".to_owned()));
}

#[test]
fn trb_010_a_denial_names_server_and_label_and_both_ways_to_grant() {
    let text = denial("dev", "github", "mcp.call:github/create_issue");
    for part in [
        "`github`",
        "`mcp.call:github/create_issue`",
        "personas.dev.capabilities.allow",
        "personas.dev.capabilities.require_approval",
    ] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}
