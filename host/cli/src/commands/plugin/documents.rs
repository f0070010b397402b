//! Recorded documents in a directory, and answers to them side by side.
//!
//! Bounds: a document is read up to the limit of a message.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use toolgate_plugins::Recorded;

use crate::exit::Failure;

/// Ends the name of a file with what is expected.
pub(super) const EXPECTED: &str = ".expected.json";
/// No document is read beyond this; it is the limit of a message.
const MAX_DOCUMENT: u64 = 16 * 1024 * 1024;

/// The documents by name, so that every run asks in the same order.
pub(super) fn read(directory: &Path) -> Result<Vec<Recorded>, Failure> {
    let unreadable = |path: &Path, error: &std::io::Error| {
        Failure::usage(format!("{} cannot be read: {error}", path.display()))
            .hint("a project has its documents in `documents/`; `toolgate mcp record` writes some")
    };
    let entries = fs::read_dir(directory).map_err(|error| unreadable(directory, &error))?;
    let mut names = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(directory, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(".json").filter(|_| !name.ends_with(EXPECTED)) {
            names.insert(name.to_owned());
        }
    }
    let mut documents = Vec::new();
    for name in names {
        let path = directory.join(format!("{name}.json"));
        let size = fs::metadata(&path).map_err(|error| unreadable(&path, &error))?.len();
        if size > MAX_DOCUMENT {
            let text = format!("{} has {size} bytes; at most {MAX_DOCUMENT} are read", path.display());
            return Err(Failure::usage(text));
        }
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        documents.push(Recorded::parse(&name, &text).map_err(Failure::usage)?);
    }
    if documents.is_empty() {
        return Err(Failure::usage(format!("{} has no documents", directory.display()))
            .hint("record some with `toolgate mcp record SERVER --out DIR`"));
    }
    Ok(documents)
}

/// An answer as it is written and compared.
pub(super) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Line by line: `-` was expected, `+` is the answer.
pub(super) fn difference(old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let lines = diff.iter_all_changes().map(|change| {
        let sign = match change.tag() {
            ChangeTag::Delete => "- ",
            ChangeTag::Insert => "+ ",
            ChangeTag::Equal => "  ",
        };
        indented(change.value(), sign)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Every line below the one that says what it is about.
pub(super) fn indented(text: &str, sign: &str) -> String {
    text.lines().map(|line| format!("      {sign}{line}")).collect::<Vec<_>>().join("\n")
}
