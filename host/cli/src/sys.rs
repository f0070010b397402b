//! The part that depends on the platform: who runs this process, and who owns a directory.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The effective user id of this process.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The user id that owns `path`.
pub(crate) fn owner(path: &Path) -> io::Result<u32> {
    std::fs::metadata(path).map(|found| found.uid())
}

/// A user id from a number, or from a name in `/etc/passwd`.
pub(crate) fn user_id(name: &str) -> Option<u32> {
    if let Ok(id) = name.parse() {
        return Some(id);
    }
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}
