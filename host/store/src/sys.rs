//! The part that depends on the platform: creating files that only their owner can read, and telling
//! whether two names are one file.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file for reading and writing and creates it, readable by its owner only, where it is
/// missing. What is there already is left as it is.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

/// Which file it is, whatever its name; unknown where the platform cannot tell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileId(Option<(u64, u64)>);

impl FileId {
    /// Device and inode.
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(Some((metadata.dev(), metadata.ino())))
    }

    /// Unknown.
    #[cfg(not(unix))]
    pub(crate) fn of(_: &Metadata) -> Self {
        Self(None)
    }

    /// Whether both are certainly one file.
    pub(crate) fn is(self, other: Self) -> bool {
        self.0.is_some() && self.0 == other.0
    }
}
