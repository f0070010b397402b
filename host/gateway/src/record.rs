//! What plugins are asked, kept for an author who tests with it (`mcp record`).
//!
//! Contract: off unless a command of the operator's turns it on for its own gateway; then every
//! moment at which an adapter or a policy would be asked is kept, whether or not one is configured,
//! with secrets taken out. Bounds: [`MOST`] documents; what comes after them is not kept.
//!
//! Threat: a recording ends in a repository; see [`secrets`].

mod secrets;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use toolgate_config::Server;
use toolgate_plugins::{Document, Facts, Moment, Recorded};

use crate::Gateway;

/// Most documents of one recording.
const MOST: usize = 4096;

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
        document.as_ref().map(|document| Document::new(secrets::cleaned(server, document.text())))
    };
    Facts {
        session: "recorded".to_owned(),
        definition: clean(&facts.definition),
        document: clean(&facts.document),
        ..facts.clone()
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
