//! `toolgate:plugin/matching`: labels, patterns, paths and hidden text.
//!
//! Patterns and directories are read from the plugin's settings, once for each pointer, and kept
//! with the plugin: a fresh store compiles nothing. At most [`MAX_COMPILED`] pointers are kept.

pub(crate) mod hidden;
mod path;
mod pattern;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use toolgate_labels::{Label, Pattern as LabelPattern};
use wasmtime::component::Resource;

use super::invalid;
use crate::bindings::matching::{self, Host};
use crate::bindings::types::Error;
use crate::facts::Document;
use crate::json;
use crate::state::State;
use path::Roots;
use pattern::Patterns;

/// Pointers whose lists are kept compiled.
const MAX_COMPILED: usize = 64;

/// What was compiled from one plugin's settings.
#[derive(Default)]
pub(crate) struct Matching {
    patterns: Compiled<Patterns>,
    roots: Compiled<Roots>,
}

impl Host for State {
    fn label_covers(&mut self, pattern: String, label: String) -> wasmtime::Result<Result<bool, Error>> {
        Ok(label_covers(&pattern, &label))
    }

    fn first_pattern(
        &mut self,
        pointer: String,
        value: String,
    ) -> wasmtime::Result<Result<Option<u32>, Error>> {
        let shared = &self.shared;
        let patterns =
            shared.matching.patterns.get(&shared.settings, &pointer, |list| Ok(Patterns::compile(list)));
        Ok(patterns.map(|patterns| patterns.first(&value)).map_err(invalid))
    }

    fn path_within(
        &mut self,
        pointer: String,
        path: String,
    ) -> wasmtime::Result<Result<Option<String>, Error>> {
        let shared = &self.shared;
        let roots = shared.matching.roots.get(&shared.settings, &pointer, Roots::compile);
        Ok(roots.map(|roots| roots.resolve(&path)).map_err(invalid))
    }

    fn hidden_text(&mut self, document: Resource<Document>) -> wasmtime::Result<Vec<matching::Finding>> {
        let document = self.table.get(&document)?.clone();
        let found = self.host_work(document.len(), || document.hidden_text());
        if self.is_judged(&document) {
            // The one thing about a document that the host can tell of another one without a guest.
            self.knows.hides_nothing |= found.is_empty();
            self.knows.more |= !found.is_empty();
        }
        Ok(found.iter().cloned().map(matching::Finding::from).collect())
    }
}

impl From<hidden::Finding> for matching::Finding {
    fn from(found: hidden::Finding) -> Self {
        let hidden::Finding { pointer, kind, code_points, decoded } = found;
        Self { pointer, kind, code_points, decoded }
    }
}

fn label_covers(pattern: &str, label: &str) -> Result<bool, Error> {
    let pattern = LabelPattern::parse(pattern).map_err(invalid)?;
    let label = Label::parse(label).map_err(invalid)?;
    Ok(pattern.covers(&label))
}

/// Lists of the settings, compiled on first use. A list that does not compile is remembered too.
struct Compiled<T>(RwLock<HashMap<String, Result<Arc<T>, String>>>);

impl<T> Default for Compiled<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T> Compiled<T> {
    fn get(
        &self,
        settings: &Document,
        pointer: &str,
        compile: impl FnOnce(&[String]) -> Result<T, String>,
    ) -> Result<Arc<T>, String> {
        if let Some(kept) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(pointer) {
            return kept.clone();
        }
        let compiled = string_list(settings, pointer).and_then(|list| compile(&list)).map(Arc::new);
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_COMPILED {
            kept.insert(pointer.to_owned(), compiled.clone());
        }
        compiled
    }
}

/// The list of strings at `pointer`; an empty one where nothing is.
fn string_list(settings: &Document, pointer: &str) -> Result<Vec<String>, String> {
    match json::lookup(settings.text(), pointer) {
        Ok(Some(raw)) => serde_json::from_str(raw)
            .map_err(|_| format!("the settings have no list of strings at `{pointer}`")),
        Ok(None) => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
