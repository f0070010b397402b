//! Digests that must never run again: `plugin deny`, at once and without any network.
//!
//! Contract: a component or a release whose digest stands here is refused wherever it comes from: the
//! bundle, `plugins.load`, an install, a lock. The file is apart from the plugins layer, because
//! switching that off, or `--locked`, must not bring back what was denied. A file that cannot be read
//! is a refusal of everything that would be checked against it.
//!
//! Bounds: 1 MiB, 10,000 digests, reasons of 500 characters.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolgate_base::files::{create_private_dir, write_private};
use toolgate_base::lock::FileLock;
use toolgate_signing::Digest;

use crate::discover::{read_text, refuse_writable};
use crate::error::ConfigError;

const MAX_BYTES: u64 = 1024 * 1024;
const MAX_DENIALS: usize = 10_000;
const MAX_REASON: usize = 500;
const LOCK_WAIT: Duration = Duration::from_secs(30);
const FORMAT: u32 = 1;

/// One digest that must not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denial {
    /// Of a component or of a release.
    pub digest: Digest,
    /// Why, in the words of whoever denied it.
    pub reason: String,
    /// When, as `2026-11-29T12:00:00Z`.
    pub at: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    #[serde(default)]
    denied: Vec<Denial>,
}

/// What is denied below a data directory.
#[derive(Debug, Clone, Default)]
pub struct Denials(Vec<Denial>);

impl Denials {
    /// Reads what is denied.
    pub fn read(data_dir: &Path) -> Result<Self, ConfigError> {
        let path = file_of(data_dir);
        let Some(text) = read_text(&path, MAX_BYTES)? else { return Ok(Self::default()) };
        refuse_writable(&path)?;
        let unusable = |what: String| ConfigError::State { path: path.clone(), what };
        let file: File = toml::from_str(text.expose())
            .map_err(|error| unusable(format!("cannot be used: {}", error.message())))?;
        if file.format != FORMAT {
            return Err(unusable(format!("has format {}; this version reads {FORMAT}", file.format)));
        }
        Ok(Self(file.denied))
    }

    /// The first denial of any of these digests.
    pub fn of(&self, digests: &[Digest]) -> Option<&Denial> {
        self.0.iter().find(|denial| digests.contains(&denial.digest))
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Denial> {
        self.0.iter()
    }
}

/// Denies a digest; whether it was not denied before. Denying again changes nothing.
pub fn deny(data_dir: &Path, denial: &Denial) -> Result<bool, ConfigError> {
    let mut denial = denial.clone();
    denial.reason = denial.reason.chars().take(MAX_REASON).collect();
    change(data_dir, |all| {
        let is_new = !all.iter().any(|known| known.digest == denial.digest);
        if is_new {
            all.push(denial);
        }
        is_new
    })
}

/// Lets a digest run again; whether it was denied.
pub fn lift(data_dir: &Path, digest: &Digest) -> Result<bool, ConfigError> {
    change(data_dir, |all| {
        let before = all.len();
        all.retain(|denial| denial.digest != *digest);
        all.len() != before
    })
}

/// Where the denials stand.
pub fn file_of(data_dir: &Path) -> PathBuf {
    data_dir.join(crate::plugins_layer::STORE).join("denied.toml")
}

fn change(data_dir: &Path, edit: impl FnOnce(&mut Vec<Denial>) -> bool) -> Result<bool, ConfigError> {
    let path = file_of(data_dir);
    for dir in [data_dir, path.parent().unwrap_or(data_dir)] {
        create_private_dir(dir).map_err(|source| ConfigError::io("create", dir, source))?;
    }
    let _lock = FileLock::exclusive(&path.with_extension("lock"), LOCK_WAIT)?;
    let mut all = Denials::read(data_dir)?.0;
    if !edit(&mut all) {
        return Ok(false);
    }
    if all.len() > MAX_DENIALS {
        return Err(ConfigError::Refused(format!("more than {MAX_DENIALS} digests are denied; lift some")));
    }
    let text = toml::to_string(&File { format: FORMAT, denied: all })
        .map_err(|error| ConfigError::Refused(error.to_string()))?;
    write_private(&path, text.as_bytes()).map_err(|source| ConfigError::io("write", &path, source))?;
    Ok(true)
}
