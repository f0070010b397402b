//! Taking secrets out of a text that will stand in a repository.
//!
//! Contract: what is left is JSON of the same shape, with every byte that does not belong to a secret as it
//! was. Taken out are the values that the server's own entry holds, what begins like a well-known token
//! wherever it stands in a text, what follows a secret's name (`password=…`, `Authorization: Bearer …`,
//! `https://user:password@host`), and the value of every member whose name is a secret's, digits included.
//! JSON inside a string is looked at as JSON, [`MOST_NESTED`] deep.
//!
//! Threat: it is a guess, and one that is made too often is harmless. A secret that has neither a name nor
//! a known beginning stays, and the command says so.

use serde_json::Value;
use toolgate_config::{Server, looks_like_secret, names_secret};
use toolgate_wire::edit;

/// What stands for a secret.
const TAKEN_OUT: &str = "***";
/// What stands for a secret that was a number.
const NO_NUMBER: &str = "0";
/// So deep JSON inside of strings is looked at; what is deeper is taken out whole.
const MOST_NESTED: usize = 4;
/// Shortest JSON Web Token that is taken for one, characters.
const LEAST_JWT: usize = 20;

/// A JSON text without secrets. One that cannot be edited is not kept at all.
pub(super) fn cleaned(server: &Server, text: &str) -> String {
    nested(server, text, 0).unwrap_or_else(|| "null".to_owned())
}

fn nested(server: &Server, text: &str, depth: usize) -> Option<String> {
    let by_value = edit::map_strings(text, &|string| {
        let clean = cleaned_string(server, string, depth);
        (clean != string).then_some(clean)
    });
    by_name(&by_value.ok()?)
}

fn cleaned_string(server: &Server, string: &str, depth: usize) -> String {
    let trimmed = string.trim();
    if trimmed.starts_with(['{', '[']) && serde_json::from_str::<Value>(trimmed).is_ok() {
        let inner = if depth < MOST_NESTED { nested(server, trimmed, depth + 1) } else { None };
        return inner.map_or_else(|| TAKEN_OUT.to_owned(), |inner| string.replacen(trimmed, &inner, 1));
    }
    // Of several words each is looked at by itself: `Basic training` is no sign-in.
    let one_word = !trimmed.contains(char::is_whitespace);
    if (one_word && looks_like_secret("", string)) || trimmed.contains("PRIVATE KEY-----") {
        return TAKEN_OUT.to_owned();
    }
    let text = without_passwords_of_urls(&server.without_secrets(string));
    by_word(&text)
}

/// `https://user:password@host` without what stands before the `@`.
fn without_passwords_of_urls(text: &str) -> String {
    let mut parts = text.split("://");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("://");
        let end = part.find(|c: char| c == '/' || c.is_whitespace() || c == '"').unwrap_or(part.len());
        let (host, rest) = part.split_at(end);
        match host.rsplit_once('@') {
            Some((_, host)) => out.extend([TAKEN_OUT, "@", host]),
            None => out.push_str(host),
        }
        out.push_str(rest);
    }
    out
}

/// A word of a text: no blank, and nothing that stands between a name and its value or around either.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+' | '~' | '$' | '!' | '*' | '%' | '^')
}

/// Takes out words that are tokens by themselves or by the word before them.
fn by_word(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut after) = (text, After::Nothing);
    while !rest.is_empty() {
        let end = rest.find(is_of_word).unwrap_or(rest.len());
        let (between, from_word) = rest.split_at(end);
        out.push_str(between);
        let mut end = from_word.find(|c| !is_of_word(c)).unwrap_or(from_word.len());
        let first = from_word.get(..end).unwrap_or_default().trim_end_matches('.');
        let follows = after.makes_secret(between, first);
        let named = follows && !is_scheme(first);
        // A value in quotes goes whole, blanks and all.
        if named && let Some(quote) = between.chars().next_back().filter(|c| matches!(c, '"' | '\'')) {
            end = from_word.find(quote).unwrap_or(from_word.len());
        }
        let (word, left) = from_word.split_at(end);
        let bare = word.trim_end_matches('.');
        if !bare.is_empty() && (named || is_token(bare)) {
            out.push_str(TAKEN_OUT);
            out.push_str(word.get(bare.len()..).unwrap_or_default());
        } else {
            out.push_str(word);
        }
        after = if named { After::Nothing } else { After::of(bare, follows) };
        rest = left;
    }
    out
}

