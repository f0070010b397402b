//! Whether a form asks for a secret, by its words (ELI-008).
//!
//! Contract: what a person takes for a word is read as that word: case, accents, wide, small and mathematical
//! letters, letters of other scripts that look alike, digits and signs in place of letters, and characters that
//! are not seen make no difference. Separators and humps make none in a name, whatever stands between its
//! letters; in a sentence they make none within a word, and spaces none between the letters of a word. It asks
//! once too often rather than once too little: the words are looked for inside of others.
//!
//! Bounds: linear in the text, times the number of words, and four times that where digits or signs can be read as
//! letters; a form has at most 64 KiB.
//!
//! Threat: a server asks for a password under a name that a list of names does not have: `pass_word`, `pwd`,
//! a Cyrillic letter, a zero-width space, another language, or only in its message. A server that uses none of
//! these words, or an image of one, is not noticed: the message always says who asks.

mod words;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use toolgate_base::{hidden, lookalike};

use words::{ALIKE, BENIGN, INSIDE, KEYS, SHORT};

/// Letters from which on a word is looked for across the spaces of a sentence.
const LONG: usize = 6;
/// What joins the letters of one word in a sentence.
const CONNECTORS: &str = "-_.*'`\u{b7}\u{2010}\u{2011}\u{2019}:~^";

/// What digits and signs are read as.
#[derive(Clone, Copy)]
enum Reading {
    /// Nothing: they part words.
    Parted,
    /// Themselves, as in `2fa`.
    Kept,
    /// The letters they resemble, with `1` for `i`.
    LikeI,
    /// The same with `1` for `l`.
    LikeL,
}

/// The ways in which a text can be read: one where nothing in it can be read in two.
fn readings(letters: &[char]) -> &'static [Reading] {
    let is_plain = |c: &char| c.is_alphabetic() || Reading::LikeI.of(*c).is_none() && !c.is_ascii_digit();
    if letters.iter().all(is_plain) {
        return &[Reading::Parted];
    }
    &[Reading::Parted, Reading::Kept, Reading::LikeI, Reading::LikeL]
}

/// Whether the name of a field is that of a secret.
pub(super) fn in_name(name: &str) -> bool {
    let letters = plain(name);
    readings(&letters).iter().any(|reading| {
        let joined: String = letters.iter().filter_map(|c| reading.of(*c)).flat_map(small).collect();
        is_name(&joined)
    })
}

/// Whether a text of a field (its title, its description, a choice, a format) speaks of a secret.
pub(super) fn in_field(text: &str) -> bool {
    in_text(text, |spaced, _| words().keys.iter().any(|word| spaced.contains(word.as_str())))
}

/// Whether a text of the form as a whole speaks of a secret. A key is one only as a word of its own here:
/// sentences have many that open nothing.
pub(super) fn in_message(text: &str) -> bool {
    in_text(text, |_, tokens| tokens.iter().any(|token| is_one_of(token, &words().keys)))
}

/// `is_key` is given the words of the text, as one text and each for itself.
fn in_text(text: &str, is_key: impl Fn(&str, &[String]) -> bool) -> bool {
    let letters = plain(text);
    readings(&letters).iter().any(|reading| {
        [true, false].into_iter().any(|joining| {
            let tokens = tokens(&letters, *reading, joining);
            let spaced = tokens.join(" ");
            words().inside.iter().any(|word| spaced.contains(word.as_str()))
                || tokens.iter().any(|token| is_one_of(token, &words().short))
                || is_key(&spaced, &tokens)
                || runs_across(&tokens)
        })
    })
}

/// A name without anything between its letters.
fn is_name(joined: &str) -> bool {
    let words = words();
    if words.inside.iter().chain(&words.keys).any(|word| joined.contains(word.as_str())) {
        return true;
    }
    // Short words are found at an end of what is left without the harmless words that have them inside.
    let rest = words.benign.iter().fold(joined.to_owned(), |rest, word| rest.replace(word.as_str(), " "));
    let is_at_an_end = |part: &str| {
        words.short.iter().any(|word| part.starts_with(word.as_str()) || part.ends_with(word.as_str()))
    };
    rest.split(' ').any(is_at_an_end)
}

/// Whether a word is one of these, or several of one.
fn is_one_of(token: &str, words: &BTreeSet<String>) -> bool {
    words.contains(token) || token.strip_suffix('s').is_some_and(|one| words.contains(one))
}

