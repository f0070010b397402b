//! A command written as one text (`npx -y server`): rows CFG-006 and CFG-029, conflict C06.
//!
//! Contract: a text without a space, or one that names an existing file, is a program and nothing
//! else. Any other is split as a POSIX shell splits words, quotes included, and no shell ever sees
//! it: `|`, `&&`, `>` and the like would reach the program as arguments, so they are reported.

use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// Splits a command text into program and arguments, or says why it cannot be split.
pub(crate) fn split(command: &str) -> Result<Vec<String>, &'static str> {
    match shlex::split(command) {
        None => Err("a quote in the command is not closed; close it, or write `command` and `args` apart"),
        Some(words) if words.is_empty() => Err("the command is empty; name the program to start"),
        Some(words) => Ok(words),
    }
}

/// The first word that only a shell would understand.
pub(crate) fn shell_word(words: &[String]) -> Option<&str> {
    const OPERATORS: [&str; 10] = ["|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"];
    words.iter().map(String::as_str).find(|word| OPERATORS.contains(word))
}

/// A path as a configuration means it: `~/` is the home directory, anything relative counts from
/// `base`. Lexical: `.` parts go, `..` parts stay.
pub(crate) fn resolve(text: &str, base: &Path, home: Option<&Path>) -> PathBuf {
    let path = match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        (None, Some(home)) if text == "~" => home.to_owned(),
        _ => base.join(text),
    };
    path.components().collect()
}

/// A program as a configuration means it: with a `/` it is a path, without one a name for `PATH`.
pub(crate) fn resolve_program(text: &str, base: &Path, home: Option<&Path>) -> String {
    if text.contains('/') {
        resolve(text, base, home).to_string_lossy().into_owned()
    } else {
        text.to_owned()
    }
}
