//! Header values: plain where they can be, else `=?base64?…?=`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// Encodes a value: as it is where every HTTP hop keeps it (visible ASCII, with spaces and tabs inside only), else as
/// base64 of its UTF-8. A text that looks encoded is encoded, so that decoding gives it back.
pub fn encode_value(value: &str) -> String {
    let blank = |c: char| c == ' ' || c == '\t';
    let plain = value.chars().all(|c| c.is_ascii_graphic() || blank(c));
    if plain && !value.starts_with(blank) && !value.ends_with(blank) && payload(value).is_none() {
        return value.to_owned();
    }
    format!("{OPEN}{}{CLOSE}", STANDARD.encode(value))
}

/// Decodes a header's value. `None`: it claims to be encoded and is no base64 of UTF-8. The sentinel is lower case;
/// anything else is literal.
pub fn decode_value(value: &str) -> Option<String> {
    let value = value.trim_matches([' ', '\t']);
    let Some(payload) = payload(value) else { return Some(value.to_owned()) };
    String::from_utf8(STANDARD.decode(payload).ok()?).ok()
}

fn payload(value: &str) -> Option<&str> {
    value.strip_prefix(OPEN)?.strip_suffix(CLOSE)
}
