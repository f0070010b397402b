//! Which `./toolgate.yaml` files were trusted, by digest.
//!
//! Contract: the record is `trusted-configs` in the user's configuration directory (never in the
//! working directory, and not in the data directory, which a configuration chooses): JSON with a
//! format number, one entry for each canonical path with the digest of the file and of the `.env`
//! beside it, or that there was none. It is written 0600, in one step, under a lock; a newer format
//! or a damaged record is an error, not an empty one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use toolgate_base::Secret;
use toolgate_base::files::{create_private_dir, write_private};
use toolgate_base::lock::FileLock;
use toolgate_signing::Digest;

use crate::discover::{MAX_BYTES, parent, read_text, refuse_writable};
use crate::envfile;
use crate::error::ConfigError;

#[cfg(test)]
mod tests;

const FILE_NAME: &str = "trusted-configs";
const FORMAT: u64 = 1;
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// What was recorded of one configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `sha256:<hex>` of the file.
    pub config: String,
    /// `sha256:<hex>` of the `.env` beside it; `None`: there was none, and a new one is a change.
    pub dotenv: Option<String>,
}

/// Whether a file is still what was trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Every byte of it.
    Trusted,
    /// No: which part changed.
    Changed(&'static str),
}

impl Record {
    fn of(config: &Secret, dotenv: Option<&Secret>) -> Self {
        let digest = |text: &Secret| Digest::of(text.expose().as_bytes()).to_string();
        Self { config: digest(config), dotenv: dotenv.map(digest) }
    }

    pub(crate) fn compare(&self, config: &Secret, dotenv: Option<&Secret>) -> State {
        let now = Self::of(config, dotenv);
        if now.config != self.config {
            State::Changed("toolgate.yaml has other bytes")
        } else if now.dotenv != self.dotenv {
            State::Changed("the .env beside it is another")
        } else {
            State::Trusted
        }
    }
}

/// Records that `path` and the `.env` beside it are trusted as they are now, and returns the record.
/// `user_dir` is what [`crate::user_config_dir`] gives. The caller has proof that the operator asks.
pub fn record(user_dir: &Path, path: &Path) -> Result<Record, ConfigError> {
    let path = canonical(path)?;
    refuse_writable(&path)?;
    let text = read_text(&path, MAX_BYTES)?
        .ok_or_else(|| ConfigError::NotFound { path: path.clone(), named_by: "`config trust`" })?;
    let dotenv = read_text(&parent(&path).join(".env"), envfile::MAX_BYTES)?;
    let record = Record::of(&text, dotenv.as_ref());
    change(user_dir, |records| {
        records.insert(path, record.clone());
    })?;
    Ok(record)
}

/// Forgets a file; whether it was known.
pub fn forget(user_dir: &Path, path: &Path) -> Result<bool, ConfigError> {
    // A file that is gone can still be forgotten, under the path it had.
    let path = canonical(path).unwrap_or_else(|_| path.to_owned());
    let mut known = false;
    change(user_dir, |records| known = records.remove(&path).is_some())?;
    Ok(known)
}

/// Whether `path` is trusted as it is now; `None`: it never was.
pub fn is_trusted(user_dir: &Path, path: &Path) -> Result<Option<State>, ConfigError> {
    let Some(record) = recorded(user_dir, path)? else { return Ok(None) };
    let Some(text) = read_text(path, MAX_BYTES)? else { return Ok(Some(State::Changed("the file is gone"))) };
    let dotenv = read_text(&parent(path).join(".env"), envfile::MAX_BYTES)?;
    Ok(Some(record.compare(&text, dotenv.as_ref())))
}

/// What is recorded of `path`, if anything.
pub(crate) fn recorded(user_dir: &Path, path: &Path) -> Result<Option<Record>, ConfigError> {
    let mut records = read(&user_dir.join(FILE_NAME))?;
    Ok(canonical(path).ok().and_then(|path| records.remove(&path)))
}

fn canonical(path: &Path) -> Result<PathBuf, ConfigError> {
    path.canonicalize().map_err(|source| ConfigError::io("read", path, source))
}

type Records = BTreeMap<PathBuf, Record>;

fn change(user_dir: &Path, change: impl FnOnce(&mut Records)) -> Result<(), ConfigError> {
    if !user_dir.is_dir() {
        create_private_dir(user_dir).map_err(|source| ConfigError::io("create", user_dir, source))?;
    }
    let file = user_dir.join(FILE_NAME);
    let _lock = FileLock::exclusive(&user_dir.join(".trusted-configs.lock"), LOCK_WAIT)?;
    let mut records = read(&file)?;
    change(&mut records);
    let configs: BTreeMap<String, serde_json::Value> = records
        .into_iter()
        .map(|(path, record)| {
            let value = json!({ "config": record.config, "dotenv": record.dotenv });
            (path.to_string_lossy().into_owned(), value)
        })
        .collect();
    let text = format!("{:#}\n", json!({ "format": FORMAT, "configs": configs }));
    write_private(&file, text.as_bytes()).map_err(|source| ConfigError::io("write", &file, source))
}

fn read(file: &Path) -> Result<Records, ConfigError> {
    #[derive(Deserialize)]
    struct Header {
        format: u64,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Stored {
        #[expect(dead_code, reason = "read by Header")]
        format: u64,
        configs: Records,
    }
    let Some(text) = read_text(file, MAX_BYTES)? else { return Ok(Records::new()) };
    refuse_writable(file)?;
    let damaged = |_| ConfigError::State {
        path: file.to_owned(),
        what: "is damaged; remove it and run `toolgate config trust` again for each file".to_owned(),
    };
    let header: Header = serde_json::from_str(text.expose()).map_err(damaged)?;
    if header.format != FORMAT {
        let what = format!(
            "has format {}, and this version of Toolgate reads {FORMAT}; use the version that wrote it",
            header.format
        );
        return Err(ConfigError::State { path: file.to_owned(), what });
    }
    let stored: Stored = serde_json::from_str(text.expose()).map_err(damaged)?;
    Ok(stored.configs)
}
