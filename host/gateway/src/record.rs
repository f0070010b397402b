//! What plugins are asked, kept for an author who tests with it (`mcp record`).
//!
//! Contract: off unless a command of the operator's turns it on for its own gateway; then every
//! moment at which an adapter or a policy would be asked is kept, whether or not one is configured,
//! with secrets taken out. Bounds: [`MOST`] documents; what comes after them is not kept.
//!
//! Threat: a recording ends in a repository. The values of the server's own variables and headers go,
//! and so does every text that looks like a secret by its name or its beginning; what does not look
//! like one stays, and the command says so.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;
use toolgate_config::{Server, looks_like_secret};
use toolgate_plugins::{Document, Facts, Moment, Recorded};
use toolgate_wire::edit;

use crate::Gateway;

/// Most documents of one recording.
const MOST: usize = 4096;

/// What stands for a secret.
const TAKEN_OUT: &str = "***";

/// A recording, or none.
#[derive(Default)]
pub(crate) struct Recorder(OnceLock<Mutex<Vec<Recorded>>>);

impl Recorder {
    /// Whether a moment is worth making its facts for.
    pub(crate) fn is_on(&self) -> bool {
        self.0.get().is_some()
    }

    /// Keeps one moment.
    pub(crate) fn keep(&self, server: &Server, moment: Moment, facts: &Facts) {
        let Some(kept) = self.0.get() else { return };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST {
            let name = free_name(&kept, &format!("{}-{}", moment.word(), file_name(&facts.name)));
            kept.push(Recorded::new(name, moment, Arc::new(without_secrets(server, facts))));
        }
    }
}

impl Gateway {
    /// Keeps from now on what plugins are asked.
    pub fn start_recording(&self) {
        self.recorder.0.get_or_init(Mutex::default);
    }

    /// What was kept until now, in the order in which it was asked.
    pub fn recording(&self) -> Vec<Recorded> {
        let kept = self.recorder.0.get().map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner));
        kept.map(|kept| kept.clone()).unwrap_or_default()
    }
}

/// The facts as they may stand in a repository.
fn without_secrets(server: &Server, facts: &Facts) -> Facts {
    let clean = |document: &Option<Document>| {
        document.as_ref().map(|document| Document::new(clean(server, document.text())))
    };
    Facts {
        session: "recorded".to_owned(),
        definition: clean(&facts.definition),
        document: clean(&facts.document),
        ..facts.clone()
    }
}

/// A JSON text without secrets. One that cannot be edited is not kept at all.
fn clean(server: &Server, text: &str) -> String {
    let by_value = edit::map_strings(text, &|string| {
        let clean =
            if looks_like_secret("", string) { TAKEN_OUT.to_owned() } else { server.without_secrets(string) };
        (clean != string).then_some(clean)
    });
    by_value.ok().and_then(|text| by_name(&text)).unwrap_or_else(|| "null".to_owned())
}

/// Takes out strings that the name of their member says are secret.
fn by_name(text: &str) -> Option<String> {
    let mut pointers = Vec::new();
    collect(&serde_json::from_str(text).ok()?, "", &mut pointers);
    let quoted = Value::from(TAKEN_OUT).to_string();
    let edits: Vec<(&str, Option<&str>)> =
        pointers.iter().map(|pointer| (pointer.as_str(), Some(quoted.as_str()))).collect();
    if edits.is_empty() { Some(text.to_owned()) } else { edit::set_all(text, &edits).ok() }
}

/// The depth is that of a message, which the door has bounded.
fn collect(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let at = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                match value {
                    Value::String(text) if text != TAKEN_OUT && looks_like_secret(name, text) => {
                        found.push(at);
                    }
                    value => collect(value, &at, found),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &format!("{pointer}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A tool's name as part of a file's name.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.chars().take(64).map(|c| if plain(c) { c } else { '_' }).collect()
}

/// A name that no document has yet.
fn free_name(kept: &[Recorded], wanted: &str) -> String {
    let taken: HashSet<&str> = kept.iter().map(Recorded::name).collect();
    if !taken.contains(wanted) {
        return wanted.to_owned();
    }
    (2..=MOST + 1)
        .map(|number| format!("{wanted}-{number}"))
        .find(|name| !taken.contains(name.as_str()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
