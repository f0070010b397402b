//! The file of admitted keys.

use super::{MARK, key_lines, parts, with_key};

#[test]
fn a_key_is_added_once_and_comments_are_no_keys() {
    let text = with_key("# ours\n", "ed25519:A", false);
    assert_eq!(text, "# ours\ned25519:A\n");
    assert_eq!(with_key(&text, "ed25519:A", false), text);
    assert_eq!(key_lines(&text).collect::<Vec<_>>(), ["ed25519:A"]);
}

#[test]
fn development_keys_stand_below_the_mark_and_the_others_stay_above() {
    let text = with_key("ed25519:A\n", "ed25519:D", true);
    let text = with_key(&with_key(&text, "ed25519:B", false), "ed25519:E", true);
    assert_eq!(text, format!("ed25519:A\ned25519:B\n{MARK}\ned25519:D\ned25519:E\n"));
    assert_eq!(parts(&text).1.map(|below| key_lines(below).count()), Some(2));
}
