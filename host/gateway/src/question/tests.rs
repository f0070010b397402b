use toolgate_wire::Outcome;

use super::*;

fn form(params: &str) -> Result<Shown, String> {
    Kind::of(ELICIT, params).unwrap().shown("github", params)
}

/// ELI-002, ELI-003
#[test]
fn a_form_says_in_its_message_and_in_each_field_which_server_asks() {
    let shown = form(
        r#"{"message":"Why?\u001b[2J","requestedSchema":{"type":"object","properties":{"reason":{"type":"string"},"priority":{"type":"string","title":"How \u202eurgent","enum":["low","high"],"x-own":1.50}}},"_meta":{"progressToken":3}}"#,
    )
    .unwrap();
    let text = shown.params.get();
    let message = edit::get(text, "/message").and_then(edit::string).unwrap();
    assert_eq!(message, "⚠️ MCP server 'github' asks (this is NOT Toolgate):\nWhy?\\u{1b}[2J");
    let at = |pointer: &str| edit::get(text, pointer).and_then(edit::string).unwrap();
    assert_eq!(at("/requestedSchema/properties/reason/title"), "[MCP server 'github'] reason");
    assert_eq!(at("/requestedSchema/properties/priority/title"), "[MCP server 'github'] How \\u{202e}urgent");
    assert!(
        text.contains(r#""enum":["low","high"],"x-own":1.50"#) && !text.contains("progressToken"),
        "{text}"
    );
    assert_eq!(shown.fields, ["reason", "priority"]);
    assert!(shown.hid && shown.confirm.is_none());
}

/// ELI-008
#[test]
fn a_field_that_looks_like_a_secret_is_confirmed_first() {
    for (field, definition, sensitive) in [
        ("apiKey", "{\"type\":\"string\"}", true),
        ("x", "{\"type\":\"string\",\"description\":\"Your PASSWORD\"}", true),
        ("x", "{\"type\":\"string\",\"title\":\"Credentials\"}", true),
        ("city", "{\"type\":\"string\"}", false),
        ("cvv2", "{\"type\":\"number\"}", true),
        ("x", "{\"type\":\"string\",\"title\":\"P\u{430}ssw\u{3bf}rd\"}", true),
        ("x", "{\"type\":\"string\",\"description\":\"pass\u{200b}word\"}", true),
        ("x", "{\"type\":\"string\",\"format\":\"password\"}", true),
        ("x", "{\"type\":\"string\",\"enum\":[\"a\",\"b\"],\"enumNames\":[\"PIN\",\"none\"]}", true),
        ("x", "{\"type\":\"string\",\"oneOf\":[{\"const\":\"a\",\"title\":\"Passwort\"}]}", true),
    ] {
        let params = format!(
            r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{{"{field}":{definition}}}}}}}"#
        );
        let confirm = form(&params).unwrap().confirm;
        assert_eq!(confirm.is_some(), sensitive, "{definition}");
        if let Some(confirm) = confirm {
            assert!(
                confirm.get().contains("never filled in") && confirm.get().contains("sent to that server")
            );
        }
    }
}

/// ELI-008
#[test]
fn a_question_that_stands_in_the_message_alone_is_confirmed_where_something_can_be_typed() {
    for (message, property, sensitive) in [
        ("Please enter your P I N to go on.", "{\"type\":\"string\"}", true),
        ("Bitte das Kennwort eingeben", "{\"type\":\"string\"}", true),
        ("Saisissez votre mot de passe", "{\"type\":\"string\"}", true),
        ("Rotate the token now?", "{\"type\":\"boolean\"}", false),
        ("Rotate the token now?", "{\"type\":\"string\",\"enum\":[\"yes\",\"no\"]}", false),
        ("What are the main points of this map?", "{\"type\":\"string\"}", false),
    ] {
        let params = format!(
            r#"{{"message":"{message}","requestedSchema":{{"type":"object","properties":{{"x":{property}}}}}}}"#
        );
        let confirm = form(&params).unwrap().confirm;
        assert_eq!(confirm.is_some(), sensitive, "{message}");
        assert!(confirm.is_none_or(|confirm| confirm.get().contains("in its message")), "{message}");
    }
    let title = r#"{"message":"m","requestedSchema":{"type":"object","title":"Your password","properties":{"x":{"type":"string"}}}}"#;
    assert!(form(title).unwrap().confirm.is_some());
}

#[test]
fn only_an_explicit_word_shows_the_form_of_a_secret() {
    let said = |text: &str| confirmed(&Outcome::Result(edit::raw(text.to_owned()).unwrap()));
    assert_eq!(said(r#"{"action":"accept","content":{"decision":"continue"}}"#), Confirmed::Yes);
    assert_eq!(said(r#"{"action":"accept","content":{"decision":"decline"}}"#), Confirmed::No);
    assert_eq!(said(r#"{"action":"decline"}"#), Confirmed::No);
    assert_eq!(said(r#"{"action":"accept"}"#), Confirmed::Nothing);
    assert_eq!(said(r#"{"action":"cancel","content":{"decision":"continue"}}"#), Confirmed::Nothing);
}

/// SE-01 in a place that goes back to the server: it cannot be shown changed, so it is not shown.
#[test]
fn a_form_that_cannot_be_shown_as_it_is_is_declined() {
    let with = |property: &str| {
        format!(r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{property}}}}}"#)
    };
    for property in [
        r#"{"a":{"type":"string","enum":["yes","no\u200b"]}}"#,
        r#"{"a\u200b":{"type":"string"}}"#,
        r#"{"a":{"type":"object","properties":{}}}"#,
        r#"{"a":{}}"#,
        "[]",
    ] {
        assert!(form(&with(property)).is_err(), "{property}");
    }
    assert!(form(r#"{"requestedSchema":{"type":"object","properties":{}}}"#).is_err(), "no message");
    let many: Vec<String> = (0..65).map(|n| format!(r#""f{n}":{{"type":"string"}}"#)).collect();
    assert!(form(&with(&format!("{{{}}}", many.join(",")))).is_err());
}

/// FM-10
#[test]
fn a_page_is_https_or_on_this_machine_and_names_nobody() {
    for (url, fine) in [
        ("https://example.com/a?b=c", true),
        ("http://127.0.0.1:9/x", true),
        ("http://localhost/x", true),
        ("http://[::1]/x", true),
        ("http://example.com/", false),
        ("https://user@example.com/", false),
        ("https://a:b@example.com/", false),
        ("javascript:alert(1)", false),
        ("file:///etc/passwd", false),
        ("no address", false),
    ] {
        let params = format!(r#"{{"mode":"url","message":"m","url":"{url}"}}"#);
        assert_eq!(form(&params).is_ok(), fine, "{url}");
    }
    let long = format!(r#"{{"mode":"url","message":"m","url":"https://e.com/{}"}}"#, "a".repeat(2_048));
    assert!(form(&long).is_err());
}

#[test]
fn a_model_gets_nothing_hidden_and_no_context_of_other_servers() {
    let params = r#"{"messages":[{"role":"user","content":{"type":"text","text":"a\u200bb"}}],"includeContext":"allServers","maxTokens":10}"#;
    let shown = Kind::of(SAMPLE, params).unwrap().shown("s", params).unwrap();
    assert_eq!(
        shown.params.get(),
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"ab"}}],"maxTokens":10}"#
    );
    assert!(shown.hid);
}
