use proptest::prelude::*;

use super::{Envelope, MAX_ENVELOPE, MAX_PAYLOAD, PAYLOAD_TYPE, decode, pre_authentication_encoding};
use crate::{SigningKey, sign_payload};

fn code(envelope: &[u8]) -> &'static str {
    match Envelope::read(envelope, crate::dsse::PAYLOAD_TYPE) {
        Ok(_) => "accepted",
        Err(error) => error.code(),
    }
}

#[test]
fn the_encoding_is_that_of_the_protocol() {
    // The example of the DSSE v1 protocol.
    assert_eq!(
        pre_authentication_encoding("http://example.com/HelloWorld", b"hello world"),
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    );
}

#[test]
fn sizes_are_limited_before_anything_is_read() {
    let key = SigningKey::from_seed(&[1; 32]);
    assert_eq!(code(&vec![b' '; MAX_ENVELOPE + 1]), "too-large");
    assert_eq!(code(&sign_payload(PAYLOAD_TYPE, &vec![b' '; MAX_PAYLOAD], &[&key])), "accepted");
    assert_eq!(code(&sign_payload(PAYLOAD_TYPE, &vec![b' '; MAX_PAYLOAD + 1], &[&key])), "too-large");
}

#[test]
fn an_envelope_must_be_utf_8_json() {
    assert_eq!(code(b"\xff{}"), "not-utf8");
    assert_eq!(code(b""), "malformed");
    assert_eq!(code(b"\xef\xbb\xbf{}"), "malformed");
    assert_eq!(code("[".repeat(100_000).as_bytes()), "malformed");
}

#[test]
fn both_alphabets_are_read_and_stray_bits_are_not() {
    assert_eq!(decode("+/8="), Some(vec![0xfb, 0xff]));
    assert_eq!(decode("-_8"), Some(vec![0xfb, 0xff]));
    assert_eq!(decode("+_8="), None, "mixed alphabets");
    assert_eq!(decode("+/9="), None, "a bit that belongs to no byte");
    assert_eq!(decode("+/8=\n"), None);
    assert_eq!(decode("+/8=="), None);
}

proptest! {
    #[test]
    fn no_two_payloads_have_one_encoding(
        left in ("[a0-9 ]{0,6}", "[a0-9 ]{0,6}"), right in ("[a0-9 ]{0,6}", "[a0-9 ]{0,6}"),
    ) {
        let encoded = |pair: &(String, String)| pre_authentication_encoding(&pair.0, pair.1.as_bytes());
        prop_assert_eq!(encoded(&left) == encoded(&right), left == right);
    }
}
