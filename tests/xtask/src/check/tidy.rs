//! Files that have outgrown one concern, marks of unfinished work, and names that stay where they are.

use std::fs;
use std::path::Path;

use crate::Outcome;
use crate::check::Finding;
use crate::project::Project;

/// The longest Rust file, lines. About 400 is the aim; 500 is where a second concern moved in.
const LONGEST: usize = 500;

/// Marks of unfinished work, written so that this file does not hold them.
const MARKS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
];

/// Makes a store without an audit log, which nothing but the bench may have.
const NO_AUDIT: &str = concat!("open_without_audit_", "for_the_bench");

/// Where [`NO_AUDIT`] may stand.
const NO_AUDIT_IN: [&str; 2] = ["host/store/src/store.rs", "tests/bench/"];

/// Long files and unfinished marks in Rust and WIT.
pub(super) fn check(project: &Project) -> Outcome<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in project.files(&[".rs", ".wit"])? {
        let text = fs::read_to_string(project.path(&file)).map_err(|fault| format!("{file}: {fault}"))?;
        findings.extend(of_file(&file, &text));
    }
    Ok(findings)
}

fn of_file(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if Path::new(file).extension().is_some_and(|end| end == "rs") && lines > LONGEST {
        findings
            .push(Finding::new(file, format!("has {lines} lines, more than {LONGEST}: split it by concern")));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(mark) = MARKS.iter().find(|mark| holds_word(line, mark)) {
            findings.push(Finding::new(format!("{file}:{}", number + 1), format!("unfinished: `{mark}`")));
        }
        if line.contains(NO_AUDIT) && !NO_AUDIT_IN.iter().any(|place| file.starts_with(place)) {
            let text = format!("`{NO_AUDIT}` is for tests/bench alone: everything else has an audit log");
            findings.push(Finding::new(format!("{file}:{}", number + 1), text));
        }
    }
    findings
}

/// Whether a mark stands in a line as a word of its own.
fn holds_word(line: &str, mark: &str) -> bool {
    let letter = |side: Option<char>| side.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(mark).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + mark.len()..).and_then(|text| text.chars().next());
        !letter(before) && (mark.ends_with('(') || !letter(after))
    })
}

#[cfg(test)]
mod tests;
