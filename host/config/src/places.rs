//! Where each value of a block stood in its file, for whoever checks that block later: the settings
//! of a plugin are checked when the plugin is loaded, long after the file was read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::Place;
use crate::node::{Node, Value};

/// Places by RFC 6901 pointer, counted from the block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    file: PathBuf,
    /// The path of keys to the block, as `plugins.load[0].settings`.
    key: String,
    by_pointer: BTreeMap<String, (u64, u64)>,
}

impl Places {
    /// The places of a block that stands alone as JSON or YAML: in a file of its own, or on a command line,
    /// where `file` says so. Nothing where the text is neither, which whoever reads it says.
    pub fn of_text(file: PathBuf, key: &str, text: &str) -> Self {
        crate::node::parse(text).map_or_else(|_| Self::default(), |node| Self::of(file, key, &node))
    }

    pub(crate) fn of(file: PathBuf, key: &str, node: &Node) -> Self {
        let mut places = Self { file, key: key.to_owned(), by_pointer: BTreeMap::new() };
        places.by_pointer.insert(String::new(), (node.line, node.column));
        places.below(node, "");
        places
    }

    /// Where the value at a pointer stood; where it is not written, the nearest value around it.
    /// None for a block that no file holds, because nothing was written.
    pub fn place(&self, pointer: &str) -> Option<Place> {
        let mut at = pointer;
        loop {
            if let Some((line, column)) = self.by_pointer.get(at) {
                let keys = at.replace('/', ".").replace("~1", "/").replace("~0", "~");
                let key = format!("{}{keys}", self.key);
                return Some(Place { file: self.file.clone(), line: *line, column: *column, key });
            }
            at = at.get(..at.rfind('/')?)?;
        }
    }

    fn below(&mut self, node: &Node, pointer: &str) {
        match &node.value {
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.add(format!("{pointer}/{index}"), (item.line, item.column), item);
                }
            }
            Value::Map(entries) => {
                for (key, value) in entries {
                    let name = key.text.replace('~', "~0").replace('/', "~1");
                    self.add(format!("{pointer}/{name}"), (key.line, key.column), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(..) | Value::Text(_) => {}
        }
    }

    fn add(&mut self, pointer: String, at: (u64, u64), node: &Node) {
        self.below(node, &pointer);
        self.by_pointer.insert(pointer, at);
    }
}

#[cfg(test)]
mod tests;
