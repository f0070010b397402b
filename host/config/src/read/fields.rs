//! One block with a closed set of keys.

use crate::error::{Problem, nearest, quoted};
use crate::expand::join;
use crate::node::{Node, Value};

use super::keys::Keys;
use super::{Item, Reader};

/// The entries of a block under their canonical names, taken one by one.
pub(crate) struct Fields {
    entries: Vec<(&'static str, Node)>,
    path: String,
}

impl Fields {
    /// Takes a key, if it is there with a value.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<Item> {
        let index = self.entries.iter().position(|(name, _)| *name == key)?;
        let (_, node) = self.entries.swap_remove(index);
        Some(Item { node, key: join(&self.path, key) })
    }
}

impl Reader<'_> {
    /// Opens a block: unknown keys, keys of later versions and double spellings are reported, the
    /// others are in the result. `None` if it is no map.
    pub(crate) fn fields(&mut self, item: Item, table: &'static Keys) -> Option<Fields> {
        let path = item.key.clone();
        let entries = match item.node.value {
            Value::Map(entries) => entries,
            Value::Null => Vec::new(),
            _ => {
                self.expected(&item, "a map");
                return None;
            }
        };
        let mut found: Vec<(&'static str, Node)> = Vec::with_capacity(entries.len());
        for (key, node) in entries {
            let place = self.place(key.line, key.column, &join(&path, &key.text));
            let refusal = match canonical(&key.text, table) {
                Ok(name) if found.iter().any(|(known, _)| *known == name) => {
                    Some((format!("`{name}` is here in two spellings"), format!("keep `{name}`")))
                }
                Ok(name) => {
                    if !matches!(node.value, Value::Null) {
                        found.push((name, node));
                    }
                    None
                }
                Err(refusal) => Some(refusal),
            };
            if let Some((what, fix)) = refusal {
                self.problems.push(Problem { place, what, fix });
            }
        }
        Some(Fields { entries: found, path })
    }
}

fn canonical(key: &str, table: &'static Keys) -> Result<&'static str, (String, String)> {
    if let Some(name) = table.known.iter().find(|name| **name == key) {
        return Ok(name);
    }
    if let Some((_, name)) = table.aliases.iter().find(|(alias, _)| *alias == key) {
        return Ok(name);
    }
    if table.later.contains(&key) {
        return Err((
            format!("`{key}` is not supported by this version of Toolgate"),
            "remove it; it would have no effect, and it is not ignored silently".to_owned(),
        ));
    }
    let spellings = table.known.iter().copied().chain(table.aliases.iter().map(|(alias, _)| *alias));
    let fix = match nearest(key, spellings) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("the keys here are {}", table.known.join(", ")),
    };
    Err((format!("unknown key {}", quoted(key)), fix))
}
