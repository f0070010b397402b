use super::{SigningKey, release_statement, sign_release};
use crate::Digest;
use crate::release::tests::example;

#[test]
fn a_seed_is_64_hex_digits_and_its_key_prints_as_its_public_half() {
    // RFC 8032, section 7.1, test 1.
    let key =
        SigningKey::from_hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n").unwrap();
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    assert_eq!(hex::encode(key.public().to_bytes()), public);
    assert_eq!(format!("{key:?}"), format!("SigningKey({})", key.public()));
    for text in ["", "9d61", "zz61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"] {
        assert!(SigningKey::from_hex(text).is_err());
    }
}

#[test]
fn signing_is_deterministic_and_sorts_what_is_a_set() {
    let key = SigningKey::from_seed(&[1; 32]);
    let mut shuffled = example();
    shuffled.decisions = ["deny", "ask", "deny"].map(ToOwned::to_owned).to_vec();
    assert_eq!(sign_release(&shuffled, b"x", &key), sign_release(&example(), b"x", &key));
    assert_ne!(sign_release(&example(), b"y", &key), sign_release(&example(), b"x", &key));
    let statement = release_statement(&example(), Digest::of(b"x"));
    assert_eq!(crate::canonical_json(&statement).unwrap(), statement);
}
