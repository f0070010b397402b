//! The primitives against the plain way of doing the same.

use proptest::prelude::*;

use super::*;
use crate::testing::{config, soup};

const SOUP: &[&[u8]] =
    &[b"\"", b"\\", b"\x1f", b" ", b"!", b"a", b"\x7f", b"\x80", b"\xff", b"#", b"[", b"]", b"\0"];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_plain_run_ends_where_a_bytewise_search_says(bytes in soup(SOUP, 40), start in 0..8_usize) {
        let start = start.min(bytes.len());
        let slow = bytes[start..].iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20);
        prop_assert_eq!(plain_run(&bytes, start), slow.map_or(bytes.len(), |at| start + at));
    }

    #[test]
    fn quoting_and_reading_give_the_text_back(text: String) {
        let quoted = quote(&text);
        prop_assert_eq!(string(&quoted), Some(text.clone()));
        prop_assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
    }
}

#[test]
fn escapes_are_read_as_rfc_8259_says() {
    assert_eq!(string(r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#).unwrap(), "\"\\/\u{8}\u{c}\n\r\té😀");
    assert_eq!(string(r#""\ud800\u0041\udc00""#).unwrap(), "\u{fffd}A\u{fffd}");
    assert_eq!(string("1"), None);
    assert_eq!(string("\""), None);
}

#[test]
fn keys_are_compared_unescaped() {
    assert!(key_is("name", "name") && key_is(r"n\u0061me", "name") && !key_is(r"\ud800", "\u{fffe}"));
}
