//! `plugin test`: a component asked every document of its project, under the host's own limits.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolgate_config::Places;
use toolgate_gateway::assemble::{SCHEMA_FILE, setting_faults};
use toolgate_grants::{FilesGrant, Grants};
use toolgate_plugins::{
    Admission, DecisionSet, LoadError, LoadErrorKind, Manifest, ManifestError, Outcome, Recorded,
    RehearsalError, rehearse,
};
use toolgate_signing::Release;

use super::documents::{self, EXPECTED, difference, indented, pretty};
use super::refusal::of_manifest;
use crate::args::plugin::PluginTest;
use crate::exit::Failure;
use crate::output;

/// The settings that a project tests with.
const SETTINGS: &str = "settings.json";
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
    // First, so that a directory which is no project is told as that.
    Manifest::read(&args.dir).map_err(|error| of_manifest(&error, &args.dir))?;
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
    let unusable = |error: &ManifestError| of_manifest(error, directory);
    let manifest = Manifest::read(directory).map_err(|error| unusable(&error))?;
    let component = manifest.component().map_err(|error| unusable(&error))?;
    let release = manifest.release(&component, NEVER).map_err(|error| unusable(&error))?;
    let schema = fs::read(directory.join(SCHEMA_FILE)).ok().map(Into::into);
    let settings = settings(directory)?;
    let places = Places::of_text(directory.join(SETTINGS), "settings", &settings);
    let grants = grants(directory, &release)?;
    let admission =
        Admission { decisions: DecisionSet::ALL, settings, schema, grants, ..Admission::default() };
    tell_closed(&release);
    rehearse(&component, &release, &admission, documents).map_err(|error| match error {
        RehearsalError::Host(_) => Failure::failed(error),
        RehearsalError::Release(_) => Failure::usage(error).hint("correct plugin.toml"),
        RehearsalError::Load(LoadError { kind: LoadErrorKind::SettingsRefused(faults), plugin }) => {
            let faults = setting_faults(&faults, &places).join("\n");
            Failure::usage(format!("the settings of {plugin} do not fit its schema:\n{faults}"))
                .hint(format!("correct {SETTINGS}, or {SCHEMA_FILE} if it is too strict"))
        }
        RehearsalError::Load(_) => Failure::failed(error).hint(
            "this is what an operator would meet; correct plugin.toml or settings.json, or build it again",
        ),
    })
}

/// The directories of the test: `documents/files/LABEL` for each label of `files` that has one.
fn grants(directory: &Path, release: &Release) -> Result<Grants, Failure> {
    let mut grants = Grants::default();
    for label in release.capabilities.files.keys() {
        let path = directory.join("documents").join("files").join(label);
        if path.is_dir() {
            let path = path
                .canonicalize()
                .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", path.display())))?;
            let grant = FilesGrant { directories: vec![path], access: None };
            grants.files.insert(label.clone(), grant);
        }
    }
    Ok(grants)
}

/// Capabilities that a test does not open, so that nobody looks for the reason in the plugin.
fn tell_closed(release: &Release) {
    let declared = &release.capabilities;
    let labels = |interface: &str, labels: Vec<&String>| {
        labels.iter().map(|label| format!("{interface}.{label}")).collect::<Vec<_>>().join(", ")
    };
    if !declared.http.is_empty() {
        let labels = labels("http", declared.http.keys().collect());
        output::note(&format!("a test reaches no host, so {labels} answers as denied"));
    }
    if !declared.secrets.is_empty() {
        let labels = labels("secrets", declared.secrets.keys().collect());
        output::note(&format!("a test has no secrets, so {labels} answers as unavailable"));
    }
}

/// The settings that the project tests with.
fn settings(directory: &Path) -> Result<String, Failure> {
    let path = directory.join(SETTINGS);
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
            let why = match &row.state {
                State::Different(why) | State::Fault(why) => Some(why),
                State::Same | State::Updated | State::NotAsked => None,
            };
            json!({
                "document": row.name, "hook": row.moment, "state": state, "answer": outcome.answer, "why": why,
            })
        })
        .collect();
    output::json(&json!({ "documents": told }))
}
