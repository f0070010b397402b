//! The vocabulary of the audit log: every kind that is declared is emitted somewhere and documented, and
//! nothing is documented that is not declared.

use std::fs;
use std::path::{Path, PathBuf};

use toolgate_store::Event;

/// A source file that is part of the product.
struct Source {
    path: String,
    text: String,
}

#[test]
fn every_kind_of_event_is_emitted_by_a_place_that_is_reached_and_no_kind_is_declared_for_nothing() {
    let sources = sources();
    let elsewhere = |wanted: &str| {
        let mut there = sources.iter().filter(|source| !is_vocabulary(&source.path));
        there.any(|source| source.text.contains(wanted))
    };
    let constructors = constructors(&sources);
    let silent: Vec<&str> = Event::ALL
        .iter()
        .filter(|event| {
            let variant = format!("{event:?}");
            let direct = elsewhere(&format!("Event::{variant}")) && emits(&sources, &variant);
            let made = constructors.iter().any(|(name, body)| {
                body.contains(&format!("Event::{variant}")) && elsewhere(&format!("AuditRow::{name}("))
            });
            !direct && !made && !by_deed(&sources, &variant)
        })
        .map(|event| event.name())
        .collect();
    assert!(silent.is_empty(), "declared, and no place emits them: {silent:?}");
}

#[test]
fn every_kind_of_event_is_documented_and_nothing_else_is() {
    let text = fs::read_to_string(root().join("docs/security-teams.md")).unwrap();
    let table = text.split("| `details.event` | written when |").nth(1).unwrap();
    let table: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    let documented: Vec<&str> = table
        .iter()
        .flat_map(|line| line.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2))
        .collect();
    for event in Event::ALL {
        assert!(documented.contains(&event.name()), "{} stands in no row of the table", event.name());
    }
    for name in &documented {
        assert!(
            Event::ALL.iter().any(|event| event.name() == *name),
            "{name} is documented and not declared"
        );
    }
    let actions = text.lines().find(|line| line.starts_with("| `action` |")).unwrap();
    for event in Event::ALL {
        let (noun, verb) = event.action().split_once('.').unwrap();
        let there = actions.contains(&format!("`{}`", event.action()))
            || (actions.contains(&format!("`{noun}.")) && actions.contains(&format!("`.{verb}`")));
        assert!(there, "the action {} is not documented", event.action());
    }
}

/// The files that declare kinds, or make rows of them for others.
fn is_vocabulary(path: &str) -> bool {
    ["audit/event.rs", "audit/row.rs", "audit/deed.rs"].iter().any(|name| path.ends_with(name))
}

/// Whether a file that names the kind also makes rows or hands the kind to what does.
fn emits(sources: &[Source], variant: &str) -> bool {
    sources.iter().any(|source| {
        !is_vocabulary(&source.path)
            && source.text.contains(&format!("Event::{variant}"))
            && (source.text.contains("AuditRow") || source.text.contains("append"))
    })
}

/// Name and body of each function of `AuditRow` that makes a row.
fn constructors(sources: &[Source]) -> Vec<(String, String)> {
    let row = sources.iter().find(|source| source.path.ends_with("audit/row.rs")).unwrap();
    let functions = row.text.split("pub fn ").skip(1);
    let functions = functions.map(|rest| {
        let name = rest.split(['(', '<']).next().unwrap_or_default().to_owned();
        (name, rest.to_owned())
    });
    functions.collect()
}

/// Calls, reads, prompts, completions and subscriptions share the rows of a deed; `CallFacts` says which.
fn by_deed(sources: &[Source], variant: &str) -> bool {
    let deed = sources.iter().find(|source| source.path.ends_with("audit/deed.rs")).unwrap();
    let of_deed = deed.text.contains(&format!("Event::{variant}"));
    let used = ["called", "completed", "failed", "cancelled"].iter().all(|name| {
        let call = format!("AuditRow::{name}(");
        sources.iter().any(|source| source.path.contains("host/gateway/") && source.text.contains(&call))
    });
    of_deed && used
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    let mut directories = vec![root().join("host")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["tests", "target"].contains(&name.as_str()) {
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|end| end == "rs")
                && name != "tests.rs"
                && name != "testing.rs"
            {
                let text = fs::read_to_string(&path).unwrap();
                // What stands behind a module of tests is no product.
                let text = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
                found.push(Source { path: path.display().to_string(), text });
            }
        }
    }
    assert!(found.len() > 100);
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
