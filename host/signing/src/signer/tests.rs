use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{
    SignError, Signer, add_signature, decode_pre_authentication, read_signature, seal, seal_with,
    unverified_payload,
};
use crate::{PAYLOAD_TYPE, PublicKey, SigningKey, pre_authentication_encoding, sign_payload};

fn key(byte: u8) -> SigningKey {
    SigningKey::from_seed(&[byte; 32])
}

/// A device that answers for another key.
struct Confused;

impl Signer for Confused {
    fn public(&self) -> PublicKey {
        key(1).public()
    }

    fn sign(&self, encoded: &[u8]) -> Result<[u8; 64], SignError> {
        Signer::sign(&key(2), encoded)
    }
}

#[test]
fn sealing_gives_the_same_envelope_whoever_made_the_signature() {
    let sealed = seal(PAYLOAD_TYPE, b"{}", &[&key(1)]).unwrap();
    assert_eq!(sealed, sign_payload(PAYLOAD_TYPE, b"{}", &[&key(1)]));
    let encoded = pre_authentication_encoding(PAYLOAD_TYPE, b"{}");
    let signature = Signer::sign(&key(1), &encoded).unwrap();
    assert_eq!(seal_with(PAYLOAD_TYPE, b"{}", &key(1).public(), &signature).unwrap(), sealed);
    assert_eq!(unverified_payload(&sealed).unwrap(), (PAYLOAD_TYPE.to_owned(), b"{}".to_vec()));
}

#[test]
fn a_signer_that_answers_for_another_key_is_found_before_anybody_else_finds_it() {
    assert!(matches!(seal(PAYLOAD_TYPE, b"{}", &[&Confused]), Err(SignError::DoesNotVerify { .. })));
}

#[test]
fn signatures_are_added_one_by_one_and_a_key_signs_once() {
    let one = seal(PAYLOAD_TYPE, b"{}", &[&key(1)]).unwrap();
    let encoded = pre_authentication_encoding(PAYLOAD_TYPE, b"{}");
    let second = Signer::sign(&key(2), &encoded).unwrap();
    let both = add_signature(&one, &key(2).public(), &second).unwrap();
    assert_eq!(both, seal(PAYLOAD_TYPE, b"{}", &[&key(1), &key(2)]).unwrap());
    assert!(matches!(add_signature(&both, &key(2).public(), &second), Err(SignError::SignedAlready { .. })));
    assert!(matches!(add_signature(&one, &key(3).public(), &second), Err(SignError::DoesNotVerify { .. })));
    assert!(matches!(seal(PAYLOAD_TYPE, b"{}", &[&key(1), &key(1)]), Err(SignError::SignedAlready { .. })));
}

#[test]
fn what_waits_for_a_signature_is_read_in_one_spelling_only() {
    let encoded = pre_authentication_encoding("a/b", b"x y");
    assert_eq!(decode_pre_authentication(&encoded), Some(("a/b".to_owned(), b"x y".to_vec())));
    for other in [
        &b"DSSEv1 3 a/b 3 x yz"[..],
        b"DSSEv1 03 a/b 3 x y",
        b"DSSEv1 +3 a/b 3 x y",
        b"DSSEv1 3 a/b 9 x y",
        b"DSSEv1 3 a/b",
        b"",
    ] {
        assert_eq!(decode_pre_authentication(other), None);
    }
}

#[test]
fn a_signature_is_read_raw_in_base64_and_in_hex() {
    let signature = Signer::sign(&key(1), b"x").unwrap();
    assert_eq!(read_signature(&signature).unwrap(), signature);
    assert_eq!(read_signature(format!("{}\n", hex::encode(signature)).as_bytes()).unwrap(), signature);
    let text = STANDARD.encode(signature);
    assert_eq!(read_signature(text.as_bytes()).unwrap(), signature);
    assert!(read_signature(b"no").is_err());
}
