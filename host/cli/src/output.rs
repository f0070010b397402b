//! Standard output: text for a person, escaped, or JSON for a program, and nothing else beside it.
//!
//! A reader that closes the pipe early ends the output quietly (FP-26).

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use serde::Serialize;

use crate::exit::Failure;

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For a person.
    Text,
    /// For a program.
    Json,
}

impl Format {
    /// `--json` as a switch.
    pub(crate) fn json(on: bool) -> Self {
        if on { Self::Json } else { Self::Text }
    }
}

/// Prints one line of text, escaped: it may hold a server's words.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    raw_line(&toolgate_base::display::show_multiline(text))
}

/// The same where names of a server's stand in the line: a line break in one of them begins no line of its own
/// (SE-03).
pub(crate) fn one_line(text: &str) -> Result<(), Failure> {
    raw_line(&toolgate_base::display::show(text))
}

/// A number with its noun: `1 server`, `2 servers`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Prints one JSON value on one line.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::failed)?;
    raw_line(&text)
}

/// Prints a line as it is: only for text that is known to be JSON or Toolgate's own.
pub(crate) fn raw_line(text: &str) -> Result<(), Failure> {
    let text = visible(text);
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::failed(format!("cannot write to standard output: {error}"))),
    }
}

/// The same JSON with every character that a terminal obeys or hides, and every letter that is taken for
/// another, written as `\u` (SE-01, SE-03, SE-14). Such characters stand only inside of strings, where the
/// escape means the same.
fn visible(text: &str) -> Cow<'_, str> {
    let hides = |character: char| {
        (character.is_control() && character != '\n') || toolgate_base::hidden::is_hidden(character)
    };
    let places = toolgate_base::lookalike::places(text);
    if places.is_empty() && !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    let mut places = places.iter().peekable();
    let mut shown = String::with_capacity(text.len() + 64);
    for (at, character) in text.char_indices() {
        let is_foreign = places.next_if(|place| **place == at).is_some();
        if is_foreign || hides(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Says on standard error what is going on; for work that takes more than a moment.
pub(crate) fn note(text: &str) {
    // Who cannot be told is not a reason to stop the work.
    let _ = writeln!(io::stderr(), "{}", toolgate_base::display::show_multiline(text));
}

/// Prints a table with columns as wide as their cells.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| toolgate_base::display::show(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        let title = header.get(column).map_or(0, |title| title.chars().count());
        cells.max().unwrap_or(0).max(title)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let render = |cells: &mut dyn Iterator<Item = &str>| -> String {
        let mut text = String::new();
        for (cell, width) in cells.zip(&widths) {
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count()) + 2));
        }
        text.trim_end().to_owned()
    };
    raw_line(&render(&mut header.iter().copied()))?;
    for row in &rows {
        raw_line(&render(&mut row.iter().map(String::as_str)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
