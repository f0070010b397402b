//! Which names a plugin can have.

use super::Name;

#[test]
fn a_name_has_a_namespace_and_one_alone_is_local() {
    assert_eq!(Name::parse("acme/guard").unwrap().to_string(), "acme/guard");
    assert_eq!(Name::parse("guard").unwrap().to_string(), "local/guard");
    assert_eq!(Name::parse("acme/guard-2").unwrap().short(), "guard-2");
}

#[test]
fn a_name_that_a_release_could_not_state_is_refused_with_what_would_do() {
    for wrong in
        ["", "/", "acme/", "/guard", "Acme/guard", "a/b/c", "acme/1guard", "acme/../x", "acme/x-", "a b"]
    {
        let error = Name::parse(wrong).unwrap_err().to_string();
        assert!(error.contains("NAMESPACE/NAME"), "{wrong}: {error}");
    }
}
