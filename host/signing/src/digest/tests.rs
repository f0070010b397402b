use super::{Digest, DigestError};

#[test]
fn a_digest_is_written_with_its_scheme_and_read_back() {
    let digest = Digest::of(b"abc");
    let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(digest.to_string(), text);
    assert_eq!(text.parse(), Ok(digest));
    assert_eq!(serde_json::to_string(&digest).unwrap(), format!("\"{text}\""));
    assert_eq!(serde_json::from_str::<Digest>(&format!("\"{text}\"")).unwrap(), digest);
    assert_eq!(Digest::of_parts(&[b"a", b"", b"bc"]), digest);
}

#[test]
fn only_one_spelling_is_read() {
    let hex = Digest::of(b"abc").hex();
    assert_eq!(hex.parse::<Digest>(), Err(DigestError::Scheme));
    assert_eq!(format!("SHA256:{hex}").parse::<Digest>(), Err(DigestError::Scheme));
    for digits in [hex.to_uppercase(), hex[1..].to_owned(), format!("{hex}00"), format!("{}é", &hex[2..])] {
        assert_eq!(format!("sha256:{digits}").parse::<Digest>(), Err(DigestError::Digits), "{digits}");
    }
}
