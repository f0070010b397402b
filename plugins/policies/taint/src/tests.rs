//! What is public, and what becomes of it.

use toolgate_sdk::{Decision, Error};

use super::{Settings, Then, covered, judge};

fn settings(text: &str) -> Result<Settings, serde_json::Error> {
    serde_json::from_str(text)
}

#[test]
fn a_public_write_passes_until_something_private_was_read() {
    assert!(matches!(judge(Then::Ask, "mcp.call:web/post", None), Decision::Abstain));
    let Decision::Ask(reason) = judge(Then::Ask, "mcp.call:web/post", Some("mcp.call:mail/read".into()))
    else {
        panic!("must ask");
    };
    assert!(reason.contains("`mcp.call:mail/read`") && reason.contains("`mcp.call:web/post`"), "{reason}");
    assert!(matches!(judge(Then::Deny, "mcp.call:web/post", Some(String::new())), Decision::Deny(_)));
}

#[test]
fn the_first_pattern_that_covers_decides_and_a_pattern_that_is_none_is_an_error() {
    let exact = |pattern: &str, label: &str| {
        if pattern.is_empty() { Err(Error::Invalid("empty".to_owned())) } else { Ok(pattern == label) }
    };
    let patterns = ["a".to_owned(), "b".to_owned()];
    assert_eq!(covered(&patterns, "b", exact), Ok(true));
    assert_eq!(covered(&patterns, "c", exact), Ok(false));
    assert!(covered(&[String::new()], "b", exact).is_err());
    assert_eq!(covered(&[], "b", exact), Ok(false));
}

#[test]
fn settings_are_strict_and_ask_by_default() {
    assert_eq!(settings(r#"{"private":[],"public":[]}"#).unwrap().then, Then::Ask);
    assert_eq!(settings(r#"{"private":[],"public":[],"then":"deny"}"#).unwrap().then, Then::Deny);
    for wrong in [
        "{}",
        r#"{"private":[]}"#,
        r#"{"private":[],"public":[],"than":"ask"}"#,
        r#"{"private":[],"public":[],"then":"allow"}"#,
    ] {
        assert!(settings(wrong).is_err(), "{wrong}");
    }
}
