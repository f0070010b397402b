//! `${VAR}` in every text of a configuration (rows SEC-002, SEC-010 to SEC-014, SEC-018; C07 to C09).
//!
//! Contract: `${VAR}` is the variable's value, `${VAR:-text}` the text where the variable is unset or
//! empty, `$$` a dollar sign; any other dollar sign stands for itself. A value is never expanded
//! again, and keys are not expanded. A variable is looked up in the environment of the process, then
//! in `secrets.env`, then in the `.env` beside the file; these two set nothing else. A variable that
//! is nowhere is an empty text and one warning, or an error with `on_missing_env: error`.
//!
//! Threat: what a variable held ends in a message. Only names are told, and only if they are names.

use std::collections::BTreeMap;
use std::path::Path;

use toolgate_base::Secret;

use crate::error::{Level, Notice, Place};
use crate::masking::names_short_secret;
use crate::node::{Node, Text, Value};

#[cfg(test)]
mod tests;

/// Where variables come from.
pub(crate) struct Variables<'a> {
    pub(crate) process: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) secrets: BTreeMap<String, Secret>,
    pub(crate) dotenv: BTreeMap<String, Secret>,
}

/// Which layer gave a variable its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableSource {
    /// The environment of this process.
    Process,
    /// `secrets.env` in the configuration directory.
    Secrets,
    /// The `.env` beside the configuration.
    DotEnv,
    /// The text after `:-`.
    Fallback,
}

/// One use of a variable; its value is not kept here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableUse {
    /// Its name.
    pub name: String,
    /// Where it is used.
    pub place: Place,
    /// Where its value comes from; `None`: nowhere, it is the empty text.
    pub source: Option<VariableSource>,
}

impl Variables<'_> {
    fn lookup(&self, name: &str) -> Option<(String, VariableSource)> {
        if let Some(value) = (self.process)(name) {
            return Some((value, VariableSource::Process));
        }
        let stored = |layer: &BTreeMap<String, Secret>, source| {
            layer.get(name).map(|value| (value.expose().to_owned(), source))
        };
        stored(&self.secrets, VariableSource::Secrets)
            .or_else(|| stored(&self.dotenv, VariableSource::DotEnv))
    }

    /// Expands one text; `seen` hears of each variable and its source.
    pub(crate) fn expand(
        &self,
        raw: &str,
        seen: &mut dyn FnMut(&str, Option<VariableSource>),
    ) -> Result<Text, &'static str> {
        let mut value = String::with_capacity(raw.len());
        let (mut missing, mut held) = (Vec::new(), Vec::new());
        let mut rest = raw;
        while let Some((before, after)) = rest.split_once('$') {
            value.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                value.push('$');
                rest = after;
            } else if let Some(after) = after.strip_prefix('{') {
                let reference = Reference::parse(after)?;
                let (text, source) = match (self.lookup(reference.name), reference.fallback) {
                    (Some((text, source)), None) => (text, Some(source)),
                    (Some((text, source)), Some(_)) if !text.is_empty() => (text, Some(source)),
                    (_, Some(fallback)) => (fallback.to_owned(), Some(VariableSource::Fallback)),
                    (None, None) => (String::new(), None),
                };
                seen(reference.name, source);
                if text.is_empty() {
                    missing.push(reference.name.to_owned());
                }
                value.push_str(&text);
                let is_secret = source.is_some_and(|source| source != VariableSource::Fallback);
                // A short one stands everywhere by chance: only a secret is worth the holes.
                let counts = text.len() >= 6
                    || source == Some(VariableSource::Secrets)
                    || names_short_secret(reference.name);
                if is_secret && counts && !is_place(reference.name) {
                    held.push(Secret::new(text));
                }
                rest = reference.rest;
            } else {
                value.push('$');
                rest = after;
            }
        }
        value.push_str(rest);
        let changed = raw.contains("${") || raw.contains("$$");
        Ok(Text { value, template: changed.then(|| raw.to_owned()), missing, held })
    }
}

