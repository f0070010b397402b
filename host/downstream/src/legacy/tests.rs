use super::*;

fn asked(params: &str) -> Result<&'static str, ErrorObject> {
    negotiate(Some(&RawValue::from_string(params.to_owned()).unwrap()))
}

#[test]
fn every_known_revision_is_spoken_and_an_unknown_one_gets_the_newest() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(asked(&format!(r#"{{"protocolVersion":"{version}"}}"#)).unwrap(), version);
    }
    assert_eq!(asked(r#"{"protocolVersion":"2031-01-01"}"#).unwrap(), "2025-11-25");
    assert_eq!(asked(r#"{"protocolVersion":"2026-07-28"}"#).unwrap(), "2025-11-25");
}

#[test]
fn initialize_without_a_version_is_refused() {
    assert_eq!(asked("{}").unwrap_err().code, -32602);
    assert_eq!(asked(r#"{"protocolVersion":1}"#).unwrap_err().code, -32602);
    assert_eq!(negotiate(None).unwrap_err().code, -32602);
}

#[test]
fn only_one_revision_has_batches() {
    assert!(has_batches("2025-03-26"));
    assert!(!has_batches("2025-06-18"));
    assert!(!has_batches("2024-11-05"));
}
