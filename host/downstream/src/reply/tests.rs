use super::*;

fn result(text: &str) -> Outcome {
    Outcome::Result(RawValue::from_string(text.to_owned()).unwrap())
}

fn dressed(era: Era, text: &str) -> serde_json::Value {
    match dress(era, result(text)) {
        Outcome::Result(raw) => serde_json::from_str(raw.get()).unwrap(),
        Outcome::Error(error) => panic!("{}", error.message),
    }
}

#[test]
fn a_modern_result_says_that_it_is_complete_and_who_made_it() {
    let value = dressed(Era::Modern, r#"{"content":[]}"#);
    assert_eq!(value["resultType"], "complete");
    assert_eq!(value["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolgate");
}

#[test]
fn a_server_behind_cannot_claim_to_be_the_server_in_front() {
    let value = dressed(
        Era::Modern,
        r#"{"content":[],"_meta":{"x":1,"io.modelcontextprotocol/serverInfo":{"name":"other"}}}"#,
    );
    assert_eq!(value["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolgate");
    assert_eq!(value["_meta"]["x"], 1);
}

#[test]
fn a_legacy_result_has_no_modern_members_and_never_hides_a_question() {
    let value = dressed(Era::Legacy, r#"{"resultType":"complete","content":[],"future":1}"#);
    assert_eq!(value, json!({ "content": [], "future": 1 }));
    let outcome = dress(Era::Legacy, result(r#"{"resultType":"input_required","requestState":"s"}"#));
    assert!(matches!(outcome, Outcome::Error(_)));
}

#[test]
fn unknown_fields_and_number_text_of_a_result_survive() {
    let text = r#"{"content":[],"n":123456789012345678901234567890,"future":[1.0]}"#;
    let Outcome::Result(raw) = dress(Era::Modern, result(text)) else { panic!("a result") };
    assert!(raw.get().contains(r#""n":123456789012345678901234567890,"future":[1.0]"#), "{}", raw.get());
}
