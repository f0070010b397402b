//! A directory that an operator granted: the one that was there when the plugin was loaded, and no other that
//! takes its path later.
//!
//! Contract: a path is only a name. Whoever can write beside it can move the directory away and put another,
//! or a link, in its place; what was granted is the directory that the operator looked at. So its device and
//! inode are kept from the moment of loading, or from the first opening where nothing was there yet, and what
//! is opened is compared by the open handle. Another one is denied until the plugin is loaded anew (FR-32).
//! On a platform without such numbers the path alone counts.
//!
//! Toolgate's own directories are no grant of anybody's: who writes there approves, pins and rewrites the
//! record (FR-30). They are known by their real paths, so that no link leads to them either.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use toolgate_signing::Access;

use crate::bindings::types::Error;
use crate::sys;

/// One directory of a label.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    access: Access,
    own: Arc<[PathBuf]>,
    which: OnceLock<(u64, u64)>,
}

/// Why a directory was not opened.
pub(super) enum NotOpened {
    /// The system says so.
    System(io::Error),
    /// Another directory has its path.
    Another,
    /// It is one of Toolgate's own.
    Own,
}

impl Root {
    /// The directory at this path, as it is now, or the reason why nobody gets it: `own` are Toolgate's.
    pub(super) fn new(path: PathBuf, access: Access, own: &Arc<[PathBuf]>) -> Result<Self, String> {
        let root = Self { path, access, own: Arc::clone(own), which: OnceLock::new() };
        // What is not there yet, or cannot be opened, is known when it is opened first.
        if root.is_own() || matches!(root.open(), Err(NotOpened::Own)) {
            return Err(format!(
                "{} is Toolgate's own, or holds what is and could be written",
                root.path.display()
            ));
        }
        Ok(root)
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it, if it still is the same one.
    pub(super) fn open(&self) -> Result<Dir, NotOpened> {
        let dir = Dir::open_ambient_dir(&self.path, ambient_authority()).map_err(NotOpened::System)?;
        let found = dir.dir_metadata().map_err(NotOpened::System)?;
        if self.which.get().is_none() && self.is_own() {
            return Err(NotOpened::Own);
        }
        match sys::identity(&found) {
            Some(found) if *self.which.get_or_init(|| found) != found => Err(NotOpened::Another),
            _ => Ok(dir),
        }
    }

    /// Whether the path, or what it really is, is among Toolgate's own; to write, also whether one of those
    /// is below it.
    fn is_own(&self) -> bool {
        let here = [self.path.clone(), real(&self.path)];
        self.own.iter().any(|own| {
            let own = real(own);
            here.iter()
                .any(|here| here.starts_with(&own) || (self.access == Access::Write && own.starts_with(here)))
        })
    }
}

/// Where a path leads, also where its last part is not there yet.
fn real(path: &Path) -> PathBuf {
    let above = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(above).unwrap_or_else(|| path.to_owned())
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
            Self::Own => Error::Denied(format!("the directory of files.{label} is Toolgate's own")),
        }
    }
}
