//! Platforms without Unix modes: files inherit the access list of the directory they are in.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

pub(crate) fn create_new_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

pub(crate) fn open_append_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path)
}

pub(crate) fn create_dirs_private(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[expect(clippy::unnecessary_wraps, reason = "the Unix version can fail")]
pub(crate) fn make_private(_path: &Path, _found: &Metadata) -> io::Result<()> {
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the Unix version can fail")]
pub(crate) fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the Unix version can fail")]
pub(crate) fn is_writable_by_others(_file: &Path, _directory: &Path) -> io::Result<bool> {
    Ok(false)
}

pub(crate) fn is_readable_by_others(_: &std::fs::Metadata) -> bool {
    false
}

pub(crate) fn is_same_file(_open: &File, _path: &Path) -> bool {
    true
}
