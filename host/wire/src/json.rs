//! The few primitives that walk JSON text without building values: blanks, strings, spans of values, unescaping.
//!
//! Contract: callers hand in text that already passed the door (or lives in a `RawValue`). On any other text the
//! answers may be useless, but they stay inside the text, never panic, and never recurse.

mod children;

pub(crate) use children::{Children, Malformed};

/// First position at or after `at` that holds no JSON whitespace.
pub(crate) fn skip_blank(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// First position at or after `at` whose byte ends a plain run inside a string: a quote, a backslash or a control
/// byte; `bytes.len()` when there is none. Eight bytes are tested at a time, because strings are most of a message.
pub(crate) fn plain_run(bytes: &[u8], at: usize) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let Some(rest) = bytes.get(at..) else { return bytes.len() };
    let (words, tail) = rest.as_chunks::<8>();
    let mut end = at;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (LOW * u64::from(b'"'));
        let escape = word ^ (LOW * u64::from(b'\\'));
        // Each term sets the high bit of the lowest byte that matches; a borrow can only spoil bytes above it.
        let found = (word.wrapping_sub(LOW * 0x20) & !word)
            | (quote.wrapping_sub(LOW) & !quote)
            | (escape.wrapping_sub(LOW) & !escape);
        let found = found & HIGH;
        if found != 0 {
            return end + (found.trailing_zeros() / 8) as usize;
        }
        end += 8;
    }
    end + tail.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20).unwrap_or(tail.len())
}

/// `at` stands on an opening quote; the position just after the closing one.
pub(crate) fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// `at` stands on the first byte of a value; the position just after its last one. Brackets are counted, not matched
/// by kind: the door has matched them already.
pub(crate) fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => string_end(bytes, at),
        b'{' | b'[' => container_end(bytes, at),
        _ => scalar_end(bytes, at),
    }
}

fn container_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut open = 0_usize;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => open += 1,
            b'}' | b']' => {
                open -= 1;
                if open == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

fn scalar_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let ends =
        |b: &u8| matches!(b, b',' | b'}' | b']' | b':' | b'{' | b'[' | b'"' | b' ' | b'\t' | b'\n' | b'\r');
    let length = rest.iter().position(ends).unwrap_or(rest.len());
    (length > 0).then_some(at + length)
}

/// The characters a JSON string stands for. `raw` is what lies between the quotes. Escapes that mean nothing and lone
/// surrogates come out as U+FFFD, so that they are equal to no honest text.
pub(crate) fn unescape(raw: &str) -> impl Iterator<Item = char> + '_ {
    Unescape { rest: raw }
}

struct Unescape<'a> {
    rest: &'a str,
}

impl Iterator for Unescape<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let first = chars.next()?;
        if first != '\\' {
            self.rest = chars.as_str();
            return Some(first);
        }
        let escape = chars.next();
        self.rest = chars.as_str();
        Some(match escape {
            Some(plain @ ('"' | '\\' | '/')) => plain,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => self.unicode(),
            _ => char::REPLACEMENT_CHARACTER,
        })
    }
}

impl Unescape<'_> {
    /// Reads the digits after `\u`, and the second half of a pair where there is one.
    fn unicode(&mut self) -> char {
        let Some(unit) = self.digits() else { return char::REPLACEMENT_CHARACTER };
        if !(0xD800..0xDC00).contains(&unit) {
            return char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
        }
        let before = self.rest;
        if let Some(rest) = before.strip_prefix("\\u") {
            self.rest = rest;
            if let Some(low @ 0xDC00..0xE000) = self.digits() {
                let point = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                return char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
            }
            self.rest = before;
        }
        char::REPLACEMENT_CHARACTER
    }

    fn digits(&mut self) -> Option<u32> {
        let digits = self.rest.get(..4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.rest = self.rest.get(4..)?;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// The value of a complete JSON string, quotes included; `None` for any other value.
pub(crate) fn string(raw: &str) -> Option<String> {
    let inner = raw.trim_matches([' ', '\t', '\n', '\r']).strip_prefix('"')?.strip_suffix('"')?;
    Some(if inner.contains('\\') { unescape(inner).collect() } else { inner.to_owned() })
}

/// Whether the text between a key's quotes stands for `name`. Does not allocate.
pub(crate) fn key_is(raw: &str, name: &str) -> bool {
    if raw.contains('\\') { unescape(raw).eq(name.chars()) } else { raw == name }
}

/// `text` as a JSON string, quotes included.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                out.push_str("\\u00");
                out.extend(
                    [u32::from(c) >> 4, u32::from(c) & 15].iter().filter_map(|&d| char::from_digit(d, 16)),
                );
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
