use toolgate_gateway::Lane;

use super::*;
use crate::fake::Fake;

fn agree(claims: Claims, persona: &str) -> Result<Claims, ErrorObject> {
    claims.agree(
        "message",
        &Credential { id: "token:1".into(), persona: persona.into(), lane: Lane::Main },
        &Fake::new(),
    )
}

fn claims(params: &str) -> Result<Claims, ErrorObject> {
    Claims::of_params(Some(&RawValue::from_string(params.to_owned()).unwrap()))
}

#[test]
fn a_claimed_persona_opens_nothing_and_a_wrong_one_is_refused() {
    let same = claims(r#"{"_meta":{"toolgate/persona":"coder","toolgate/run_id":"r1"}}"#).unwrap();
    assert!(agree(same.clone(), "coder").is_ok());
    assert_eq!(same.run_id.as_deref(), Some("r1"));
    let error = agree(same, "researcher").unwrap_err();
    assert!(!error.message.contains("researcher"), "the true persona is not told");
    assert!(agree(claims(r#"{"_meta":{"toolgate/lane":"automation"}}"#).unwrap(), "coder").is_err());
}

#[test]
fn claims_are_bounded_strings_without_control_characters() {
    assert!(claims(r#"{"_meta":{"toolgate/persona":7}}"#).is_err());
    assert!(claims(r#"{"_meta":{"toolgate/run_id":"a\u001bb"}}"#).is_err());
    let long = format!(r#"{{"_meta":{{"toolgate/thread_id":"{}"}}}}"#, "x".repeat(257));
    assert!(claims(&long).is_err());
    assert_eq!(claims(r#"{"name":"toolgate"}"#).unwrap(), Claims::default());
}
