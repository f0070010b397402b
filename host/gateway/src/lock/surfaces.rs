//! The definitions that were reviewed, in full: `toolgate.surface/<server>.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_base::files::write_private;
use toolgate_signing::{DefinitionKind, canonical_json, definition_digest};
use toolgate_store::PinnedDefinition;

use super::{LockError, LockedServer, read_bounded};

const FORMAT: u32 = 1;

/// The definitions of one server, sorted by kind and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockedSurface {
    /// Each with its digest, which was computed from the text and not read.
    pub definitions: Vec<PinnedDefinition>,
}

/// The surfaces of all servers.
#[derive(Debug, Clone, Default)]
pub struct Surfaces(BTreeMap<String, LockedSurface>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    server: String,
    definitions: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: String,
    name: String,
    definition: Box<RawValue>,
}

impl LockedSurface {
    /// From definitions in any order.
    pub fn new(mut definitions: Vec<PinnedDefinition>) -> Self {
        definitions.sort_by(|left, right| (&left.kind, &left.name).cmp(&(&right.kind, &right.name)));
        Self { definitions }
    }

    /// One definition.
    pub fn get(&self, kind: &str, name: &str) -> Option<&PinnedDefinition> {
        self.definitions.iter().find(|found| found.kind == kind && found.name == name)
    }

    /// The text of the file.
    fn text(&self, server: &str) -> String {
        let mut parts = Vec::new();
        for found in &self.definitions {
            // What the server sent had a digest, so it has a canonical form.
            let definition =
                canonical_json(&found.definition_json).unwrap_or_else(|_| found.definition_json.clone());
            parts.push(format!(
                "{{\"kind\":{},\"name\":{},\"definition\":{definition}}}",
                serde_json::json!(found.kind),
                serde_json::json!(found.name)
            ));
        }
        let whole = format!(
            "{{\"format\":{FORMAT},\"server\":{},\"definitions\":[{}]}}",
            serde_json::json!(server),
            parts.join(",")
        );
        toolgate_signing::indented(&whole) + "\n"
    }

    fn read(path: &Path, server: &str) -> Result<Option<Self>, LockError> {
        let Some(text) = read_bounded(path)? else { return Ok(None) };
        let damaged = |what: String| LockError::Damaged { path: path.to_owned(), what };
        // Refuses a key that comes twice, which readers of the file would not see alike.
        canonical_json(&text).map_err(|error| damaged(error.to_string()))?;
        let file: File = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if file.format != FORMAT {
            return Err(damaged(format!("it has format {}; this toolgate reads {FORMAT}", file.format)));
        }
        if file.server != server {
            return Err(damaged(format!("it is about the server {}", file.server)));
        }
        let mut definitions = Vec::new();
        for found in file.definitions {
            let kind: DefinitionKind =
                found.kind.parse().map_err(|_| damaged(format!("{} is no kind", found.kind)))?;
            let text = found.definition.get();
            let digest = definition_digest(kind, text).map_err(|error| damaged(error.to_string()))?;
            definitions.push(PinnedDefinition {
                kind: found.kind,
                name: found.name,
                digest,
                definition_json: canonical_json(text).map_err(|error| damaged(error.to_string()))?,
            });
        }
        Ok(Some(Self::new(definitions)))
    }
}

impl Surfaces {
    /// Reads the surfaces of the servers that the lock has.
    pub fn read(directory: &Path, servers: &[LockedServer]) -> Result<Self, LockError> {
        let mut all = BTreeMap::new();
        for server in servers {
            let path = directory.join(file_name(&server.name));
            if let Some(surface) = LockedSurface::read(&path, &server.name)? {
                all.insert(server.name.clone(), surface);
            }
        }
        Ok(Self(all))
    }

    /// The surface of one server.
    pub fn get(&self, server: &str) -> Option<&LockedSurface> {
        self.0.get(server)
    }

    /// Sets the surface of a server.
    pub fn set(&mut self, server: &str, surface: LockedSurface) {
        self.0.insert(server.to_owned(), surface);
    }

    /// Writes all of them; files of servers that are no longer there go.
    pub(super) fn write(&self, directory: &Path) -> Result<(), LockError> {
        let failed = |path: &Path, source| LockError::Io { path: path.to_owned(), source };
        for (server, surface) in &self.0 {
            let path = directory.join(file_name(server));
            write_private(&path, surface.text(server).as_bytes()).map_err(|source| failed(&path, source))?;
        }
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_surface = path.extension().is_some_and(|ending| ending == "json");
            let server = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if is_surface && !self.0.contains_key(server) {
                std::fs::remove_file(&path).map_err(|source| failed(&path, source))?;
            }
        }
        Ok(())
    }
}

/// Names of servers are safe as file names (config checks them).
fn file_name(server: &str) -> String {
    format!("{server}.json")
}
