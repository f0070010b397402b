//! Settings, schemas, and what is told of their faults.

use toolgate_signing::Digest;

use super::check;
use crate::error::LoadErrorKind;

const SCHEMA: &str = r#"{"type":"object","properties":{"deny":{"type":"array","items":{"type":"string"}},
    "token":{"type":"string","maxLength":4}},"additionalProperties":false}"#;

fn faults(settings: &str) -> Vec<(String, String)> {
    match check(SCHEMA.as_bytes(), &Digest::of(SCHEMA.as_bytes()), settings) {
        Ok(()) => Vec::new(),
        Err(LoadErrorKind::SettingsRefused(faults)) => {
            faults.into_iter().map(|fault| (fault.pointer, fault.what)).collect()
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn settings_that_fit_pass_and_others_are_told_by_their_pointer() {
    assert!(faults(r#"{"deny":["a"]}"#).is_empty());
    assert_eq!(faults(r#"{"deny":["a",7]}"#)[0].0, "/deny/1");
    let unknown = faults(r#"{"dney":[]}"#);
    assert!(unknown[0].1.contains("dney"), "{unknown:?}");
}

#[test]
fn the_value_of_a_setting_is_in_no_message() {
    let told = faults(r#"{"token":"hunter2-and-more"}"#);
    assert_eq!(told[0].0, "/token");
    assert!(!told[0].1.contains("hunter2"), "{told:?}");
}

#[test]
fn a_schema_that_was_not_signed_or_wants_something_from_elsewhere_is_refused() {
    let other = Digest::of(b"another");
    assert!(matches!(check(SCHEMA.as_bytes(), &other, "{}"), Err(LoadErrorKind::Schema(_))));
    for text in [r#"{"$ref":"https://example.com/schema.json"}"#, r#"{"type":"obejct"}"#, "no json"] {
        let found = check(text.as_bytes(), &Digest::of(text.as_bytes()), "{}");
        assert!(matches!(found, Err(LoadErrorKind::Schema(_))), "{text}: {found:?}");
    }
}
