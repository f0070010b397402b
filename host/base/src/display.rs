//! Makes any text safe to show a person: on a terminal, in a log line, in a question.
//!
//! Threat: a server's name, description, output or error stream carries terminal sequences that
//! clear the screen, change the title or forge a line (SE-03), or characters that are not seen
//! (SE-01). Every such character is written out as `\u{1b}`; nothing is dropped, so that what is
//! shown tells what was there. Output is at most ten times as long as the input.
//!
//! The result is for eyes. A text that contains a literal `\u{1b}` looks the same as an escaped
//! one; what is hashed, compared or sent is always the raw text.

use std::fmt::Write as _;

use crate::{hidden, lookalike};

/// One line for a person's eyes: as [`escape`], and letters that are taken for ASCII ones are written out too
/// (SE-14). Only for what is shown: what is kept keeps its letters.
pub fn show(text: &str) -> String {
    escape_with(text, false, &lookalike::places(text))
}

/// The same for several lines, as [`escape_multiline`].
pub fn show_multiline(text: &str) -> String {
    escape_with(text, true, &lookalike::places(text))
}

/// One line: everything [`hidden::find`] reports is escaped, and `\n`, `\r`, `\t` too.
pub fn escape(text: &str) -> String {
    escape_with(text, false, &[])
}

/// Several lines: as [`escape`], but line breaks and tabs stay. A CR LF becomes a LF; a lone CR is
/// escaped, because a terminal would write over the line before it.
pub fn escape_multiline(text: &str) -> String {
    escape_with(text, true, &[])
}

/// Whether a text of a stranger's may stand in a command that somebody is told to run: it is one word of every
/// shell, nothing in it is obeyed, and it reads as no option. Nothing is quoted here, since what quotes means
/// differs between shells, and a model that copies a command may leave them out.
pub fn is_command_word(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && bytes.all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b':' | b'@' | b'+' | b'-')
        })
}

/// Whether a text of a stranger's may stand between the double quotes of a label that somebody is told to write:
/// it ends no quote of YAML or of a sentence, and a shell that is given it by mistake starts nothing.
pub fn is_label_text(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'_' | b'.' | b'/' | b':' | b'@' | b'+' | b'-')
                || matches!(byte, b' ' | b',' | b'=' | b'?' | b'%' | b'~')
        })
        && text.trim() == text
}

fn escape_with(text: &str, multiline: bool, marked: &[usize]) -> String {
    let mut marked = marked.iter().peekable();
    let mut at = 0;
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    for span in hidden::spans(text) {
        rest = rest.get(span.text.len()..).unwrap_or_default();
        for character in span.text.chars() {
            let is_marked = marked.next_if(|place| **place == at).is_some();
            at += character.len_utf8();
            match character {
                '\n' | '\t' if multiline => escaped.push(character),
                '\n' => escaped.push_str("\\n"),
                '\t' => escaped.push_str("\\t"),
                '\r' if multiline && rest.starts_with('\n') => {}
                '\r' => escaped.push_str("\\r"),
                // The printable characters of a terminal sequence do nothing once its
                // introducer is escaped, and they say what it would have done.
                ' '..='~' => escaped.push(character),
                _ if is_marked || span.kind.is_some() => push_code_point(&mut escaped, character),
                _ => escaped.push(character),
            }
        }
    }
    escaped
}

fn push_code_point(escaped: &mut String, character: char) {
    // Writing to a `String` cannot fail.
    let _ = write!(escaped, "\\u{{{:x}}}", u32::from(character));
}

#[cfg(test)]
mod tests;
