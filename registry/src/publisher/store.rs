//! Writing a registry's files: each in one step, readable by whoever serves them, and the one that
//! publishes last.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use toolgate_base::random_hex;

use crate::error::RegistryError;

/// Where files are until they are whole.
const UNFINISHED: &str = ".tmp";

/// Writes below one directory.
pub(crate) struct Store {
    directory: PathBuf,
    /// Steps that are left before this store stops, as if its process had been killed.
    #[cfg(test)]
    left: std::cell::Cell<Option<usize>>,
}

/// Files that become visible together: everything is there before `last` is.
#[derive(Default)]
pub(crate) struct Files {
    files: Vec<(String, Vec<u8>)>,
}

impl Files {
    pub(crate) fn put(&mut self, path: String, bytes: impl Into<Vec<u8>>) {
        self.files.push((path, bytes.into()));
    }

    pub(crate) fn extend(&mut self, files: impl IntoIterator<Item = (String, Vec<u8>)>) {
        self.files.extend(files);
    }
}

impl Store {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            #[cfg(test)]
            left: std::cell::Cell::new(None),
        }
    }

    /// Removes what a publisher that was killed left unfinished. The caller holds the lock.
    pub(crate) fn sweep(&self) {
        // What cannot be removed takes space and is never looked at.
        let _ = fs::remove_dir_all(self.directory.join(UNFINISHED));
    }

    #[cfg(test)]
    pub(crate) fn stop_after(&self, steps: usize) {
        self.left.set(Some(steps));
    }

    /// Writes the files and then the one that publishes them.
    pub(crate) fn publish(&self, files: &Files, last: &(String, Vec<u8>)) -> Result<(), RegistryError> {
        for (path, bytes) in files.files.iter().chain([last]) {
            self.write(path, bytes)?;
        }
        Ok(())
    }

    /// Writes one file: elsewhere, flushed, then renamed into it.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), RegistryError> {
        let file = self.directory.join(path);
        let failed = |source| RegistryError::Io { path: file.clone(), doing: "written", source };
        let parent = file.parent().unwrap_or(&self.directory);
        self.step().map_err(failed)?;
        let unfinished = self.directory.join(UNFINISHED);
        fs::create_dir_all(parent).map_err(failed)?;
        fs::create_dir_all(&unfinished).map_err(failed)?;
        let temporary = unfinished.join(random_hex(8));
        self.replace(&temporary, &file, bytes).map_err(|error| {
            let _ = fs::remove_file(&temporary);
            failed(error)
        })
    }

    fn replace(&self, temporary: &Path, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut open = OpenOptions::new().write(true).create_new(true).open(temporary)?;
        open.write_all(bytes)?;
        open.sync_all()?;
        self.step()?;
        fs::rename(temporary, file)?;
        // The rename survives a power cut only with its directory.
        File::open(file.parent().unwrap_or(&self.directory))?.sync_all()
    }

    /// Whether a file of these bytes is there already.
    pub(crate) fn has(&self, path: &str, bytes: &[u8]) -> bool {
        let limit = bytes.len() as u64;
        crate::files::read(&self.directory.join(path), limit)
            .ok()
            .flatten()
            .is_some_and(|there| there == bytes)
    }

    #[cfg(test)]
    fn step(&self) -> io::Result<()> {
        match self.left.get() {
            Some(0) => Err(io::Error::other("stopped by the test")),
            Some(left) => {
                self.left.set(Some(left - 1));
                Ok(())
            }
            None => Ok(()),
        }
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "tests stop here")]
    fn step(&self) -> io::Result<()> {
        Ok(())
    }
}
