//! `.env` and `secrets.env`: lines of `NAME=value`.
//!
//! Contract: blank lines and lines that start with `#` are nothing; `export ` before a name is
//! allowed; a value may stand in single quotes (as it is) or in double quotes (`\n`, `\t`, `\"`, `\\`,
//! `\$`); without quotes it ends before ` #` and is trimmed. Nothing is expanded, the last of two
//! equal names counts, and nothing is put into the environment of the process.
//!
//! Bounds: 256 KiB. Threat: an error message shows a secret; it names the line and no word of it.

use std::collections::BTreeMap;

use toolgate_base::Secret;

use crate::expand::is_variable_name;

#[cfg(test)]
mod tests;

/// Longest file that is read.
pub(crate) const MAX_BYTES: u64 = 256 * 1024;

/// A line that cannot be read, from 1, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LineError {
    pub(crate) line: u64,
    pub(crate) what: &'static str,
}

/// Reads every line.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, Secret>, LineError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = BTreeMap::new();
    for (number, line) in (1_u64..).zip(text.lines()) {
        match parse_line(line) {
            Ok(Some((name, value))) => {
                found.insert(name.to_owned(), value);
            }
            Ok(None) => {}
            Err(what) => return Err(LineError { line: number, what }),
        }
    }
    Ok(found)
}

/// The name that a line sets, if it sets one.
pub(crate) fn name_of(line: &str) -> Option<&str> {
    parse_line(line).ok().flatten().map(|(name, _)| name)
}

/// A line that [`parse`] reads back as the same name and value.
pub(crate) fn line(name: &str, value: &Secret) -> Secret {
    let mut line = format!("{name}=\"");
    for character in value.expose().chars() {
        match character {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            '"' | '\\' | '$' => {
                line.push('\\');
                line.push(character);
            }
            _ => line.push(character),
        }
    }
    line.push('"');
    Secret::new(line)
}

fn parse_line(line: &str) -> Result<Option<(&str, Secret)>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, value) = line.split_once('=').ok_or("a line is NAME=value; this one has no `=`")?;
    let name = name.trim();
    let name = name.strip_prefix("export ").map_or(name, str::trim);
    if !is_variable_name(name) {
        return Err("what stands before `=` is no variable name (letters, digits and `_`)");
    }
    Ok(Some((name, parse_value(value.trim())?)))
}

fn parse_value(value: &str) -> Result<Secret, &'static str> {
    const UNCLOSED: &str = "a quoted value is not closed, or something follows it on its line";
    if let Some(rest) = value.strip_prefix('\'') {
        let (inside, after) = rest.split_once('\'').ok_or(UNCLOSED)?;
        return nothing_after(after).then(|| Secret::new(inside)).ok_or(UNCLOSED);
    }
    if let Some(rest) = value.strip_prefix('"') {
        let mut text = String::with_capacity(rest.len());
        let mut characters = rest.chars();
        loop {
            match characters.next().ok_or(UNCLOSED)? {
                '"' => break,
                '\\' => match characters.next().ok_or(UNCLOSED)? {
                    'n' => text.push('\n'),
                    'r' => text.push('\r'),
                    't' => text.push('\t'),
                    other => text.push(other),
                },
                other => text.push(other),
            }
        }
        return nothing_after(characters.as_str()).then(|| Secret::new(text)).ok_or(UNCLOSED);
    }
    let end = value.find(" #").unwrap_or(value.len());
    Ok(Secret::new(value.get(..end).unwrap_or(value).trim_end()))
}

fn nothing_after(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with('#')
}
