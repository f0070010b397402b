//! A directory that an operator granted: the one that was there when the plugin was loaded, and no other that
//! takes its path later.
//!
//! Contract: a path is only a name. Whoever can write beside it can move the directory away and put another,
//! or a link, in its place; what was granted is the directory that the operator looked at. So its device and
//! inode are kept from the moment of loading, or from the first opening where nothing was there yet, and what
//! is opened is compared by the open handle. Another one is denied until the plugin is loaded anew (FR-32).
//! On a platform without such numbers the path alone counts.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::bindings::types::Error;
use crate::sys;

/// One directory of a label.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    which: OnceLock<(u64, u64)>,
}

/// Why a directory was not opened.
pub(super) enum NotOpened {
    /// The system says so.
    System(io::Error),
    /// Another directory has its path.
    Another,
}

impl Root {
    /// The directory at this path, as it is now.
    pub(super) fn new(path: PathBuf) -> Self {
        let root = Self { path, which: OnceLock::new() };
        // What is not there yet, or cannot be opened, is known when it is opened first.
        let _ = root.open();
        root
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it, if it still is the same one.
    pub(super) fn open(&self) -> Result<Dir, NotOpened> {
        let dir = Dir::open_ambient_dir(&self.path, ambient_authority()).map_err(NotOpened::System)?;
        let found = dir.dir_metadata().map_err(NotOpened::System)?;
        match sys::identity(&found) {
            Some(found) if *self.which.get_or_init(|| found) != found => Err(NotOpened::Another),
            _ => Ok(dir),
        }
    }
}

impl NotOpened {
    /// What a plugin is told of it.
    pub(super) fn told(&self, label: &str) -> Error {
        match self {
            Self::System(error) => Error::Unavailable(format!(
                "the directory of files.{label} cannot be opened: {}",
                error.kind()
            )),
            Self::Another => Error::Denied(format!(
                "another directory stands where that of files.{label} was when this plugin was loaded"
            )),
        }
    }
}
