//! Which URL is asked for, and what is read of what came back.

use super::{Fetch, Html, Settings, address, html};

fn fetch(change: impl FnOnce(&mut Settings)) -> Fetch {
    let mut settings = Settings::default();
    change(&mut settings);
    Fetch { settings }
}

fn check(url: &str) -> Result<(), String> {
    address::check(url, &["https".to_owned()], None)
}

#[test]
fn public_urls_pass() {
    for url in [
        "https://example.com",
        "https://example.com:8443/a?b#c",
        "https://EXAMPLE.com/",
        "https://xn--bcher-kva.example.com/",
        "https://93.184.216.34/",
        "https://[2606:2800:220:1:248:1893:25c8:1946]/",
        "https://example.com/a/../b?u=http://127.0.0.1@x",
    ] {
        assert_eq!(check(url), Ok(()), "{url}");
    }
}

#[test]
fn this_machine_and_private_networks_are_refused_in_every_spelling() {
    for host in [
        "localhost",
        "LOCALHOST",
        "a.localhost",
        "printer.local",
        "db.internal",
        "router.home.arpa",
        "intranet",
        "127.0.0.1",
        "127.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "127.0.0.1.",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "198.18.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fd00::1]",
        "[::127.0.0.1]",
    ] {
        assert!(check(&format!("https://{host}/x")).is_err(), "{host}");
    }
}

#[test]
fn what_two_readers_could_take_differently_is_refused() {
    for url in [
        "",
        "example.com",
        "//example.com",
        "http://example.com",
        "file:///etc/passwd",
        "https:///path",
        "https://",
        "https://user@example.com/",
        "https://example.com\\@127.0.0.1/",
        "https://exa mple.com/",
        "https://example.com/\u{7}",
        "https://example.com\t/",
        "https://ex\u{e4}mple.com/",
        "https://example.com:port/",
        "https://example..com/",
        "https://[::1/",
        "https://[nonsense]/",
        "https://a_b.example.com/",
    ] {
        assert!(check(url).is_err(), "{url:?}");
    }
    assert!(check(&format!("https://example.com/{}", "a".repeat(5000))).is_err());
}

#[test]
fn a_list_of_hosts_is_exact_and_a_star_stands_for_names_below() {
    let hosts = ["example.com".to_owned(), "*.docs.example".to_owned()];
    let within = |url: &str| address::check(url, &["https".to_owned()], Some(&hosts));
    for url in ["https://example.com/", "https://a.docs.example/", "https://a.b.docs.example/"] {
        assert_eq!(within(url), Ok(()), "{url}");
    }
    for url in [
        "https://a.example.com/",
        "https://docs.example/",
        "https://evildocs.example/",
        "https://example.com.evil.example/",
    ] {
        assert!(within(url).is_err(), "{url}");
    }
}

#[test]
fn the_length_is_cut_and_set_where_it_is_missing() {
    let fetch = fetch(|settings| settings.max_length = 100);
    let value =
        |asked: Option<serde_json::Value>| fetch.cut_length(asked.as_ref()).and_then(|edit| edit.value);
    assert_eq!(value(None).as_deref(), Some("100"));
    assert_eq!(value(Some(101.into())).as_deref(), Some("100"));
    assert_eq!(value(Some("many".into())).as_deref(), Some("100"));
    assert_eq!(value(Some((-1).into())).as_deref(), Some("100"));
    assert_eq!(value(Some(100.into())), None);
}

#[test]
fn html_becomes_its_words() {
    let page = "<!DOCTYPE html><html><head><title>t</title><style>p{}</style></head><body>\
        <h1>One &amp; two</h1><p>A<b>B</b>  c\n d</p><!-- <p>hidden</p> --><script>if (a < b) { x('</p>') }</script>\
        <ul><li title=\"a > b\">first</li><li>sec&#111;nd &#x2026; 1 < 2</li></ul></body></html>";
    assert!(html::is_html(page));
    assert_eq!(html::to_text(page), "One & two\nAB c d\nfirst\nsecond … 1 < 2");
    for text in ["plain", "a <html> b", "# md", "<note>x</note>"] {
        assert!(!html::is_html(text), "{text}");
    }
    for odd in
        ["<html", "<html><script>never ends", "<html>&#xffffffff;&nope;&", "<html><p title='", "<html></"]
    {
        html::to_text(odd);
    }
}

#[test]
fn a_text_is_cut_where_a_character_ends_and_says_so() {
    let short = fetch(|settings| settings.max_text = 5);
    let cut = short.reworked("ääää").unwrap();
    assert!(cut.starts_with("ää\n[cut by Toolgate: 4 of 8 bytes]"), "{cut}");
    assert_eq!(short.reworked("abc"), None);
    let keep = fetch(|settings| settings.html = Html::Keep);
    assert_eq!(keep.reworked("<html><p>x</p></html>"), None);
    assert_eq!(fetch(|_| {}).reworked("<html><p>x</p></html>").as_deref(), Some("x"));
}

#[test]
fn settings_are_strict_and_have_defaults() {
    let read = |text: &str| serde_json::from_str::<Settings>(text);
    assert_eq!(read("{}").unwrap().schemes, ["https"]);
    assert!(read(r#"{"max_len":1}"#).is_err());
}
