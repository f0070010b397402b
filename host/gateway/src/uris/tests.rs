use super::*;

#[test]
fn a_uri_that_two_servers_claim_is_rewritten_for_both_and_others_stay() {
    let claims = Claims::among([("a", "x://1"), ("b", "x://1"), ("a", "x://2"), ("a", "x://2")].into_iter());
    assert_eq!(claims.rewritten("a", "x://1").as_deref(), Some("x://toolgate.a///1"));
    assert_eq!(claims.rewritten("b", "x://1").as_deref(), Some("x://toolgate.b///1"));
    assert_eq!(claims.rewritten("a", "x://2"), None, "one server may list it twice");
    for (server, uri) in [("a", "x://1"), ("a.b", "urn:isbn:3"), ("c", "ui://view/{id}")] {
        assert_eq!(original(&rewrite(server, uri)), Some((server, uri.to_owned())));
    }
}

#[test]
fn a_uri_made_to_look_rewritten_is_shown_as_its_listers() {
    let claims = Claims::among([("evil", "x://toolgate.good///1")].into_iter());
    let shown = claims.rewritten("evil", "x://toolgate.good///1").unwrap();
    assert_eq!(original(&shown), Some(("evil", "x://toolgate.good///1".to_owned())));
}

#[test]
fn templates_match_what_they_can_expand_to() {
    assert!(matches("test://template/{id}/data", "test://template/42/data"));
    assert!(!matches("test://template/{id}/data", "test://template/4/2/data"));
    assert!(matches("file:///{+path}", "file:///a/b/c"));
    assert!(matches("db://{table}{?limit,offset}", "db://t?limit=3"));
    assert!(matches("db://{table}{?limit}", "db://t"));
    assert!(!matches("db://{table}", "dc://t"));
    assert!(matches("x://{a}{b}", "x://"));
    assert!(!matches("x://{unclosed", "x://1"));
    assert!(!matches("{a}", &"x".repeat(MAX_URI + 1)));
}
