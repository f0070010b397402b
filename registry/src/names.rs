//! The list of names: every plugin with the size and digest of its lines. It makes a file of the index
//! complete: a line that is held back does not go unnoticed.
//!
//! One line of canonical JSON for each plugin, sorted by name. The snapshot names the digest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolgate_signing::Digest;

use crate::document::{canonical, read_canonical};
use crate::error::RegistryError;
use crate::layout::is_plugin_name;

/// Largest file of one plugin, bytes.
pub(crate) const MAX_INDEX: u64 = 8 * 1024 * 1024;

/// The lines of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameEntry {
    /// The plugin.
    pub name: String,
    /// How many lines it has.
    pub lines: u64,
    /// Their size in bytes. The file may be longer: what comes after is not published.
    pub size: u64,
    /// The sha256 of these bytes.
    pub sha256: Digest,
}

pub(crate) type Names = BTreeMap<String, NameEntry>;

/// Reads a list whose digest was compared.
pub(crate) fn read(bytes: &[u8]) -> Result<Names, RegistryError> {
    let malformed = |detail: &str| RegistryError::malformed("list of names", detail);
    let mut names = Names::new();
    for line in lines(bytes).ok_or_else(|| malformed("it does not end with a line feed"))? {
        let entry: NameEntry = read_canonical("list of names", line)?;
        let ordered = names.last_key_value().is_none_or(|(last, _)| *last < entry.name);
        if !ordered || !is_plugin_name(&entry.name) || entry.size > MAX_INDEX {
            return Err(malformed("its lines are names of plugins, sorted, each once"));
        }
        names.insert(entry.name.clone(), entry);
    }
    Ok(names)
}

/// The list as bytes.
pub(crate) fn write<'a>(entries: impl Iterator<Item = &'a NameEntry>) -> String {
    entries.map(|entry| canonical(entry) + "\n").collect()
}

/// The lines of a text in which each ends with a line feed.
pub(crate) fn lines(bytes: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let body = match bytes {
        [] => None,
        [body @ .., b'\n'] => Some(body),
        _ => return None,
    };
    Some(body.into_iter().flat_map(|body| body.split(|byte| *byte == b'\n')))
}
