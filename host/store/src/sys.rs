//! The part that depends on the platform: creating files that only their owner can read.

use std::fs::{File, OpenOptions};
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