/// Variables whose values stand in every path and message and are no secrets.
fn is_place(name: &str) -> bool {
    const PLACES: [&str; 9] = ["HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "TZ", "USER"];
    PLACES.contains(&name) || name.starts_with("XDG_")
}

/// What stands between `${` and `}`.
struct Reference<'a> {
    name: &'a str,
    fallback: Option<&'a str>,
    rest: &'a str,
}

impl<'a> Reference<'a> {
    fn parse(after: &'a str) -> Result<Self, &'static str> {
        let (inside, rest) =
            after.split_once('}').ok_or("`${` without its `}`; close it, or write `$${` for the text")?;
        if inside.starts_with("secret:") {
            return Err("`${secret:…}` references are not supported; put the value into secrets.env \
                        (`toolgate secret set NAME`) and write `${NAME}`");
        }
        if inside.starts_with("env:") {
            return Err("`${env:NAME}` is another program's spelling; write `${NAME}`");
        }
        let (name, fallback) = match inside.split_once(":-") {
            Some((name, fallback)) => (name, Some(fallback)),
            None => (inside, None),
        };
        if !is_variable_name(name) {
            return Err("`${…}` holds no variable name; write `${NAME}` or `${NAME:-text}` with letters, \
                        digits and `_`, or `$${` for the text");
        }
        if fallback.is_some_and(|text| text.contains("${")) {
            return Err("a variable inside the text after `:-` is not supported; use one or the other");
        }
        Ok(Self { name, fallback, rest })
    }
}

/// Whether this is the name of an environment variable that `${…}` can hold.
pub(crate) fn is_variable_name(name: &str) -> bool {
    name.bytes().enumerate().all(|(index, byte)| {
        byte == b'_' || byte.is_ascii_alphabetic() || (index > 0 && byte.is_ascii_digit())
    }) && !name.is_empty()
}

/// Expands every text of a tree in place. Mistakes go to `wrong` with their place.
pub(crate) fn expand_tree(
    node: &mut Node,
    key: &str,
    file: &Path,
    variables: &Variables<'_>,
    uses: &mut Vec<VariableUse>,
    wrong: &mut dyn FnMut(Place, &'static str),
) {
    let place = Place { file: file.to_owned(), line: node.line, column: node.column, key: key.to_owned() };
    match &mut node.value {
        Value::Text(text) if text.value.contains('$') => {
            let expanded = variables.expand(&text.value, &mut |name, source| {
                uses.push(VariableUse { name: name.to_owned(), place: place.clone(), source });
            });
            match expanded {
                Ok(expanded) => *text = expanded,
                Err(what) => wrong(place, what),
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                expand_tree(item, &format!("{key}[{index}]"), file, variables, uses, wrong);
            }
        }
        Value::Map(entries) => {
            for (name, value) in entries {
                expand_tree(value, &join(key, &name.text), file, variables, uses, wrong);
            }
        }
        _ => {}
    }
}

/// One warning for each variable without a value (SEC-012: named once, with its place).
pub(crate) fn warnings(uses: &[VariableUse]) -> Vec<Notice> {
    let mut places: BTreeMap<&str, Vec<&Place>> = BTreeMap::new();
    for used in uses.iter().filter(|used| used.source.is_none()) {
        places.entry(&used.name).or_default().push(&used.place);
    }
    places
        .into_iter()
        .filter_map(|(name, places)| {
            let (first, more) = places.split_first()?;
            let more = match more.len() {
                0 => String::new(),
                count => format!(" (and in {count} more)"),
            };
            let text = format!(
                "the variable {name} is not set, so it is empty here{more}; set it, store it with \
                 `toolgate secret set {name}`, or write ${{{name}:-text}}"
            );
            Some(Notice::new(Level::Warning, Some((*first).clone()), text))
        })
        .collect()
}

/// `a` and `b` as `a.b`.
pub(crate) fn join(path: &str, key: &str) -> String {
    let key = toolgate_base::display::escape(key);
    if path.is_empty() { key } else { format!("{path}.{key}") }
}
