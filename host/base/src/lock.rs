//! One writer at a time across processes: an advisory lock on a file (`flock` on Unix).
//!
//! The kernel releases the lock when its holder ends, however it ends, so there is no stale lock
//! to clean up, and the file stays where it is: removing it would let two holders lock two files
//! of the same name. The holder's process id is written into it, for error messages only.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::files;

/// Longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it for longer than we were told to wait.
    #[error(
        "`{}` is locked by {}; waited {waited:?}: end that process or try again",
        path.display(),
        holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// The process id that the holder left in the file, if it can be read.
        holder: Option<u32>,
        /// How long this process waited.
        waited: Duration,
    },
    /// The lock file could not be opened or locked.
    #[error("cannot lock `{}`: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A lock that is held until this value is dropped.
#[derive(Debug)]
pub struct FileLock {
    // Closing the file releases the lock; there is nothing else to do on drop.
    _file: File,
}

impl FileLock {
    /// Takes the lock at `path`, made with mode 0600 if it does not exist, waiting at most `wait`.
    ///
    /// Blocks the thread. Two locks of the same path in one process exclude each other too.
    pub fn exclusive(path: &Path, wait: Duration) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        let mut file = files::open_private_append(path).map_err(failed)?;
        let started = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            let waited = started.elapsed();
            let Some(left) = wait.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Err(LockError::Busy {
                    path: path.to_owned(),
                    holder: read_holder(&mut file),
                    waited,
                });
            };
            std::thread::sleep(pause.min(left));
            pause = pause.saturating_mul(2).min(MAX_PAUSE);
        }
        // The process id is a courtesy; the lock holds without it.
        let _ = write_holder(&mut file);
        Ok(Self { _file: file })
    }
}

fn write_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(std::process::id().to_string().as_bytes())
}

fn read_holder(file: &mut File) -> Option<u32> {
    file.rewind().ok()?;
    let mut text = String::new();
    file.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests;
