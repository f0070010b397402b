//! A log file that does not grow without end: lines are appended, a full file is put aside under a
//! number, and the oldest goes.
//!
//! Contract: a line is written whole or not at all. `NAME` is the newest, `NAME.1` the one before, up
//! to `NAME.<kept>`; all have mode 0600. Several processes may write one file: whoever finds it full
//! puts it aside, and the others notice that the name leads to another file.
//!
//! Bounds: a file is put aside once it has `max_bytes`, so that all of them together take about
//! `max_bytes * (kept + 1)` and one line.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::{files, sys};

/// One log file and those that were put aside.
#[derive(Debug)]
pub struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    kept: usize,
    file: Mutex<File>,
}

impl RotatingFile {
    /// Opens the file at `path`, making it and its directory (0700) where they do not exist. A file is
    /// full at `max_bytes`; `kept` full ones stay beside it.
    ///
    /// # Errors
    /// What the system says about the directory or the file.
    pub fn open(path: &Path, max_bytes: u64, kept: usize) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            files::create_private_dir(directory)?;
        }
        let file = Mutex::new(files::open_private_append(path)?);
        Ok(Self { path: path.to_owned(), max_bytes, kept, file })
    }

    /// Where the newest lines are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends bytes, which should end with a line's end, in one write.
    ///
    /// # Errors
    /// What the system says; the bytes are lost then.
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.metadata()?.len() >= self.max_bytes {
            // Of two processes that find it full, the second finds another file under the name.
            if sys::is_same_file(&file, &self.path) {
                self.put_aside()?;
            }
            *file = files::open_private_append(&self.path)?;
        }
        file.write_all(bytes)
    }

    fn put_aside(&self) -> io::Result<()> {
        if self.kept == 0 {
            return fs::remove_file(&self.path);
        }
        for number in (1..self.kept).rev() {
            let from = numbered(&self.path, number);
            if from.exists() {
                fs::rename(from, numbered(&self.path, number + 1))?;
            }
        }
        fs::rename(&self.path, numbered(&self.path, 1))
    }
}

/// The file that was put aside `number` times ago.
pub fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
