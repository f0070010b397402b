//! Who serves a data directory: one process at a time.
//!
//! The lock is `run/gateway.lock`, held for as long as the process lives and given back by the kernel.
//! Beside it `run/gateway.json` says who holds it, for messages alone: it may be of a process that died.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use toolgate_base::files::{create_private_dir, read_bounded, write_private};
use toolgate_base::lock::{FileLock, LockError};

use super::run_dir;

/// How a process serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// Started by a client on pipes, for all of them.
    Shared,
    /// One client on pipes, without sharing (`--no-share`).
    Alone,
    /// Over HTTP, and for clients on pipes too.
    Http,
}

/// What the holder says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// How it serves.
    pub manner: Manner,
    /// Version of its binary.
    pub version: String,
    /// Its configuration file.
    pub config: Option<PathBuf>,
}

/// A data directory that this process serves, until this value is dropped.
#[derive(Debug)]
pub struct Claim {
    _lock: FileLock,
    data_dir: PathBuf,
}

impl Drop for Claim {
    /// Whoever reads afterwards finds nobody, and not the number of a process that is another one by then.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(run_dir(&self.data_dir).join("gateway.json"));
    }
}

/// Why a data directory was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another process serves it.
    #[error("the data directory {} is taken: process {pid} serves it{}", data_dir.display(), told(*manner))]
    Taken {
        /// The directory.
        data_dir: PathBuf,
        /// Who has it.
        pid: u32,
        /// How it serves, if it said so.
        manner: Option<Manner>,
    },
    /// The lock cannot be made or taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file or directory beside it cannot be made.
    #[error("{} cannot be made: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn told(manner: Option<Manner>) -> &'static str {
    match manner {
        Some(Manner::Shared) => " for clients over stdio",
        Some(Manner::Alone) => " without sharing (--no-share)",
        Some(Manner::Http) => " over HTTP",
        None => "",
    }
}

impl Claim {
    /// Takes the directory for `holder`, waiting at most `wait` for a process that is about to end. One
    /// that serves without sharing is not waited for: it ends with its client. Blocks the thread.
    ///
    /// # Errors
    /// [`ClaimError::Taken`] with the process that has it.
    pub fn take(data_dir: &Path, holder: &Holder, wait: Duration) -> Result<Self, ClaimError> {
        let run = run_dir(data_dir);
        for dir in [data_dir, run.as_path()] {
            create_private_dir(dir).map_err(|source| ClaimError::Io { path: dir.to_owned(), source })?;
        }
        let until = Instant::now() + wait;
        let lock = loop {
            match FileLock::exclusive(&run.join("gateway.lock"), Duration::from_millis(50)) {
                Ok(lock) => break lock,
                Err(LockError::Busy { holder, .. }) => {
                    let said = Self::holder(data_dir);
                    let pid = holder.or(said.as_ref().map(|said| said.pid)).unwrap_or_default();
                    let manner = said.filter(|said| said.pid == pid).map(|said| said.manner);
                    if manner == Some(Manner::Alone) || Instant::now() >= until {
                        return Err(ClaimError::Taken { data_dir: data_dir.to_owned(), pid, manner });
                    }
                }
                Err(error) => return Err(error.into()),
            }
        };
        let path = run.join("gateway.json");
        let text = serde_json::to_vec(holder).map_err(io::Error::from);
        text.and_then(|text| write_private(&path, &text))
            .map_err(|source| ClaimError::Io { path, source })?;
        Ok(Self { _lock: lock, data_dir: data_dir.to_owned() })
    }

    /// The process that serves the directory now, if one does. The lock is looked at, not taken from
    /// anybody: where nobody holds it, it is free again when this returns.
    ///
    /// # Errors
    /// [`LockError`] where the lock cannot be looked at.
    pub fn serving(data_dir: &Path) -> Result<Option<u32>, LockError> {
        let path = run_dir(data_dir).join("gateway.lock");
        if path.try_exists().is_ok_and(|there| !there) {
            return Ok(None);
        }
        match FileLock::exclusive(&path, Duration::ZERO) {
            Ok(_free) => Ok(None),
            Err(LockError::Busy { holder, .. }) => {
                Ok(Some(holder.or(Self::holder(data_dir).map(|said| said.pid)).unwrap_or_default()))
            }
            Err(error) => Err(error),
        }
    }

    /// What the last holder said of itself. It may have ended since.
    pub fn holder(data_dir: &Path) -> Option<Holder> {
        let bytes = read_bounded(&run_dir(data_dir).join("gateway.json"), 64 * 1024).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    /// The directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }
}

#[cfg(test)]
mod tests;
