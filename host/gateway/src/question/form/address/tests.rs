use super::check;

// FM-10
#[test]
fn an_address_is_handed_on_as_browsers_write_it_with_its_host_in_punycode() {
    for (url, written, host) in [
        ("https://example.com", "https://example.com/", "example.com"),
        ("HTTPS://Example.COM/A?b=c#d", "https://example.com/A?b=c#d", "example.com"),
        ("https://example.com:443/", "https://example.com/", "example.com"),
        ("https://example.com:8443/a", "https://example.com:8443/a", "example.com:8443"),
        (
            "https://b\u{fc}cher.example/\u{fc}",
            "https://xn--bcher-kva.example/%C3%BC",
            "xn--bcher-kva.example",
        ),
        ("http://127.0.0.1:9/x", "http://127.0.0.1:9/x", "127.0.0.1:9"),
        ("https://e.com/?next=https://f.com/../x", "https://e.com/?next=https://f.com/../x", "e.com"),
    ] {
        let page = check(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!((page.written.as_str(), page.host.as_str()), (written, host), "{url}");
    }
}

// SE-05
#[test]
fn an_address_that_a_browser_reads_as_another_is_refused() {
    for url in [
        "https:\\\\evil.example",
        "https://good.example\\@evil.example/",
        "https:/evil.example/",
        "https:evil.example",
        "https:///evil.example/",
        "https://good.exam\nple/",
        "https://good.example/\tx",
        " https://good.example/",
        "https://good.example/ x",
        "https://good.example@evil.example/",
        "https://@evil.example/",
        "https://ex%61mple.com/",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://good.example/a/../../b",
        "https://good.example/a/%2e%2e/b",
        "https://g\u{43e}\u{43e}gle.com/",
        "https://\u{ff47}oogle.com/",
        "https://g\u{200b}oogle.com/",
    ] {
        assert!(check(url).is_err(), "{url:?}");
    }
}
