use super::{Threshold, VerifyError, verify_release};
use crate::release::tests::example;
use crate::{PAYLOAD_TYPE, SigningKey, release_statement, sign_payload, sign_release};

const COMPONENT: &[u8] = b"a component";

fn key(n: u8) -> SigningKey {
    SigningKey::from_seed(&[n; 32])
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a lookup of trust rules answers")]
fn rule(keys: &[&SigningKey], minimum: u32) -> Option<Threshold> {
    Some(Threshold { keys: keys.iter().map(|key| key.public()).collect(), minimum })
}

#[test]
fn what_was_signed_is_verified_and_is_that_component_and_no_other() {
    let envelope = sign_release(&example(), COMPONENT, &key(1));
    let verified = verify_release(&envelope, &|_| rule(&[&key(1)], 1)).unwrap();
    assert_eq!(verified.release(), &example());
    assert_eq!(verified.component(), crate::Digest::of(COMPONENT));
    assert_eq!(verified.digest(), crate::Digest::of(&envelope));
    assert_eq!(verified.signers(), [key(1).public().id()]);
    assert!(verified.check_component(COMPONENT).is_ok());
    assert!(matches!(verified.check_component(b"another"), Err(VerifyError::Component { .. })));
}

#[test]
fn a_valid_release_of_another_name_or_version_is_not_the_one_asked_for() {
    let envelope = sign_release(&example(), COMPONENT, &key(1));
    let verified = verify_release(&envelope, &|_| rule(&[&key(1)], 1)).unwrap();
    let version = semver::Version::new(0, 1, 0);
    assert!(verified.check_identity("toolgate/ask", None).is_ok());
    assert!(verified.check_identity("toolgate/ask", Some(&version)).is_ok());
    assert_eq!(verified.check_identity("toolgate/trust", None).unwrap_err().code(), "name");
    let newer = semver::Version::new(0, 2, 0);
    let error = verified.check_identity("toolgate/ask", Some(&newer)).unwrap_err();
    assert_eq!(error.to_string(), "the version is 0.1.0, and 0.2.0 was expected");
}

#[test]
fn the_rule_is_looked_up_by_the_name_that_was_signed() {
    // Signed by a key that may sign `acme/*` and claiming the name of a plugin that it may not sign.
    let envelope = sign_release(&example(), COMPONENT, &key(2));
    let error = verify_release(&envelope, &|name| match name {
        "toolgate/ask" => rule(&[&key(1)], 1),
        _ => rule(&[&key(2)], 1),
    })
    .unwrap_err();
    assert_eq!(error, VerifyError::Signature { name: "toolgate/ask".to_owned(), valid: 0, minimum: 1 });
    assert_eq!(verify_release(&envelope, &|_| None).unwrap_err().code(), "no-rule");
}

#[test]
fn signatures_of_one_key_never_add_up() {
    let statement = release_statement(&example(), crate::Digest::of(COMPONENT));
    let (one, two) = (key(1), key(2));
    let signed = |keys: &[&SigningKey]| sign_payload(PAYLOAD_TYPE, statement.as_bytes(), keys);
    let under = |envelope: &[u8], rule: Option<Threshold>| verify_release(envelope, &|_| rule.clone());
    let error = under(&signed(&[&one, &one, &one]), rule(&[&one, &two], 2)).unwrap_err();
    assert_eq!(error, VerifyError::Signature { name: "toolgate/ask".to_owned(), valid: 1, minimum: 2 });
    assert_eq!(under(&signed(&[&one, &two]), rule(&[&one, &two], 2)).unwrap().signers().len(), 2);
    // A rule that lists one key twice is one that cannot be met.
    assert_eq!(under(&signed(&[&one]), rule(&[&one, &one], 2)).unwrap_err().code(), "rule");
}

#[test]
fn every_flipped_bit_of_an_envelope_is_refused_or_changes_nothing_that_was_signed() {
    let envelope = sign_release(&example(), COMPONENT, &key(1));
    for at in 0..envelope.len() {
        for bit in [0, 5] {
            let mut flipped = envelope.clone();
            flipped[at] ^= 1 << bit;
            // White space around the JSON and the unsigned key id are all that may change.
            if let Ok(verified) = verify_release(&flipped, &|_| rule(&[&key(1)], 1)) {
                assert_eq!(verified.release(), &example(), "byte {at}");
                assert_ne!(verified.digest(), crate::Digest::of(&envelope));
            }
        }
    }
}

#[test]
fn messages_name_what_did_not_match_and_carry_no_control_characters_se_03() {
    let mut release = example();
    release.name = "a\u{1b}[2J/b".to_owned();
    let envelope = sign_release(&release, COMPONENT, &key(1));
    let no_rule = verify_release(&envelope, &|_| None).unwrap_err().to_string();
    let signature = verify_release(&envelope, &|_| rule(&[&key(2)], 1)).unwrap_err().to_string();
    let field = verify_release(&envelope, &|_| rule(&[&key(1)], 1)).unwrap_err().to_string();
    let kind =
        verify_release(&sign_payload("x\u{1b}", b"{}", &[&key(1)]), &|_| None).unwrap_err().to_string();
    let twice = verify_release(b"{\"\\u001b\":1,\"\\u001b\":1}", &|_| None).unwrap_err().to_string();
    for message in [&no_rule, &signature, &field, &kind, &twice] {
        assert!(!message.contains('\u{1b}'), "{message}");
    }
    assert!(field.contains("`name`"), "{field}");
    assert!(no_rule.contains("plugins.trust"), "{no_rule}");
}
