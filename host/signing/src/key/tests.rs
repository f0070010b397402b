use super::{KeyError, PublicKey};
use crate::SigningKey;

#[test]
fn a_key_is_written_in_one_spelling_and_read_back() {
    let key = SigningKey::from_seed(&[7; 32]).public();
    let text = key.to_string();
    assert_eq!(text.parse(), Ok(key));
    assert_eq!(format!("{key:?}"), text);
    let json = serde_json::to_string(&key).unwrap();
    assert_eq!(serde_json::from_str::<PublicKey>(&json).unwrap(), key);
    assert!(serde_json::from_str::<PublicKey>("\"ed25519:AAAA\"").is_err());
    assert_eq!(PublicKey::from_bytes(&key.to_bytes()), Ok(key));
    assert_eq!(key.id().as_str().len(), 64);
}

#[test]
fn every_encoding_that_is_not_a_reduced_number_is_refused() {
    // The field has 2^255 - 19 elements; the 19 numbers above it, with either sign, encode nothing of their own.
    for above in 0_u8..19 {
        for sign in [0x7f, 0xff] {
            let mut bytes = [0xff; 32];
            bytes[0] = 0xed + above;
            bytes[31] = sign;
            let error = PublicKey::from_bytes(&bytes).unwrap_err();
            assert!(matches!(error, KeyError::NonCanonical | KeyError::NotAPoint), "{above} {sign}: {error}");
        }
    }
}
