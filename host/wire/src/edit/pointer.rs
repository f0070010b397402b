//! RFC 6901 pointers, read without allocation.

use super::MAX_TOKENS;
use crate::json;

/// The reference tokens of a pointer, still escaped.
#[derive(Debug, Clone)]
pub(super) struct Tokens<'p> {
    rest: Option<&'p str>,
}

impl<'p> Tokens<'p> {
    /// `None` where the text is no pointer, or one with too many tokens.
    pub(super) fn of(pointer: &'p str) -> Option<Self> {
        if pointer.is_empty() {
            return Some(Self { rest: None });
        }
        let rest = pointer.strip_prefix('/')?;
        let sound = pointer.bytes().filter(|&b| b == b'/').count() <= MAX_TOKENS && tildes_are_escapes(rest);
        sound.then_some(Self { rest: Some(rest) })
    }
}

impl<'p> Iterator for Tokens<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        let rest = self.rest?;
        let (token, rest) = match rest.split_once('/') {
            Some((token, rest)) => (token, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        Some(token)
    }
}

fn tildes_are_escapes(text: &str) -> bool {
    text.split('~').skip(1).all(|after| after.starts_with(['0', '1']))
}

/// The characters a token stands for: `~1` is `/`, `~0` is `~`.
pub(super) fn token_chars(token: &str) -> impl Iterator<Item = char> + '_ {
    let mut chars = token.chars();
    std::iter::from_fn(move || match chars.next()? {
        '~' => match chars.next() {
            Some('1') => Some('/'),
            _ => Some('~'),
        },
        plain => Some(plain),
    })
}

/// Whether a token names the key that is written `raw` between its quotes.
pub(super) fn token_is_key(token: &str, raw: &str) -> bool {
    match (token.contains('~'), raw.contains('\\')) {
        (false, _) => json::key_is(raw, token),
        (true, false) => stands_for(token, raw),
        (true, true) => token_chars(token).eq(json::unescape(raw)),
    }
}

/// Whether a token with escapes stands for a text without any, stretch by stretch: every key of the
/// protocol's own in `_meta` has a `/` in it, and each request is asked for several of them.
fn stands_for(token: &str, text: &str) -> bool {
    let mut stretches = token.split('~');
    let Some(mut rest) = text.strip_prefix(stretches.next().unwrap_or_default()) else { return false };
    for stretch in stretches {
        let (sign, stretch) = match stretch.strip_prefix('1') {
            Some(after) => ('/', after),
            None => ('~', stretch.strip_prefix('0').unwrap_or(stretch)),
        };
        match rest.strip_prefix(sign).and_then(|rest| rest.strip_prefix(stretch)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

/// An array index: no sign, no leading zero (RFC 6901, 4).
pub(super) fn index(token: &str) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with('0');
    let digits = canonical && token.bytes().all(|b| b.is_ascii_digit());
    if digits { token.parse().ok() } else { None }
}
