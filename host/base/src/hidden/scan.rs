//! Cuts a text into visible and hidden spans, looking at neighbours.
//!
//! Every character is looked at a bounded number of times: a terminal sequence is read to its
//! end or to the next control character, where the next search begins.

use super::Kind;
use super::table::{
    is_braille, is_emoji, is_joined_script, is_presentation_selector, kind_of, takes_selector,
};

/// The subdivision flags that Unicode recommends, as the tags after the black flag; the last is the cancel tag.
const FLAGS: [&str; 3] = [
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// A piece of the text: one character, or one terminal sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span<'a> {
    /// What is hidden, or none if it is visible.
    pub(crate) kind: Option<Kind>,
    /// The characters themselves.
    pub(crate) text: &'a str,
}

/// Walks a text span by span.
pub(crate) struct Scanner<'a> {
    rest: &'a str,
    /// The last visible character, which justifies a selector or joiner after it.
    before: Before,
}

/// What stands right before the place the scanner is at.
#[derive(Clone, Copy)]
enum Before {
    /// Nothing, or something hidden.
    Nothing,
    /// A visible character.
    Visible(char),
    /// An emoji with a presentation selector behind it.
    Selected(char),
    /// A zero-width joiner that was let pass.
    Joiner,
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { rest: text, before: Before::Nothing }
    }

    fn take(&mut self, bytes: usize, kind: Option<Kind>) -> Option<Span<'a>> {
        let (text, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(Span { kind, text })
    }

    /// A selector after a character that takes one, a joiner between emoji, the tags of a flag:
    /// the bytes to let pass and what then stands before.
    fn justified(&self, first: char) -> Option<(usize, Before)> {
        match (first, self.before) {
            (_, Before::Visible(base)) if is_presentation_selector(first) => {
                takes_selector(base).then_some((first.len_utf8(), Before::Selected(base)))
            }
            ('\u{200d}', Before::Visible(base) | Before::Selected(base)) if is_emoji(base) => {
                let next = self.rest.chars().nth(1)?;
                is_emoji(next).then_some((first.len_utf8(), Before::Joiner))
            }
            // Persian, Hindi and their like spell words with joiners (RFC 5892, appendix A.1 and A.2).
            ('\u{200c}' | '\u{200d}', Before::Visible(base)) if is_joined_script(base) => {
                let next = self.rest.chars().nth(1)?;
                is_joined_script(next).then_some((first.len_utf8(), Before::Joiner))
            }
            // One blank between two Braille patterns is a space between words.
            ('\u{2800}', Before::Visible(base)) if is_braille(base) => {
                let next = self.rest.chars().nth(1)?;
                is_braille(next).then_some((first.len_utf8(), Before::Nothing))
            }
            (_, Before::Visible('\u{1f3f4}')) => FLAGS
                .iter()
                .find(|tags| self.rest.starts_with(**tags))
                .map(|tags| (tags.len(), Before::Selected('\u{1f3f4}'))),
            _ => None,
        }
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Span<'a>;

    fn next(&mut self) -> Option<Span<'a>> {
        let first = self.rest.chars().next()?;
        let Some(kind) = kind_of(first) else {
            self.before = Before::Visible(first);
            return self.take(first.len_utf8(), None);
        };
        if let Some((bytes, before)) = self.justified(first) {
            self.before = before;
            return self.take(bytes, None);
        }
        self.before = Before::Nothing;
        let bytes = if kind == Kind::Ansi { sequence_len(self.rest) } else { first.len_utf8() };
        self.take(bytes, Some(kind))
    }
}

/// The bytes of the terminal sequence that `text` begins with, per ECMA-48; if it never ends, those of
/// its introducer.
fn sequence_len(text: &str) -> usize {
    let mut characters = text.chars();
    let first = characters.next().map_or(0, char::len_utf8);
    let (introducer, length) = match text.chars().next() {
        Some('\u{1b}') => match characters.next() {
            Some(second) if second.is_ascii() && !second.is_control() => (second, first + 1),
            _ => return first,
        },
        // The C1 controls are the same introducers in one character.
        Some(c1) => match char::from_u32(u32::from(c1).saturating_sub(0x40)) {
            Some(introducer) => (introducer, first),
            None => return first,
        },
        None => return 0,
    };
    let body = text.get(length..).unwrap_or_default();
    let end = match introducer {
        '[' => control_sequence_end(body),
        ']' | 'P' | 'X' | '^' | '_' => string_end(body),
        ' '..='/' => intermediate_end(body),
        _ => Some(0),
    };
    length + end.unwrap_or(0)
}

/// CSI: parameters `0x30..0x3f`, intermediates `0x20..0x2f`, one final byte `0x40..0x7e`.
fn control_sequence_end(body: &str) -> Option<usize> {
    let parameters = body.bytes().take_while(|b| (0x30..=0x3f).contains(b)).count();
    let rest = body.get(parameters..)?;
    let intermediates = rest.bytes().take_while(|b| (0x20..=0x2f).contains(b)).count();
    let last = rest.as_bytes().get(intermediates)?;
    (0x40..=0x7e).contains(last).then_some(parameters + intermediates + 1)
}

/// OSC, DCS, SOS, PM, APC: a string up to BEL, ST or ESC `\`; any other control character breaks it off.
fn string_end(body: &str) -> Option<usize> {
    let (at, last) = body.char_indices().find(|(_, c)| c.is_control())?;
    match last {
        '\u{7}' | '\u{9c}' => Some(at + last.len_utf8()),
        '\u{1b}' if body.get(at + 1..)?.starts_with('\\') => Some(at + 2),
        _ => None,
    }
}

/// ESC with intermediates: further ones `0x20..0x2f`, one final byte `0x30..0x7e`.
fn intermediate_end(body: &str) -> Option<usize> {
    let intermediates = body.bytes().take_while(|b| (0x20..=0x2f).contains(b)).count();
    let last = body.as_bytes().get(intermediates)?;
    (0x30..=0x7e).contains(last).then_some(intermediates + 1)
}
