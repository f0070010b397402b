//! `docs/requirements.md` and the tests that prove it belong together.
//!
//! Its lines are `| ID | one sentence | test, test |`, with each test in backticks as a function
//! name (a path before it is for the reader) or as a file of the tree. An id that a test names
//! needs a line with text; a line needs tests that exist. An id is a known family, `-` or `_`, and
//! two or three digits; in the name of a test it may be in lower case, as `st_05_…`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::Outcome;
use crate::check::Finding;
use crate::project::Project;

const DOCUMENT: &str = "docs/requirements.md";

/// The shortest text that can say anything, characters.
const SHORTEST: usize = 12;

/// The families of ids; a word like `UTF-16` is none of them.
const FAMILIES: [&str; 43] = [
    "APR", "AUD", "CAP", "CARD", "CFG", "CLI", "DBQ", "DED", "DSP", "ELI", "EXE", "FK", "FM", "FP", "FR",
    "FT", "GW", "HOT", "HT", "LIM", "NEG", "OA", "OAU", "PI", "PR", "PRB", "PRG", "PRM", "REG", "RES", "RG",
    "RL", "RSV", "SCP", "SE", "SEC", "SMP", "SRV", "ST", "TRB", "TRU", "TSK", "WA",
];

/// What the tests of the tree hold.
#[derive(Default)]
struct Tests {
    /// Where each id is named first.
    ids: BTreeMap<String, String>,
    /// The names of all functions in tests.
    functions: BTreeSet<String>,
}

/// Ids without a line, lines without text, and lines whose tests do not exist.
pub(super) fn check(project: &Project) -> Outcome<Vec<Finding>> {
    let Ok(document) = fs::read_to_string(project.path(DOCUMENT)) else {
        return Ok(vec![Finding::new(DOCUMENT, "is absent")]);
    };
    let mut tests = Tests::default();
    for file in project.files(&[".rs", ".py", ".mjs", ".ts"])? {
        if let Some(code) = test_code(&file, &fs::read_to_string(project.path(&file))?) {
            tests.add(&file, code);
        }
    }
    Ok(compare(&document, &tests, &|file| project.path(file).is_file()))
}

/// The part of a file that is tests. What checks the ids has examples of its own and is left out.
fn test_code<'a>(file: &str, text: &'a str) -> Option<&'a str> {
    let ours = ["host/", "registry/", "tests/", "plugins/"].iter().any(|top| file.starts_with(top));
    if !ours || file.starts_with("tests/xtask/") {
        return None;
    }
    if file.starts_with("tests/") || file.contains("/tests/") || file.ends_with("tests.rs") {
        return Some(text);
    }
    text.find("#[cfg(test)]\nmod tests {").and_then(|at| text.get(at..))
}

impl Tests {
    fn add(&mut self, file: &str, code: &str) {
        for (number, line) in code.lines().enumerate() {
            for name in function_names(line) {
                self.functions.insert(name.to_owned());
                self.name(ids(&name.to_ascii_uppercase()), file, number);
            }
            self.name(ids(line), file, number);
        }
    }

    fn name(&mut self, ids: Vec<String>, file: &str, number: usize) {
        for id in ids {
            self.ids.entry(id).or_insert_with(|| format!("{file}:{}", number + 1));
        }
    }
}

fn compare(document: &str, tests: &Tests, is_file: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut described = BTreeSet::new();
    for (number, line) in document.lines().enumerate() {
        let Some((id, text, named)) = entry(line) else { continue };
        let place = format!("{DOCUMENT}:{}", number + 1);
        if text.chars().count() < SHORTEST {
            findings.push(Finding::new(&place, format!("{id} has no text")));
        }
        if named.is_empty() {
            findings.push(Finding::new(&place, format!("{id} names no test")));
        }
        for test in named {
            let function = test.rsplit("::").next().unwrap_or(test);
            if !tests.functions.contains(function) && !is_file(test) {
                findings.push(Finding::new(
                    &place,
                    format!("{id} names the test `{test}`, which does not exist"),
                ));
            }
        }
        described.insert(id);
    }
    let missing = tests.ids.iter().filter(|(id, _)| !described.contains(*id));
    findings.extend(
        missing
            .map(|(id, place)| Finding::new(place, format!("names {id}, which has no line in {DOCUMENT}"))),
    );
    findings
}

/// Id, text and tests of a line of the table; none for any other line.
fn entry(line: &str) -> Option<(String, &str, Vec<&str>)> {
    let mut cells = line.trim().strip_prefix('|')?.split('|').map(str::trim);
    let id = ids(cells.next()?).into_iter().next()?;
    let text = cells.next().unwrap_or_default();
    let tests = cells.next().unwrap_or_default();
    let named = tests.split('`').skip(1).step_by(2).map(|test| test.trim_end_matches("()")).collect();
    Some((id, text, named))
}

/// Names after `fn ` and `def ` in a line.
fn function_names(line: &str) -> Vec<&str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words
        .windows(2)
        .filter_map(|pair| match pair {
            ["fn" | "def", name] => name.split(|c: char| !c.is_alphanumeric() && c != '_').next(),
            _ => None,
        })
        .filter(|name| !name.is_empty())
        .collect()
}

/// The ids in a text, spelt `ST-05` or `ST_05` there, `ST-05` here.
fn ids(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let mut found = Vec::new();
    let mut at = 0;
    for pair in words.windows(2) {
        let [family, number] = pair else { continue };
        let joint = at + family.len();
        let joined = text.get(joint..=joint).is_some_and(|c| c == "-" || c == "_");
        let digits = (2..=3).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
        if joined && digits && FAMILIES.contains(family) {
            found.push(format!("{family}-{number}"));
        }
        at = text.get(joint..).and_then(|rest| rest.chars().next()).map_or(joint, |c| joint + c.len_utf8());
    }
    found
}

#[cfg(test)]
mod tests;
