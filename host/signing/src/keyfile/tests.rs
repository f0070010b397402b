use super::{KeyFileError, is_sealed};
use crate::SigningKey;

const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

#[test]
fn a_sealed_key_opens_with_its_passphrase_and_no_other() {
    let key = SigningKey::from_hex(SEED).unwrap();
    let pem = key.to_sealed_pem("correct horse", &[9; 32]).unwrap();
    assert!(is_sealed(&pem) && !pem.contains(SEED));
    let opened = SigningKey::from_file_text(&pem, Some("correct horse")).unwrap();
    assert_eq!(opened.public(), key.public());
    assert_eq!(SigningKey::from_file_text(&pem, Some("wrong")).unwrap_err(), KeyFileError::Passphrase);
    assert_eq!(SigningKey::from_file_text(&pem, None).unwrap_err(), KeyFileError::Sealed);
}

#[test]
fn a_seed_file_and_a_plain_pkcs8_file_are_read_too() {
    let key = SigningKey::from_hex(SEED).unwrap();
    let seed = key.to_seed_text();
    assert_eq!(seed.trim(), SEED);
    assert_eq!(SigningKey::from_file_text(&seed, None).unwrap().public(), key.public());
    // RFC 8410, section 10.3, the first example.
    let plain = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    let read = SigningKey::from_file_text(plain, None).unwrap();
    assert_eq!(
        hex::encode(read.public().to_bytes()),
        "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1"
    );
}

#[test]
fn what_is_no_key_is_refused_with_its_reason() {
    assert_eq!(SigningKey::from_file_text("hello", None).unwrap_err(), KeyFileError::Unknown);
    let other = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    assert_eq!(SigningKey::from_file_text(other, None).unwrap_err(), KeyFileError::Unknown);
    let damaged = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
    assert!(matches!(SigningKey::from_file_text(damaged, None), Err(KeyFileError::Damaged(_))));
    let long = "a".repeat(20_000);
    assert_eq!(SigningKey::from_file_text(&long, None).unwrap_err(), KeyFileError::TooLarge(20_000));
}
