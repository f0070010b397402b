//! `toolgate.lock` and `toolgate.surface/`: what was reviewed, in files that a pull request can show.
//!
//! Contract: the lock pins every plugin by component, release, signers, imports and grants, and every
//! server by identity, era, revision and the digest of every definition; the surface files hold the
//! definitions in full, one line for each value, so that a change of one word is a change of one line.
//! Both are written by a machine, sorted, and end in the same bytes on every machine. A surface file is
//! worth nothing without the lock: each of its definitions must have the digest that stands there.
//!
//! What counts is the operator's file alone. The layers below the data directory, what this machine
//! accepted, are not in the lock and do not count beside it.
//!
//! Bounds: 16 MiB a file, 10,000 plugins and servers.

mod compare;
mod resolve;
mod surfaces;
mod take;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolgate_base::files::write_private;
use toolgate_signing::Digest;

pub use compare::{Mismatch, compare_all, compare_surface, unreviewed};
pub(crate) use resolve::unresolved;
pub use resolve::{Moved, RelockError, fetch_missing, relock, resolve};
pub use surfaces::{LockedSurface, Surfaces};
pub use take::{from_config, plugins_of, server_of};

/// Name of the lock, beside the configuration.
pub const LOCK_FILE: &str = "toolgate.lock";
/// Name of the directory of surfaces, beside it.
pub const SURFACE_DIR: &str = "toolgate.surface";
const MAX_BYTES: u64 = 16 * 1024 * 1024;
const FORMAT: u32 = 1;

/// Why a lock or a surface cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// There is no lock where one is needed.
    #[error("there is no {}; `toolgate lock update` writes it", .0.display())]
    Missing(PathBuf),
    /// No configuration file, so there is no place for a lock.
    #[error("a lock stands beside a configuration file, and there is none; write toolgate.yaml first")]
    NoPlace,
    /// A file cannot be read or written.
    #[error("{path} cannot be used: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is no lock or no surface.
    #[error("{path} cannot be used: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A plugin of the configuration is refused, so it cannot be locked.
    #[error(transparent)]
    Plugin(#[from] crate::assemble::Refusal),
}

impl LockError {
    /// Whether something is not what was reviewed (exit code 5).
    pub fn is_integrity(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Plugin(refusal) => refusal.is_integrity(),
            _ => false,
        }
    }
}

/// Everything that is pinned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The format of the file.
    pub version: u32,
    /// Plugins by name, those of the bundle included.
    #[serde(default, rename = "plugin", skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<LockedPlugin>,
    /// Servers by name.
    #[serde(default, rename = "server", skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<LockedServer>,
}

/// One plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedPlugin {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its sequence.
    pub sequence: u64,
    /// `policy`, `adapter` or `installer`.
    pub kind: String,
    /// Digest of the component.
    pub component: Digest,
    /// Digest of the release.
    pub release: Digest,
    /// The ids of the keys that signed it and may, sorted.
    pub signers: Vec<String>,
    /// What it imports, sorted.
    pub imports: Vec<String>,
    /// Digest of what the configuration grants it: decisions, settings, grants.
    pub grants: Digest,
    /// The index of `plugins.indexes` that it comes from, for a name of `plugins.load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// Its place in the log of that index, which says whether a revoked key still counts for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<u64>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedServer {
    /// Its name.
    pub name: String,
    /// Its command line or URL, for the reader; secrets are masked.
    pub target: String,
    /// Digest of what it is started or reached by.
    pub identity: Digest,
    /// Digest of the program, where the command names a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Digest>,
    /// Its adapter, with component, release and settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<LockedPlugin>,
    /// `legacy` or `modern`; empty where no surface was taken.
    pub era: String,
    /// The protocol revision that the definitions were read in.
    pub revision: String,
    /// Digest of the whole surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Digest>,
    /// Every definition, by kind and name.
    #[serde(default, rename = "definition", skip_serializing_if = "Vec::is_empty")]
    pub definitions: Vec<LockedDefinition>,
}

/// One definition of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedDefinition {
    /// `tool`, `prompt`, `resource`, `template` or `instructions`.
    pub kind: String,
    /// Its original name.
    pub name: String,
    /// Its digest.
    pub digest: Digest,
}

/// Where the lock of a configuration is.
#[derive(Debug, Clone)]
pub struct Place {
    directory: PathBuf,
}

impl Place {
    /// Beside this configuration file.
    pub fn beside(config: Option<&Path>) -> Result<Self, LockError> {
        let parent = config.and_then(Path::parent).ok_or(LockError::NoPlace)?;
        Ok(Self { directory: parent.to_owned() })
    }

    /// The lock.
    pub fn lock_file(&self) -> PathBuf {
        self.directory.join(LOCK_FILE)
    }

    /// The directory of surfaces.
    pub fn surface_dir(&self) -> PathBuf {
        self.directory.join(SURFACE_DIR)
    }

    /// Reads the lock; none where there is no file.
    pub fn read(&self) -> Result<Option<Lock>, LockError> {
        let path = self.lock_file();
        let Some(text) = read_bounded(&path)? else { return Ok(None) };
        let damaged = |what: String| LockError::Damaged { path: path.clone(), what };
        let lock: Lock = toml::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if lock.version != FORMAT {
            return Err(damaged(format!("it has version {}; this toolgate reads {FORMAT}", lock.version)));
        }
        Ok(Some(lock))
    }

    /// Reads the lock, which must be there.
    pub fn read_existing(&self) -> Result<Lock, LockError> {
        self.read()?.ok_or_else(|| LockError::Missing(self.lock_file()))
    }

    /// Writes the surfaces and then the lock, which is the moment in which all of it counts: a kill before
    /// leaves surfaces that do not fit the lock, which the next check says.
    pub fn write(&self, lock: &Lock, surfaces: &Surfaces) -> Result<(), LockError> {
        surfaces.write(&self.surface_dir())?;
        let mut sorted = lock.clone();
        sorted.version = FORMAT;
        sorted.plugins.sort_by(|left, right| left.name.cmp(&right.name));
        sorted.servers.sort_by(|left, right| left.name.cmp(&right.name));
        let path = self.lock_file();
        let text = toml::to_string(&sorted)
            .map_err(|error| LockError::Damaged { path: path.clone(), what: error.to_string() })?;
        let text = format!(
            "# Written by `toolgate lock update`. Review it, commit it, and change it no other way.\n{text}"
        );
        write_private(&path, text.as_bytes()).map_err(|source| LockError::Io { path, source })
    }
}

/// The text of a file within bounds; none where there is no file.
fn read_bounded(path: &Path) -> Result<Option<String>, LockError> {
    use std::io::Read as _;
    let failed = |source| LockError::Io { path: path.to_owned(), source };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        let what = format!("it is longer than {MAX_BYTES} bytes");
        return Err(LockError::Damaged { path: path.to_owned(), what });
    }
    Ok(Some(text))
}