/// What the word before says of the next one.
#[derive(Clone, Copy)]
enum After {
    Nothing,
    /// The name of a secret: its value follows behind `=` or `:`.
    Name,
    /// `Bearer` or `Basic`, which are words of the language as well.
    Scheme,
    /// The same as the value of a header: what follows is the secret.
    NamedScheme,
}

impl After {
    fn of(word: &str, is_value: bool) -> Self {
        match word {
            word if is_scheme(word) && is_value => Self::NamedScheme,
            word if is_scheme(word) => Self::Scheme,
            word if names_secret(word) && !is_value => Self::Name,
            _ => Self::Nothing,
        }
    }

    /// Whether this word, behind these characters, is a secret.
    fn makes_secret(self, between: &str, word: &str) -> bool {
        let joins = |c: &char| !c.is_whitespace() && !matches!(c, '"' | '\'');
        let between: String = between.chars().filter(joins).collect();
        match self {
            Self::Nothing => false,
            Self::Name => matches!(between.as_str(), "=" | ":" | ":=" | "=>"),
            Self::Scheme => between.is_empty() && is_coined(word),
            Self::NamedScheme => between.is_empty(),
        }
    }
}

/// No word of a language: a digit in it, or a capital behind its beginning.
fn is_coined(word: &str) -> bool {
    word.chars().any(|c| c.is_ascii_digit()) || word.chars().skip(1).any(|c| c.is_ascii_uppercase())
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic"].contains(&word.to_ascii_lowercase().as_str())
}

/// A word that is a secret wherever it stands.
fn is_token(word: &str) -> bool {
    let is_jwt = word.starts_with("eyJ") && word.len() >= LEAST_JWT && word.matches('.').count() == 2;
    is_jwt || looks_like_secret("", word)
}

/// Takes out the values of members whose name is a secret's.
fn by_name(text: &str) -> Option<String> {
    let mut found = Vec::new();
    collect(&serde_json::from_str(text).ok()?, "", None, &mut found);
    let quoted = Value::from(TAKEN_OUT).to_string();
    let edits: Vec<(&str, Option<&str>)> = found
        .iter()
        .map(|(pointer, is_number)| {
            (pointer.as_str(), Some(if *is_number { NO_NUMBER } else { quoted.as_str() }))
        })
        .collect();
    if edits.is_empty() { Some(text.to_owned()) } else { edit::set_all(text, &edits).ok() }
}

/// Pointers to secrets, and whether each is a number; `name` is that of the member, which holds for the
/// items of a list. The depth is that of a message, which the door has bounded.
fn collect(value: &Value, pointer: &str, name: Option<&str>, found: &mut Vec<(String, bool)>) {
    let is_secret = |digits: bool| name.is_some_and(|name| names_secret(name) && !(digits && counts(name)));
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let at = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                collect(value, &at, Some(name), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                // A list of lists has no name of its own.
                let name = if item.is_array() { None } else { name };
                collect(item, &format!("{pointer}/{index}"), name, found);
            }
        }
        Value::String(text) => {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let plain =
                text.is_empty() || text == TAKEN_OUT || ["true", "false", "none"].contains(&text.as_str());
            if !plain && is_secret(digits) {
                found.push((pointer.to_owned(), false));
            }
        }
        Value::Number(number) => {
            if number.as_u64() != Some(0) && is_secret(true) {
                found.push((pointer.to_owned(), true));
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// `max_tokens` and `token_count` say how many, and are no secret.
fn counts(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["tokens", "count", "max", "limit", "length", "size", "number", "expires", "ttl"]
        .iter()
        .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests;
