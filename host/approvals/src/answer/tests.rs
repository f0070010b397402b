//! An answer to this ask counts; everything else is refused for its own reason.

use serde_json::{Value, json};
use toolgate_signing::{Digest, SigningKey, seal};
use toolgate_store::{AskAbout, AskBinding, AskState};

use super::*;

fn ask() -> Ask {
    let digest = |text: &str| Digest::of(text.as_bytes());
    Ask {
        id: "ask_00112233445566aa".to_owned(),
        binding: AskBinding {
            caller: "default stdio".to_owned(),
            session: "s-1".to_owned(),
            server_identity: digest("server"),
            definition: digest("definition"),
            arguments: digest("arguments"),
            plugin_set: digest("plugins"),
        },
        about: AskAbout::default(),
        state: AskState::Pending,
        created_at_ms: 0,
        expires_at_ms: 1_000,
        answered_by: None,
        surface: None,
    }
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32])
}

fn payload() -> Value {
    let ask = ask();
    json!({ "ask": ask.id, "call": ask.call_digest(), "decision": "grant", "approver": "Ada" })
}

fn read(payload: &str, payload_type: &str, signer: u8) -> Result<Said, AnswerError> {
    let envelope = seal(payload_type, payload.as_bytes(), &[&key(signer)]).unwrap();
    read_answer(&envelope, &ask(), &[key(1).public(), key(2).public()])
}

#[test]
fn yes_and_no_of_any_of_the_keys_count_and_name_who_said_it() {
    for signer in [1, 2] {
        let said = read(&payload().to_string(), ANSWER_TYPE, signer).unwrap();
        assert!(
            said.grant && said.by.contains("Ada") && said.by.contains(key(signer).public().id().as_str())
        );
    }
    let mut no = payload();
    no["decision"] = json!("deny");
    assert!(!read(&no.to_string(), ANSWER_TYPE, 1).unwrap().grant);
}

#[test]
fn another_key_another_type_another_ask_another_call_and_another_shape_are_refused() {
    assert!(matches!(read(&payload().to_string(), ANSWER_TYPE, 3), Err(AnswerError::Signature(_))));
    assert!(matches!(
        read(&payload().to_string(), "application/vnd.in-toto+json", 1),
        Err(AnswerError::Signature(_))
    ));
    let with = |key: &str, value: Value| {
        let mut payload = payload();
        payload[key] = value;
        read(&payload.to_string(), ANSWER_TYPE, 1).unwrap_err()
    };
    assert!(matches!(with("ask", json!("ask_1")), AnswerError::Ask(..)));
    let mut later = ask();
    later.expires_at_ms += 1;
    assert!(matches!(with("call", json!(later.call_digest())), AnswerError::Call));
    for (key, value) in [
        ("decision", json!("always")),
        ("approver", json!("")),
        ("approver", json!("Ada\u{1b}[2J")),
        ("approver", json!("A".repeat(257))),
        ("scope", json!("persona")),
    ] {
        assert!(matches!(with(key, value.clone()), AnswerError::Payload(_)), "{key}: {value}");
    }
}

#[test]
fn bytes_that_are_no_envelope_are_refused() {
    for bytes in [&b""[..], b"{}", b"yes", b"{\"payloadType\":1}"] {
        assert!(matches!(read_answer(bytes, &ask(), &[key(1).public()]), Err(AnswerError::Signature(_))));
    }
}
