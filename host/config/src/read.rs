//! Reading a tree into types: the parts every block shares.
//!
//! Contract: every mistake is collected with its place, so that one run shows all of them; a key
//! that is not in the block's table is refused with the nearest one that is; a key that this version
//! does not build yet is refused as such and never ignored. A key with nothing behind it counts as
//! absent.

mod address;
mod approvals;
mod audit;
mod fields;
mod grants;
mod hosts;
mod indexes;
pub(crate) mod keys;
mod persona;
mod plugins;
mod sections;
mod server;
mod skills;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::duration;
use crate::error::{Level, Notice, Place, Problem, nearest, quoted};
use crate::expand::{VariableUse, Variables};
use crate::node::{Node, Text, Value};
use crate::places::Places;

pub(crate) use grants::{read_grants, without_values};
pub(crate) use plugins::is_plugin_name;
pub(crate) use sections::{Binding, Top, read_top};
pub(crate) use server::{FORMAT, Layer, read_server};

/// What a file is read with, and what was found wrong in it.
pub(crate) struct Reader<'a> {
    /// The file, for messages.
    pub(crate) file: PathBuf,
    /// Where relative paths count from; absolute.
    pub(crate) base: PathBuf,
    /// What `~/` means.
    pub(crate) home: Option<PathBuf>,
    pub(crate) variables: &'a Variables<'a>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) notices: Vec<Notice>,
    /// Variables that files beside this one named.
    pub(crate) uses: Vec<VariableUse>,
}

