//! Files that only their owner reads, written so that a reader sees the old or the new content.
//!
//! A file is written beside its target under an unguessable name with mode 0600, flushed to the
//! disk and renamed over it; a symbolic link at the target is replaced, not followed. Directories
//! made here have mode 0700. On a platform without Unix modes the directory's own access list is
//! what protects the files.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::{random_hex, sys};

/// Writes `bytes` to `path` in one step with mode 0600, making missing directories with mode 0700.
///
/// On any error the old content stands and the temporary file is gone.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = written_beside(path, bytes)?;
    fs::rename(&temporary.path, path)?;
    temporary.became_real = true;
    sys::sync_directory(parent_of(path))
}

/// Writes `bytes` to a new file at `path` in one step with mode 0600: whole, or not at all.
///
/// # Errors
/// `AlreadyExists` if something is there; it stays as it is.
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A second name for the same file is refused where the name is taken, which a rename is not.
    let temporary = written_beside(path, bytes)?;
    fs::hard_link(&temporary.path, path)?;
    drop(temporary);
    sys::sync_directory(parent_of(path))
}

/// A file with these bytes, flushed to the disk, in the directory of `path`.
fn written_beside(path: &Path, bytes: &[u8]) -> io::Result<Temporary> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` names no file", path.display()))
    })?;
    let directory = parent_of(path);
    if !directory.is_dir() {
        create_private_dir(directory)?;
    }
    let mut temporary_name = std::ffi::OsString::from(".");
    temporary_name.push(name);
    temporary_name.push(format!(".{}.tmp", random_hex(8)));
    let temporary = Temporary { path: directory.join(temporary_name), became_real: false };
    let mut file = sys::create_new_private(&temporary.path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(temporary)
}

/// A whole regular file of at most `limit` bytes; `None` where there is none.
///
/// A pipe with the name of a file would be waited for and a device has no end, so whatever is no
/// regular file is refused, by looking at what was opened and not at what has the name.
///
/// # Errors
/// `InvalidInput` for what is no regular file, `FileTooLarge` beyond the limit, and what the system says.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match sys::open_without_waiting(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
        let text = format!("it is larger than {limit} bytes, which is the limit");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(Some(bytes))
}

/// Opens `path` for appending, making it with mode 0600 where it does not exist. For logs and lock files. A
/// symbolic link at `path` is an error where the platform can tell.
pub fn open_private_append(path: &Path) -> io::Result<File> {
    sys::open_append_private(path)
}

/// Makes `path` and what is missing above it, each with mode 0700. An existing directory at `path`
/// itself must belong to this user, and loses the access of group and others.
///
/// # Errors
/// `PermissionDenied` if the directory belongs to somebody else, `NotADirectory` if it is none.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("`{}` exists and is not a directory", path.display()),
        )),
        Ok(found) => sys::make_private(path, &found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => sys::create_dirs_private(path),
        Err(error) => Err(error),
    }
}

/// Whether somebody else than this user (and the superuser) can change the file at `path`: by its
/// mode, by owning it, or by replacing it in a directory that everybody writes.
///
/// A link is followed, and the file it leads to is judged. On a platform without Unix modes the
/// answer is `false`.
pub fn is_writable_by_others(path: &Path) -> io::Result<bool> {
    let real = fs::canonicalize(path)?;
    sys::is_writable_by_others(&real, parent_of(&real))
}

/// Whether group or others can read the file at `path`; `false` where a platform has no such modes, and
/// for what is no plain file: a pipe that the caller opened has no readers but the caller.
pub fn is_readable_by_others(path: &Path) -> io::Result<bool> {
    let found = fs::metadata(path)?;
    Ok(found.is_file() && sys::is_readable_by_others(&found))
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A temporary file that goes away unless it became the real one.
struct Temporary {
    path: PathBuf,
    became_real: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.became_real {
            // The error that brought us here is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests;
