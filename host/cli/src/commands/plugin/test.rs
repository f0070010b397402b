//! `plugin test`: a component asked every document of its project, under the host's own limits.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolgate_gateway::assemble::SCHEMA_FILE;
use toolgate_plugins::{
    Admission, DecisionSet, HostOptions, Manifest, Outcome, PluginHost, Recorded, replay, trial,
};

use super::documents::{self, EXPECTED, difference, indented, pretty};
use crate::args::plugin::PluginTest;
use crate::exit::Failure;
use crate::output;

/// A release states when it was published, and this one never is.
const NEVER: &str = "2000-01-01T00:00:00Z";

/// How one document came out.
struct Row {
    name: String,
    moment: &'static str,
    state: State,
}

enum State {
    /// The answer is the expected one.
    Same,
    /// The answer was written as the expected one.
    Updated,
    /// This plugin is not asked there.
    NotAsked,
    /// The answer is another; the text shows the difference, or says what is missing.
    Different(String),
    /// The plugin failed.
    Fault(String),
}

/// Runs the verb.
pub(super) fn test(args: &PluginTest) -> Result<(), Failure> {
    let documents = documents::read(&args.dir.join("documents"))?;
    let outcomes = ask(&args.dir, &documents)?;
    let mut rows = Vec::new();
    for (document, outcome) in documents.iter().zip(&outcomes) {
        let state = judge(&args.dir, outcome, args.update)?;
        rows.push(Row { name: document.name().to_owned(), moment: document.moment().word(), state });
    }
    if args.json {
        as_json(&rows, &outcomes)?;
    } else {
        as_text(&rows)?;
    }
    let wrong = rows.iter().filter(|row| matches!(row.state, State::Different(_) | State::Fault(_))).count();
    if wrong == 0 {
        return Ok(());
    }
    Err(Failure::failed(format!("{wrong} of {} documents came out otherwise than expected", rows.len()))
        .hint("if the new answers are right, `toolgate plugin test --update` writes them as expected"))
}

/// Every answer, from the component that the manifest names.
fn ask(directory: &Path, documents: &[Recorded]) -> Result<Vec<Outcome>, Failure> {
    let manifest = Manifest::read(directory).map_err(Failure::usage)?;
    let component = manifest.component().map_err(|error| {
        Failure::usage(error).hint(format!("build it first: toolgate plugin build {}", directory.display()))
    })?;
    let release = manifest.release(&component, NEVER).map_err(Failure::usage)?;
    let trial = trial(&release, &component)
        .map_err(|error| Failure::usage(format!("this could not be released as it is: {error}")))?;
    let schema = fs::read(directory.join(SCHEMA_FILE)).ok().map(Into::into);
    let admission = Admission {
        decisions: DecisionSet::ALL,
        settings: settings(directory)?,
        schema,
        ..Admission::default()
    };
    let host = PluginHost::new(HostOptions::default()).map_err(Failure::failed)?;
    replay(&host, &component, &trial, &admission, documents).map_err(Failure::failed)
}

/// The settings that the project tests with.
fn settings(directory: &Path) -> Result<String, Failure> {
    let path = directory.join("settings.json");
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok("{}".to_owned()),
        Err(error) => Err(Failure::usage(format!("{} cannot be read: {error}", path.display()))),
    }
}

/// Compares one answer with what stands beside its document, or writes it there.
fn judge(directory: &Path, outcome: &Outcome, update: bool) -> Result<State, Failure> {
    if let Some(fault) = &outcome.fault {
        return Ok(State::Fault(fault.to_string()));
    }
    let Some(answer) = &outcome.answer else { return Ok(State::NotAsked) };
    let path = directory.join("documents").join(format!("{}{EXPECTED}", outcome.name));
    let expected = expected(&path)?;
    if expected.as_ref() == Some(answer) {
        return Ok(State::Same);
    }
    if update {
        fs::write(&path, pretty(answer))
            .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))?;
        return Ok(State::Updated);
    }
    Ok(State::Different(match expected {
        Some(expected) => difference(&pretty(&expected), &pretty(answer)),
        None => format!("nothing is expected yet; the answer is\n{}", indented(&pretty(answer), "+ ")),
    }))
}

fn expected(path: &PathBuf) -> Result<Option<Value>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::usage(format!("{} cannot be read: {error}", path.display()))),
    }
}

fn as_text(rows: &[Row]) -> Result<(), Failure> {
    for row in rows {
        let (word, more) = match &row.state {
            State::Same => ("ok", None),
            State::Updated => ("updated", None),
            State::NotAsked => ("not asked", None),
            State::Different(text) => ("DIFFERENT", Some(text)),
            State::Fault(text) => ("FAULT", Some(text)),
        };
        output::line(&format!("{word:<9}  {} ({})", row.name, row.moment))?;
        if let Some(text) = more {
            output::line(text)?;
        }
    }
    Ok(())
}

fn as_json(rows: &[Row], outcomes: &[Outcome]) -> Result<(), Failure> {
    let told: Vec<Value> = rows
        .iter()
        .zip(outcomes)
        .map(|(row, outcome)| {
            let state = match row.state {
                State::Same => "ok",
                State::Updated => "updated",
                State::NotAsked => "not_asked",
                State::Different(_) => "different",
                State::Fault(_) => "fault",
            };
            json!({ "document": row.name, "hook": row.moment, "state": state, "answer": outcome.answer })
        })
        .collect();
    output::json(&json!({ "documents": told }))
}