/// A node and its path of keys.
pub(crate) struct Item {
    pub(crate) node: Node,
    pub(crate) key: String,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &Path, base: &Path, home: Option<PathBuf>, variables: &'a Variables<'a>) -> Self {
        Self {
            file: file.to_owned(),
            base: base.to_owned(),
            home,
            variables,
            problems: Vec::new(),
            notices: Vec::new(),
            uses: Vec::new(),
        }
    }

    pub(crate) fn place(&self, line: u64, column: u64, key: &str) -> Place {
        Place { file: self.file.clone(), line, column, key: key.to_owned() }
    }

    /// Where every value of a block stands, for who checks it later.
    pub(crate) fn places(&self, item: &Item) -> Places {
        Places::of(self.file.clone(), &item.key, &item.node)
    }

    pub(crate) fn wrong(&mut self, item: &Item, what: impl Into<String>, fix: impl Into<String>) {
        let place = self.place(item.node.line, item.node.column, &item.key);
        self.problems.push(Problem { place, what: what.into(), fix: fix.into() });
    }

    pub(crate) fn notice(&mut self, level: Level, item: &Item, text: impl Into<String>) {
        let place = self.place(item.node.line, item.node.column, &item.key);
        self.notices.push(Notice::new(level, Some(place), text));
    }

    /// Reports a value of the wrong kind, without the value.
    pub(crate) fn expected(&mut self, item: &Item, wanted: &str) {
        self.wrong(item, format!("{wanted} is needed here, and this is {}", item.node.kind()), "");
    }

    /// A text. A number or boolean is refused: it must be quoted, so that its spelling is meant.
    pub(crate) fn text(&mut self, item: &Item) -> Option<Text> {
        match &item.node.value {
            Value::Text(text) => Some(text.clone()),
            Value::Number(..) | Value::Bool(_) => {
                let what = format!("text is needed here, and this is {}", item.node.kind());
                self.wrong(item, what, "write it in quotes");
                None
            }
            _ => {
                self.expected(item, "text");
                None
            }
        }
    }

    /// A text that is not empty.
    pub(crate) fn filled(&mut self, item: &Item) -> Option<Text> {
        let text = self.text(item)?;
        if text.value.trim().is_empty() && text.missing.is_empty() {
            self.wrong(item, "an empty text", "write a value, or remove the key");
            return None;
        }
        Some(text)
    }

    /// A text, or a number or boolean taken as it is written: values of variables, headers, arguments.
    pub(crate) fn scalar(&mut self, item: &Item) -> Option<Text> {
        match &item.node.value {
            Value::Text(text) => Some(text.clone()),
            Value::Number(_, written) => Some(Text { value: written.clone(), ..Text::default() }),
            Value::Bool(flag) => Some(Text { value: flag.to_string(), ..Text::default() }),
            Value::Null => {
                self.wrong(item, "no value", "write \"\" if an empty text is meant");
                None
            }
            _ => {
                self.expected(item, "text");
                None
            }
        }
    }

    pub(crate) fn flag(&mut self, item: &Item) -> Option<bool> {
        if let Value::Bool(flag) = item.node.value {
            return Some(flag);
        }
        self.wrong(
            item,
            format!("true or false is needed here, and this is {}", item.node.kind()),
            "yes, no, on and off are text in YAML 1.2",
        );
        None
    }

    pub(crate) fn number(&mut self, item: &Item, least: u64, most: u64) -> Option<u64> {
        let found = match &item.node.value {
            Value::Number(number, _) => number.as_u64(),
            _ => None,
        };
        let within = found.filter(|value| (least..=most).contains(value));
        if within.is_none() {
            self.wrong(item, format!("a whole number from {least} to {most} is needed here"), "");
        }
        within
    }

    /// A whole number of things.
    pub(crate) fn count(&mut self, item: &Item, least: u64, most: u64) -> Option<usize> {
        self.number(item, least, most).and_then(|value| usize::try_from(value).ok())
    }

    /// A duration of at least `least`.
    pub(crate) fn duration(&mut self, item: &Item, least: Duration) -> Option<Duration> {
        if let Value::Number(_, written) = &item.node.value {
            let fix = format!("write a unit, such as {written}s");
            self.wrong(item, "a duration without a unit", fix);
            return None;
        }
        let text = self.text(item)?;
        match duration::parse(&text.value) {
            Ok(length) if length >= least => Some(length),
            Ok(_) => {
                self.wrong(
                    item,
                    "a duration that is too short",
                    format!("give at least {}", duration::show(least)),
                );
                None
            }
            Err(what) => {
                self.wrong(item, "no duration", what);
                None
            }
        }
    }

    /// One of a closed list of words.
    pub(crate) fn choice<T: Copy>(&mut self, item: &Item, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text(item)?;
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text.value) {
            return Some(*value);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let written = text.template.as_deref().unwrap_or(&text.value);
        self.wrong(
            item,
            format!("{} is not one of {}", quoted(written), names.join(", ")),
            did_you_mean(written, &names),
        );
        None
    }

    pub(crate) fn list(&mut self, item: Item) -> Vec<Item> {
        let key = item.key.clone();
        let Value::List(items) = item.node.value else {
            self.expected(&item, "a list");
            return Vec::new();
        };
        items
            .into_iter()
            .enumerate()
            .map(|(index, node)| Item { node, key: format!("{key}[{index}]") })
            .collect()
    }

    /// A list of texts that are not empty; a double is reported once and dropped.
    pub(crate) fn texts(&mut self, item: Item) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for entry in self.list(item) {
            let Some(text) = self.filled(&entry) else { continue };
            if found.contains(&text.value) {
                self.wrong(&entry, "this entry is in the list twice", "keep one of the two");
            } else {
                found.push(text.value);
            }
        }
        found
    }

    /// A map with free keys, in the order of the file, each key with a node for its own place.
    pub(crate) fn entries(&mut self, item: Item) -> Vec<(Item, Item)> {
        let key = item.key.clone();
        match item.node.value {
            Value::Map(entries) => entries
                .into_iter()
                .map(|(name, node)| {
                    let key = crate::expand::join(&key, &name.text);
                    let (line, column) = (name.line, name.column);
                    let value = Value::Text(Text { value: name.text, ..Text::default() });
                    (Item { node: Node { value, line, column }, key: key.clone() }, Item { node, key })
                })
                .collect(),
            Value::Null => Vec::new(),
            _ => {
                self.expected(&item, "a map");
                Vec::new()
            }
        }
    }

    /// A map taken over as JSON: with variables, and as it may be shown.
    pub(crate) fn object(&mut self, item: &Item) -> Option<(serde_json::Value, serde_json::Value)> {
        if matches!(item.node.value, Value::Map(_)) {
            return Some((item.node.to_json(true), item.node.to_json(false)));
        }
        self.expected(item, "a map");
        None
    }
}

impl Item {
    /// The text of a key that [`Reader::entries`] gave.
    pub(crate) fn name(&self) -> &str {
        match &self.node.value {
            Value::Text(text) => &text.value,
            _ => "",
        }
    }
}

/// `did you mean …?`, or nothing.
pub(crate) fn did_you_mean(text: &str, choices: &[&str]) -> String {
    nearest(text, choices.iter().copied())
        .map(|choice| format!("did you mean `{choice}`?"))
        .unwrap_or_default()
}