/// Words whose letters are spaced out or that are written in parts: `p i n`, `pass word`.
fn runs_across(tokens: &[String]) -> bool {
    let words = words();
    let joined: String = tokens.concat();
    let mut spaced = words.inside.iter().filter(|word| word.chars().count() >= LONG || !word.is_ascii());
    if spaced.any(|word| joined.contains(word.as_str())) {
        return true;
    }
    (0..tokens.len()).any(|start| {
        let mut run = String::new();
        for token in tokens.iter().skip(start) {
            run.push_str(token);
            if run.len() > words.longest {
                return false;
            }
            if words.inside.contains(&run) || words.short.contains(&run) {
                return true;
            }
        }
        false
    })
}

/// The words of a text, in lower case. `joining`: connectors stand inside of words; otherwise they, and the humps
/// of `camelCase`, part them.
fn tokens(letters: &[char], reading: Reading, joining: bool) -> Vec<String> {
    let mut tokens = vec![String::new()];
    let mut was_small = false;
    for &c in letters {
        let hump = !joining && was_small && c.is_uppercase();
        was_small = c.is_lowercase();
        let letter = reading.of(c);
        let is_joint = joining && CONNECTORS.contains(c);
        if hump || (letter.is_none() && !is_joint) {
            tokens.push(String::new());
        }
        if let (Some(letter), Some(token)) = (letter, tokens.last_mut()) {
            token.extend(small(letter));
        }
    }
    tokens.retain(|token| !token.is_empty());
    tokens
}

/// The text in plain letters: decomposed, without marks and without what is not seen, and each letter as what it is
/// taken for. Case stays.
fn plain(text: &str) -> Vec<char> {
    let marks = CanonicalCombiningClassMapBorrowed::new();
    let seen = text.chars().filter(|c| !hidden::is_hidden(*c) && !matches!(c, '\u{fe0e}' | '\u{fe0f}'));
    DecomposingNormalizerBorrowed::new_nfkd()
        .normalize_iter(seen)
        .filter(|c| marks.get_u8(*c) == 0)
        .flat_map(alike)
        .collect()
}

/// A letter in lower case, and again as what that is taken for.
fn small(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(alike)
}

fn alike(c: char) -> Vec<char> {
    if c.is_ascii() {
        return vec![c];
    }
    if let Some((_, letters)) = ALIKE.iter().find(|(from, _)| *from == c) {
        return letters.chars().collect();
    }
    let code = u32::from(c);
    let letter = |first: u32| char::from_u32(u32::from('a') + code - first);
    let boxed = match code {
        0x1f150..=0x1f169 => letter(0x1f150),
        0x1f170..=0x1f189 => letter(0x1f170),
        0x1f1e6..=0x1f1ff => letter(0x1f1e6),
        _ => None,
    };
    vec![boxed.or_else(|| lookalike::taken_for(c)).unwrap_or(c)]
}

impl Reading {
    /// The letter that this is; `None` for what is none.
    fn of(self, c: char) -> Option<char> {
        if c.is_alphabetic() {
            return Some(c);
        }
        match (self, c) {
            (Self::Parted, _) => None,
            (Self::Kept, c) => c.is_ascii_digit().then_some(c),
            (_, '0') => Some('o'),
            (Self::LikeI, '1' | '!' | '|') => Some('i'),
            (Self::LikeL, '1' | '!' | '|') => Some('l'),
            (_, '3' | '\u{20ac}') => Some('e'),
            (_, '4' | '@') => Some('a'),
            (_, '5' | '$') => Some('s'),
            (_, '7') => Some('t'),
            (_, '8') => Some('b'),
            _ => None,
        }
    }
}

/// The words as a text is read: plain letters in lower case.
struct Words {
    inside: BTreeSet<String>,
    keys: BTreeSet<String>,
    short: BTreeSet<String>,
    benign: BTreeSet<String>,
    /// Bytes of the longest word.
    longest: usize,
}

fn words() -> &'static Words {
    static WORDS: OnceLock<Words> = OnceLock::new();
    WORDS.get_or_init(|| {
        // A capital may look like another letter than its small form does.
        let read = |words: &[&str]| -> BTreeSet<String> {
            let lower = |word: &str| plain(word).into_iter().flat_map(small).collect::<String>();
            words.iter().flat_map(|word| [lower(word), lower(&word.to_uppercase())]).collect()
        };
        let (inside, short) = (read(INSIDE), read(SHORT));
        let longest = inside.iter().chain(&short).map(String::len).max().unwrap_or(0);
        Words { inside, keys: read(KEYS), short, benign: read(BENIGN), longest }
    })
}

#[cfg(test)]
mod tests;
