//! `plugin.toml`: what an author says of a plugin, from which its release statement is made.
//!
//! Contract: the manifest holds only what cannot be read from the binary. Imports, exports, world and
//! digests are computed here, so that no author can get them wrong; the statement that comes out has
//! been read back by the rules of verification before anybody signs it. The manifest itself is never
//! trusted when a plugin is loaded: what counts then is the signed statement.
//!
//! ```toml
//! manifest = 1
//! name = "acme/guard"
//! version = "1.4.2"
//! sequence = 17                    # goes up by one with each release
//! kind = "policy"                  # policy, installer or adapter
//! decisions = ["deny"]             # policies: of allow, ask, deny, redact
//! min-host = "0.1.0"
//! component = "component.wasm"     # this is the default
//! sources = ["Cargo.toml", "src"]  # files and directories that the component is made of
//! settings-schema = "settings.schema.json"
//! readme = "README.md"
//! [limits]
//! memory-bytes = 16777216
//! [capabilities.http.api]
//! hosts = ["https://api.example.com"]
//! methods = ["get"]
//! ```
//!
//! Bounds: 64 KiB of manifest, [`SOURCES_LIMIT`] files of sources, 8 MiB each.

mod sources;

use std::path::{Path, PathBuf};

use semver::Version;
use serde::Deserialize;
use serde_json::Value;
use toolgate_signing::{Capabilities, Digest, Kind, Limits, Release};

use crate::contract;
use crate::error::LoadErrorKind;
use crate::inspect::inspect;

pub use sources::SOURCES_LIMIT;

/// Longest manifest, bytes.
const MAX_MANIFEST: u64 = 64 * 1024;

/// Longest component, schema, readme or source file, bytes.
const MAX_FILE: u64 = 32 * 1024 * 1024;

/// The version of the manifest's format.
const FORMAT: u32 = 1;

/// Why there is no statement to sign.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is longer than any of its kind.
    #[error("{path} is longer than {limit} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// The manifest is not TOML, or has a key that it must not have.
    #[error("{path}: {what}")]
    Syntax {
        /// The manifest.
        path: PathBuf,
        /// Where and what, with line and column.
        what: String,
    },
    /// The format of the manifest is not the one this version reads.
    #[error("the manifest has format {found}; this version reads {FORMAT}")]
    Format {
        /// What it says.
        found: u32,
    },
    /// A path of the manifest leads out of its directory.
    #[error("`{0}` leads out of the plugin's directory")]
    Outside(String),
    /// There are more files of sources than are read.
    #[error(
        "the sources have more than {SOURCES_LIMIT} files; name the directories that belong to the component, not what is built"
    )]
    TooManySources,
    /// The component is none that could be loaded.
    #[error("the component cannot be signed: {0}")]
    Component(LoadErrorKind),
}

/// A manifest with the directory that it stands in.
#[derive(Debug, Clone)]
pub struct Manifest {
    directory: PathBuf,
    written: Written,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    manifest: u32,
    name: String,
    version: Version,
    sequence: u64,
    kind: Kind,
    #[serde(default)]
    decisions: Vec<String>,
    min_host: Version,
    #[serde(default = "component_file")]
    component: String,
    #[serde(default)]
    toolchain: Option<String>,
    #[serde(default)]
    previous: Option<Digest>,
    #[serde(default)]
    published: Option<String>,
    #[serde(default)]
    servers: Vec<String>,
    #[serde(default)]
    settings_hosts: Vec<String>,
    #[serde(default)]
    settings_schema: Option<String>,
    #[serde(default)]
    readme: Option<String>,
    #[serde(default)]
    sbom: Option<String>,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(default)]
    limits: WrittenLimits,
    #[serde(default)]
    capabilities: toml::Table,
    // For people and registries; none of it is signed.
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default, rename = "license")]
    _license: Option<String>,
    #[serde(default, rename = "repository")]
    _repository: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
struct WrittenLimits {
    memory_bytes: u64,
    call_ms: u64,
    init_ms: u64,
    host_bytes: u64,
}

fn component_file() -> String {
    "component.wasm".to_owned()
}

impl Manifest {
    /// Reads `plugin.toml` of a directory.
    pub fn read(directory: &Path) -> Result<Self, ManifestError> {
        let path = directory.join("plugin.toml");
        let text = String::from_utf8(bounded(&path, MAX_MANIFEST)?)
            .map_err(|_| ManifestError::Syntax { path: path.clone(), what: "it is not UTF-8".to_owned() })?;
        let written: Written = toml::from_str(&text)
            .map_err(|error| ManifestError::Syntax { path, what: error.to_string().trim_end().to_owned() })?;
        if written.manifest != FORMAT {
            return Err(ManifestError::Format { found: written.manifest });
        }
        Ok(Self { directory: directory.to_owned(), written })
    }

