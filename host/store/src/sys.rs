//! The part that depends on the platform: creating files that only their owner can read, and telling
//! whether two names are one file.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file for reading and writing and creates it, readable by its owner only, where it is
/// missing. What is there already is left as it is. A link is not followed, to which whoever can write
/// the configuration could lead: another data directory must not reach the state of this one.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(NO_FOLLOW);
    }
    options.open(path)
}

/// Opens a file that is there for reading and writing. A link is not followed.
pub(crate) fn open_existing(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(NO_FOLLOW);
    }
    options.open(path)
}

/// `O_NOFOLLOW`.
#[cfg(unix)]
const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// Whether an error of [`open_private`] says that the name is a link.
#[cfg(unix)]
pub(crate) fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Links are followed here.
#[cfg(not(unix))]
pub(crate) fn is_link(_: &io::Error) -> bool {
    false
}

/// Whether a file has one name only, so that no other directory has it too.
#[cfg(unix)]
pub(crate) fn is_alone(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.nlink() <= 1)
}

/// Not known here.
#[cfg(not(unix))]
pub(crate) fn is_alone(_: &File) -> io::Result<bool> {
    Ok(true)
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

    /// The file of this name now.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|found| Self::of(&found))
    }

    /// Whether both may be one file: they are, or the platform cannot tell.
    pub(crate) fn may_be(self, other: Self) -> bool {
        self.0 == other.0
    }

    /// Whether both are certainly one file.
    pub(crate) fn is(self, other: Self) -> bool {
        self.0.is_some() && self.0 == other.0
    }
}
