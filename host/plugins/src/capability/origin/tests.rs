use super::*;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn list(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn an_origin_covers_itself_and_nothing_that_only_looks_like_it() {
    let origins = Origins::parse("t", &list(&["https://api.example.com"])).unwrap();
    assert!(origins.cover(&url("https://api.example.com/any/path?q=1")));
    assert!(origins.cover(&url("https://API.example.com:443/")));
    for other in [
        "http://api.example.com/",
        "https://api.example.com:8443/",
        "https://api.example.com.evil.example/",
        "https://evilapi.example.com/",
        "https://example.com/",
        "https://api.example.com./",
        "ftp://api.example.com/",
    ] {
        assert!(!origins.cover(&url(other)), "{other}");
    }
}

#[test]
fn a_star_stands_for_whole_labels_and_never_for_the_name_itself() {
    let origins = Origins::parse("t", &list(&["https://*.example.com"])).unwrap();
    assert!(origins.cover(&url("https://a.example.com/")) && origins.cover(&url("https://a.b.example.com/")));
    for other in ["https://example.com/", "https://evilexample.com/", "https://.example.com.evil.example/"] {
        assert!(!origins.cover(&url(other)), "{other}");
    }
}

#[test]
fn what_means_more_or_less_than_an_origin_is_refused() {
    for text in [
        "",
        "api.example.com",
        "https://",
        "https://*",
        "https://*.com",
        "https://*.127.0.0.1",
        "https://a.*.example.com",
        "https://api*.example.com",
        "https://api.example.com/",
        "https://api.example.com/v1",
        "https://user@api.example.com",
        "https://api.example.com?x",
        "http://api.example.com",
        "http://127.0.0.1.nip.io",
        "ftp://api.example.com",
    ] {
        assert!(Origins::parse("t", &list(&[text])).is_err(), "{text}");
    }
    for text in ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:1", "https://10.0.0.1"] {
        assert!(Origins::parse("t", &list(&[text])).is_ok(), "{text}");
    }
}

#[test]
fn a_grant_can_only_narrow_but_the_operator_alone_names_this_machine() {
    let declared = list(&["https://*.example.com", "http://127.0.0.1:1"]);
    let open = narrowed("h", &declared, None).unwrap();
    assert!(open.cover(&url("https://a.example.com/")));
    assert!(!open.cover(&url("http://127.0.0.1:1/")), "a release does not open this machine");
    let granted = list(&["https://a.example.com", "http://127.0.0.1:9"]);
    let open = narrowed("h", &declared, Some(&granted)).unwrap();
    assert!(open.cover(&url("https://a.example.com/")) && !open.cover(&url("https://b.example.com/")));
    assert!(open.cover(&url("http://127.0.0.1:9/")) && !open.cover(&url("http://127.0.0.1:1/")));
    for wider in ["https://example.com", "https://evil.example", "https://*.evil.example"] {
        let error = narrowed("h", &declared, Some(&list(&[wider]))).unwrap_err();
        assert!(matches!(error, LoadErrorKind::Grant(_)), "{wider}");
    }
}