    /// The plugin's name.
    pub fn name(&self) -> &str {
        &self.written.name
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.written.kind
    }

    /// The file of the component.
    pub fn component_path(&self) -> Result<PathBuf, ManifestError> {
        self.inside(&self.written.component)
    }

    /// The component's bytes.
    pub fn component(&self) -> Result<Vec<u8>, ManifestError> {
        bounded(&self.component_path()?, MAX_FILE)
    }

    /// The digest of the sources that the manifest names; none where it names none.
    pub fn sources(&self) -> Result<Option<Digest>, ManifestError> {
        let Some(roots) = self.source_roots()? else { return Ok(None) };
        sources::digest(&self.directory, &roots).map(Some)
    }

    fn source_roots(&self) -> Result<Option<Vec<PathBuf>>, ManifestError> {
        if self.written.sources.is_empty() {
            return Ok(None);
        }
        self.written.sources.iter().map(|name| self.inside(name)).collect::<Result<_, _>>().map(Some)
    }

    /// Copies the sources that the manifest names into a directory, and nothing else, and gives the digest
    /// of what was copied; none, and no copy, where it names none.
    pub fn copy_sources(&self, to: &Path) -> Result<Option<Digest>, ManifestError> {
        let Some(roots) = self.source_roots()? else { return Ok(None) };
        sources::copy(&self.directory, &roots, to).map(Some)
    }

    /// The statement of a release of `component`: what the manifest says and what the binary is.
    /// `published` is the time for a manifest that states none, as `2026-11-29T12:00:00Z`.
    pub fn release(&self, component: &[u8], published: &str) -> Result<Release, ManifestError> {
        let written = &self.written;
        let found = inspect(component).map_err(ManifestError::Component)?;
        let digest_of = |name: &Option<String>| match name {
            Some(name) => bounded(&self.inside(name)?, MAX_FILE).map(|bytes| Some(Digest::of(&bytes))),
            None => Ok(None),
        };
        Ok(Release {
            name: written.name.clone(),
            version: written.version.clone(),
            sequence: written.sequence,
            kind: written.kind,
            world: contract::world_of(written.kind),
            imports: found.imports,
            exports: found.exports,
            capabilities: self.capabilities()?,
            decisions: sorted(&written.decisions),
            limits: Limits {
                memory_bytes: written.limits.memory_bytes,
                call_ms: written.limits.call_ms,
                init_ms: written.limits.init_ms,
                host_bytes: written.limits.host_bytes,
            },
            min_host: written.min_host.clone(),
            servers: sorted(&written.servers),
            settings_hosts: sorted(&written.settings_hosts),
            settings_schema: digest_of(&written.settings_schema)?,
            readme: digest_of(&written.readme)?,
            sbom: digest_of(&written.sbom)?,
            sources: self.sources()?,
            toolchain: self.toolchain()?,
            previous: written.previous,
            published: written.published.clone().unwrap_or_else(|| published.to_owned()),
        })
    }

    /// What the manifest says, else what `plugin build` has written beside the component, else that
    /// nobody said.
    fn toolchain(&self) -> Result<String, ManifestError> {
        if let Some(written) = &self.written.toolchain {
            return Ok(written.clone());
        }
        let path = self.component_path()?.with_extension("toolchain");
        match bounded(&path, MAX_MANIFEST) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Err(ManifestError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok("unstated".to_owned())
            }
            Err(error) => Err(error),
        }
    }

    /// Capabilities by interface and label. The fields below a label are written with `-` like every
    /// other key of the manifest, and with `_` in the statement; labels stay as they are.
    fn capabilities(&self) -> Result<Capabilities, ManifestError> {
        let mut value = serde_json::to_value(&self.written.capabilities).unwrap_or_default();
        for labels in value.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
            for fields in labels.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
                if let Value::Object(old) = fields {
                    let renamed = std::mem::take(old).into_iter();
                    *old = renamed.map(|(key, value)| (key.replace('-', "_"), value)).collect();
                }
            }
        }
        serde_json::from_value(value).map_err(|error| ManifestError::Syntax {
            path: self.directory.join("plugin.toml"),
            what: format!("[capabilities]: {error}"),
        })
    }

    fn inside(&self, name: &str) -> Result<PathBuf, ManifestError> {
        let plain = Path::new(name)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
        if plain { Ok(self.directory.join(name)) } else { Err(ManifestError::Outside(name.to_owned())) }
    }
}

fn sorted(list: &[String]) -> Vec<String> {
    let mut list = list.to_vec();
    list.sort_unstable();
    list.dedup();
    list
}

fn bounded(path: &Path, limit: u64) -> Result<Vec<u8>, ManifestError> {
    use std::io::Read as _;
    let failed = |source| ManifestError::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(ManifestError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
