use super::*;

/// SE-01, SE-03.
#[test]
fn no_control_or_hidden_character_of_a_server_is_printed_as_it_came() {
    let value = serde_json::json!({ "text": "ok\u{9b}31m\u{7f}\u{200b}\u{202e}\u{e0053} \u{e9}\u{1f600}" });
    let plain = serde_json::to_string(&value).expect("a value is text");
    let shown = visible(&plain);
    assert!(!shown.contains(|c: char| c.is_control() || toolgate_base::hidden::is_hidden(c)), "{shown}");
    assert!(shown.contains("\\u009b") && shown.contains("\\udb40\\udc53"), "{shown}");
    assert!(shown.contains("\u{e9}\u{1f600}"), "what a person sees stays: {shown}");
    let back: serde_json::Value = serde_json::from_str(&shown).expect("it is still JSON");
    assert_eq!(back, value, "and means the same");
}
