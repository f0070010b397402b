//! What `tests/gates.toml` says of the gates is in the source.
//!
//! A call that moved would leave a gate that `cargo xtask gates` cannot remove, and nobody would see that
//! for as long as nobody asks. So each call stands exactly once in its file and can be switched off, each
//! gate has exactly one test, no two gates share a name, and each is explained to readers.

use std::collections::BTreeSet;
use std::fs;

use crate::Outcome;
use crate::check::Finding;
use crate::gates::{self, GATES, Gate, switch};
use crate::project::Project;

/// Where readers find the gates.
const TABLE: &str = "docs/architecture.md";

/// Gates whose call, test or explanation is not there, or that cannot be switched off.
pub(super) fn check(project: &Project) -> Outcome<Vec<Finding>> {
    let gates = gates::load(project)?;
    let mut tests = String::new();
    for file in project.files(&[".rs"])?.iter().filter(|file| file.starts_with("tests/e2e/tests/")) {
        tests.push_str(&fs::read_to_string(project.path(file))?);
    }
    let table = fs::read_to_string(project.path(TABLE))?;
    let source = |file: &str| fs::read_to_string(project.path(file)).ok();
    let findings = compare(&gates, &source, &tests, &table);
    // What does not stand there cannot be switched either.
    Ok(if findings.is_empty() { unswitched(&gates, &source) } else { findings })
}

fn compare(
    gates: &[Gate],
    source: &dyn Fn(&str) -> Option<String>,
    tests: &str,
    table: &str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    for Gate { name, file, call, without, test } in gates {
        let mut find = |what: String| findings.push(Finding::new(GATES, format!("gate `{name}`: {what}")));
        if !names.insert(name) {
            find("another gate has this name".into());
        }
        match source(file).map(|text| text.matches(call.as_str()).count()) {
            Some(1) => {}
            Some(times) => {
                find(format!("its call stands {times} times in {file}; it has to stand there once"));
            }
            None => find(format!("{file} cannot be read")),
        }
        if call == without {
            find("nothing changes where it is removed".into());
        }
        match tests.lines().filter(|line| line.contains("fn ") && line.contains(test.as_str())).count() {
            1 => {}
            found => find(format!("{found} tests of the binary have `{test}` in their name, and not one")),
        }
        if !table.contains(&format!("| {name} |")) {
            find(format!("{TABLE} does not explain it"));
        }
    }
    findings
}

fn unswitched(gates: &[Gate], source: &dyn Fn(&str) -> Option<String>) -> Vec<Finding> {
    let files = gates::by_file(gates).into_iter();
    let wrong =
        files.filter_map(|(file, gates)| Some((file, switch::switched(&source(file)?, &gates).err()?)));
    wrong.map(|(file, error)| Finding::new(GATES, format!("{file}: {error}"))).collect()
}

#[cfg(test)]
mod tests;
