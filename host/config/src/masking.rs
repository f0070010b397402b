//! What a server may repeat of the secrets that its entry holds, taken out of texts.
//!
//! Contract: nothing of a value stays, however long it is: not as it stands, not as JSON writes it, not line
//! by line. A value of [`SHORTEST`] bytes or more goes wherever it stands, in the middle of a word too. A
//! shorter one stands in every text by chance, so it goes only where it is a word of its own, and only if it
//! is a secret by its name or came from `secrets.env`: `DEBUG=1` must not take the ones out of every line.
//!
//! A text has to be masked before it is cut: of a value that is cut apart neither half is found. Whoever
//! cuts keeps [`Masking::longest`] bytes more than it shows.
//!
//! Bounds: one pass over the text for each value of the entry. Values longer than [`LONGEST`] bytes are not
//! waited for by whoever cuts.

use serde_json::Value;
use toolgate_base::Secret;

use crate::server::{Server, Transport, names_secret};

/// The fewest bytes of a value that goes wherever it stands.
const SHORTEST: usize = 6;
/// The most bytes that whoever cuts has to keep for a value.
const LONGEST: usize = 64 * 1024;
/// What stands in place of a value.
const MASK: &str = "***";

/// The values of one entry, ready to be taken out of texts. `Debug` shows none of them.
#[derive(Clone, Default)]
pub struct Masking {
    /// Longest first: of a value that begins with another one nothing may stay.
    anywhere: Vec<Secret>,
    words: Vec<Secret>,
    longest: usize,
}

impl Masking {
    pub(crate) fn of(server: &Server) -> Self {
        // What variables held has a say whatever its length: `expand` keeps no short one that is no secret.
        let mut values: Vec<(&str, bool)> = server.held.iter().map(|held| (held.expose(), true)).collect();
        match &server.transport {
            Transport::Stdio { env, .. } => {
                values.extend(env.iter().map(|(name, value)| (value.expose(), names_short_secret(name))));
            }
            Transport::StreamableHttp { headers, .. } | Transport::Sse { headers, .. } => {
                for (name, value) in headers {
                    let (value, is_secret) = (value.expose(), names_short_secret(name));
                    values.push((value, is_secret));
                    values.extend(value.split_once(' ').map(|(_, rest)| (rest, is_secret)));
                }
            }
        }
        let lines: Vec<(&str, bool)> = values
            .iter()
            .filter(|(value, _)| value.contains('\n'))
            .flat_map(|(value, _)| value.lines())
            .map(|line| (line, false))
            .collect();
        values.extend(lines);
        let (long, short): (Vec<_>, Vec<_>) =
            values.into_iter().partition(|(value, _)| value.len() >= SHORTEST);
        let mut anywhere: Vec<String> = long.into_iter().flat_map(|(value, _)| forms_of(value)).collect();
        anywhere.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        anywhere.dedup();
        let is_word = |value: &&str| value.chars().any(char::is_alphanumeric);
        let words = short.into_iter().filter(|(_, is_secret)| *is_secret).map(|(value, _)| value);
        Self {
            longest: anywhere.first().map_or(SHORTEST, String::len).min(LONGEST),
            anywhere: anywhere.into_iter().map(Secret::new).collect(),
            words: words.filter(is_word).map(Secret::new).collect(),
        }
    }

    /// The text without the values.
    pub fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in self.anywhere.iter().map(Secret::expose) {
            if text.contains(value) {
                text = text.replace(value, MASK);
            }
        }
        self.words.iter().fold(text, |text, word| without_word(&text, word.expose()))
    }

    /// How many bytes whoever cuts has to keep beyond what it shows.
    pub fn longest(&self) -> usize {
        self.longest
    }
}

impl std::fmt::Debug for Masking {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Masking({} values)", self.anywhere.len() + self.words.len())
    }
}

/// Whether a value is a secret by its name even where it is short, as a PIN is.
pub(crate) fn names_short_secret(name: &str) -> bool {
    const WORDS: [&str; 8] = ["pin", "pass", "pwd", "key", "auth", "cookie", "credential", "credentials"];
    let lower = name.to_ascii_lowercase();
    names_secret(name) || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| WORDS.contains(&word))
}

/// A value as it stands, and as JSON writes it where that differs.
fn forms_of(value: &str) -> Vec<String> {
    let quoted = Value::from(value).to_string();
    let inside = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    if inside == value { vec![value.to_owned()] } else { vec![value.to_owned(), inside.to_owned()] }
}

/// The text without a value where no letter, digit or `_` touches it.
fn without_word(text: &str, word: &str) -> String {
    let touches = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(word) {
        let last = before.chars().next_back().or_else(|| masked.chars().next_back());
        masked.push_str(before);
        masked.push_str(if touches(last) || touches(after.chars().next()) { word } else { MASK });
        rest = after;
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests;
