//! Modes, owners and directory flushes on Unix.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIR: u32 = 0o700;
const GROUP_OR_OTHERS: u32 = 0o077;
const GROUP_OR_OTHERS_READ: u32 = 0o044;
const GROUP_OR_OTHERS_WRITE: u32 = 0o022;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

pub(crate) fn create_new_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(path)
}

/// Opens for reading; a pipe without a writer is opened as well, instead of being waited for.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)
}

/// A link is not followed: somebody else's file would be locked, or written to, in place of ours.
pub(crate) fn open_append_private(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits();
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(PRIVATE_FILE).custom_flags(flags.cast_signed());
    options.open(path).map_err(|error| {
        if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            return io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is a link, which is not followed; remove it",
            );
        }
        error
    })
}

pub(crate) fn create_dirs_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(path)
}

pub(crate) fn make_private(path: &Path, found: &Metadata) -> io::Result<()> {
    if found.uid() != effective_user() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("`{}` belongs to another user", path.display()),
        ));
    }
    if found.mode() & GROUP_OR_OTHERS == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(found.mode() & PRIVATE_DIR))
}

/// Makes a rename survive a power cut.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

pub(crate) fn is_writable_by_others(file: &Path, directory: &Path) -> io::Result<bool> {
    let found = fs::metadata(file)?;
    let above = fs::metadata(directory)?;
    let foreign = |owner: u32| owner != effective_user() && owner != 0;
    Ok(found.mode() & GROUP_OR_OTHERS_WRITE != 0
        || foreign(found.uid())
        || foreign(above.uid())
        || above.mode() & OTHERS_WRITE != 0 && above.mode() & STICKY == 0)
}

pub(crate) fn is_readable_by_others(found: &Metadata) -> bool {
    found.mode() & GROUP_OR_OTHERS_READ != 0
}

/// Whether the name still leads to this open file.
pub(crate) fn is_same_file(open: &File, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (open.metadata(), fs::metadata(path)) else { return false };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
