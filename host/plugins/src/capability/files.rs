//! `toolgate:plugin/files`: directories that the operator bound to a label, through `cap-std`.
//!
//! `cap-std` resolves every path below an open directory (`openat2` with `RESOLVE_BENEATH` where
//! the kernel has it) and refuses what leaves: `..`, absolute paths, links that lead out. What is
//! checked and what is opened are one step, so a link that is exchanged in between changes nothing. The
//! directory itself is the one that was there when the plugin was loaded ([`root`]).
//! Bounds: 4 KiB a path, `host-bytes` a read or write, 65,536 names a directory. Pipes and devices
//! are neither read nor written, since they could hold the call.

mod root;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::{Dir, FileType, OpenOptions};
use toolgate_signing::Access;
use wasmtime::component::Resource;

use super::{invalid, not_granted, too_large};
use crate::bindings::files::{Entry, EntryPage, Host, HostDir, Kind, Metadata};
use crate::bindings::types::Error;
use crate::error::LoadErrorKind;
use crate::json;
use crate::opened::{Given, only_declared};
use crate::state::State;
use crate::sys;
use root::{NotOpened, Root};

/// Bytes of a path.
const MAX_PATH: usize = 4096;
/// Names in one page.
const PAGE: usize = 256;
/// Names in a directory that is listed at all.
const MAX_NAMES: usize = 65_536;

/// One open label.
pub(crate) struct Label {
    directories: Vec<Root>,
    access: Access,
}

impl Label {
    fn new(directories: Vec<PathBuf>, access: Access, own: &Arc<[PathBuf]>) -> Result<Self, String> {
        let root = |path| Root::new(path, access, own);
        Ok(Self { directories: directories.into_iter().map(root).collect::<Result<_, _>>()?, access })
    }
}

/// What stands behind a `dir` handle.
#[allow(unreachable_pub)] // the generated bindings re-export it, which they can only for a `pub` item
pub struct Directory {
    dir: Arc<Dir>,
    access: Access,
}

/// The labels that are open: those that are granted, and those whose directories stand in the
/// settings where the release says so.
pub(crate) fn validate(given: &Given<'_>) -> Result<BTreeMap<String, Label>, LoadErrorKind> {
    let declared = &given.release.capabilities.files;
    let mut open = BTreeMap::new();
    for (label, declared) in declared {
        let Some(pointer) = &declared.settings else { continue };
        let directories = directories_of_settings(given, pointer)?;
        if !directories.is_empty() {
            let opened = Label::new(directories, declared.access, &given.ports.own)
                .map_err(|error| LoadErrorKind::Settings(format!("the list at {pointer}: {error}")))?;
            open.insert(label.clone(), opened);
        }
    }
    for (label, declared, grant) in only_declared("files", declared, &given.grants.files)? {
        if let Some(relative) = grant.directories.iter().find(|path| !path.is_absolute()) {
            return Err(LoadErrorKind::Grant(format!(
                "grants.files.{label}: {} is no absolute path",
                relative.display()
            )));
        }
        let access = match (declared.access, grant.access) {
            (Access::Write, Some(Access::Write) | None) => Access::Write,
            (Access::Read, Some(Access::Write)) => {
                return Err(LoadErrorKind::Grant(format!(
                    "grants.files.{label}.access is write, and its release declares reading only"
                )));
            }
            _ => Access::Read,
        };
        let opened = Label::new(grant.directories.clone(), access, &given.ports.own)
            .map_err(|error| LoadErrorKind::Grant(format!("grants.files.{label}: {error}")))?;
        open.insert(label.clone(), opened);
    }
    Ok(open)
}

fn directories_of_settings(given: &Given<'_>, pointer: &str) -> Result<Vec<PathBuf>, LoadErrorKind> {
    let raw = json::lookup(given.settings.text(), pointer)
        .map_err(|error| LoadErrorKind::Malformed(format!("capabilities.files: {error}")))?;
    let Some(raw) = raw else { return Ok(Vec::new()) };
    let wrong = || LoadErrorKind::Settings(format!("a list of absolute directories is needed at {pointer}"));
    let list: Vec<PathBuf> = serde_json::from_str(raw).map_err(|_| wrong())?;
    if list.iter().all(|path| path.is_absolute()) { Ok(list) } else { Err(wrong()) }
}

impl Host for State {
    fn locate(&mut self, label: String, path: String) -> wasmtime::Result<Result<Option<String>, Error>> {
        Ok(self.located(&label, &path))
    }
}

impl HostDir for State {
    fn open(&mut self, label: String) -> wasmtime::Result<Result<Resource<Directory>, Error>> {
        let shared = Arc::clone(&self.shared);
        let Some(open) = shared.opened.files.get(&label) else {
            return Ok(Err(not_granted("files", &label)));
        };
        let Some(root) = open.directories.first() else {
            return Ok(Err(Error::Unavailable(format!("no directory is bound to files.{label}"))));
        };
        match self.wait(|_| root.open().map_err(|error| error.told(&label))) {
            Ok(dir) => Ok(Ok(self.table.push(Directory { dir: dir.into(), access: open.access })?)),
            Err(error) => Ok(Err(error)),
        }
    }

    fn stat(&mut self, dir: Resource<Directory>, path: String) -> wasmtime::Result<Result<Metadata, Error>> {
        self.in_dir(&dir, &path, false, |dir, path| {
            let found = dir.metadata(path).map_err(|error| error_of(&error))?;
            let size = if found.is_file() { found.len() } else { 0 };
            Ok(Metadata { kind: kind_of(found.file_type()), size })
        })
    }

    fn read(
        &mut self,
        dir: Resource<Directory>,
        path: String,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Result<Vec<u8>, Error>> {
        let limit = self.shared.limits.host_bytes;
        self.in_dir(&dir, &path, false, |dir, path| read(dir, path, offset, length, limit))
    }

    fn entries(
        &mut self,
        dir: Resource<Directory>,
        path: String,
        cursor: Option<String>,
    ) -> wasmtime::Result<Result<EntryPage, Error>> {
        self.in_dir(&dir, &path, false, |dir, path| entries(dir, path, cursor.as_deref().unwrap_or_default()))
    }

    fn write(
        &mut self,
        dir: Resource<Directory>,
        path: String,
        content: Vec<u8>,
    ) -> wasmtime::Result<Result<(), Error>> {
        let limit = self.shared.limits.host_bytes;
        if content.len() > limit {
            return Ok(Err(too_large(content.len(), limit)));
        }
        self.in_dir(&dir, &path, true, |dir, path| replace(dir, path, &content))
    }

    fn make_dir(&mut self, dir: Resource<Directory>, path: String) -> wasmtime::Result<Result<(), Error>> {
        self.in_dir(&dir, &path, true, |dir, path| dir.create_dir(path).map_err(|error| error_of(&error)))
    }

    fn remove(&mut self, dir: Resource<Directory>, path: String) -> wasmtime::Result<Result<(), Error>> {
        self.in_dir(&dir, &path, true, |dir, path| {
            let found = dir.symlink_metadata(path).map_err(|error| error_of(&error))?;
            let removed = if found.is_dir() { dir.remove_dir(path) } else { dir.remove_file(path) };
            removed.map_err(|error| error_of(&error))
        })
    }

    fn drop(&mut self, dir: Resource<Directory>) -> wasmtime::Result<()> {
        self.table.delete(dir)?;
        Ok(())
    }
}

impl State {
    /// Runs one step below a directory; `changes` where it writes.
    fn in_dir<T>(
        &mut self,
        handle: &Resource<Directory>,
        path: &str,
        changes: bool,
        step: impl FnOnce(&Dir, &Path) -> Result<T, Error>,
    ) -> wasmtime::Result<Result<T, Error>> {
        let handle = self.table.get(handle)?;
        let (dir, access) = (Arc::clone(&handle.dir), handle.access);
        if changes {
            if access == Access::Read {
                return Ok(Err(Error::Denied("this label is for reading".to_owned())));
            }
            if let Err(error) = self.may_change("files writes") {
                return Ok(Err(error));
            }
        }
        let path = match checked(path) {
            Ok(path) => path,
            Err(error) => return Ok(Err(error)),
        };
        Ok(self.wait(|_| step(&dir, path)))
    }

    fn located(&mut self, label: &str, path: &str) -> Result<Option<String>, Error> {
        let shared = Arc::clone(&self.shared);
        let open = shared.opened.files.get(label).ok_or_else(|| not_granted("files", label))?;
        if path.len() > MAX_PATH || path.contains('\0') {
            return Err(invalid("that is no path"));
        }
        let path = Path::new(path);
        if !path.is_absolute() || path.components().any(|part| matches!(part, Component::ParentDir)) {
            return Err(invalid("an absolute path without `..` is needed"));
        }
        self.wait(|_| {
            for root in &open.directories {
                if let Ok(below) = path.strip_prefix(root.path())
                    && let Some(found) = follow(label, root, below)?
                {
                    return Ok(found.to_str().map(str::to_owned));
                }
            }
            Ok(None)
        })
    }
}

/// Where a path below `root` leads; none where it leaves, or cannot be followed to its end.
fn follow(label: &str, root: &Root, below: &Path) -> Result<Option<PathBuf>, Error> {
    let dir = match root.open() {
        Ok(dir) => dir,
        // Nothing is there, so nothing can lead out; a server would fail on it by itself.
        Err(NotOpened::System(error)) if error.kind() == ErrorKind::NotFound => {
            return Ok(Some(root.path().join(below)));
        }
        Err(error) => return Err(error.told(label)),
    };
    let root = root.path();
    let mut existing = below;
    let mut missing = Vec::new();
    loop {
        if existing.as_os_str().is_empty() {
            break;
        }
        match dir.canonicalize(existing) {
            Ok(real) => return Ok(Some(joined(&root.join(real), missing))),
            // A link that leads to nothing inside would be followed to wherever it leads later.
            Err(error) if error.kind() == ErrorKind::NotFound && dir.symlink_metadata(existing).is_err() => {
                missing.extend(existing.file_name());
                existing = existing.parent().unwrap_or(Path::new(""));
            }
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(joined(root, missing)))
}

fn joined(base: &Path, missing: Vec<&std::ffi::OsStr>) -> PathBuf {
    let mut path = base.to_owned();
    path.extend(missing.into_iter().rev());
    path
}

/// A relative path without `..`; `cap-std` would refuse the others too, with a vaguer word.
fn checked(path: &str) -> Result<&Path, Error> {
    if path.is_empty() || path.len() > MAX_PATH || path.contains('\0') {
        return Err(invalid(format!("a path has 1 to {MAX_PATH} bytes, and no NUL")));
    }
    let path = Path::new(path);
    let leaves = |part| matches!(part, Component::ParentDir | Component::RootDir | Component::Prefix(_));
    if path.components().any(leaves) {
        return Err(Error::Denied("the path leaves its directory".to_owned()));
    }
    Ok(path)
}

fn read(dir: &Dir, path: &Path, offset: u64, length: u64, limit: usize) -> Result<Vec<u8>, Error> {
    let wanted = usize::try_from(length).unwrap_or(usize::MAX);
    if wanted > limit {
        return Err(too_large(wanted, limit));
    }
    let mut options = OpenOptions::new();
    options.read(true);
    // A pipe that somebody put there would hold the call until another end is opened.
    sys::never_waits(&mut options);
    let mut file = dir.open_with(path, &options).map_err(|error| error_of(&error))?;
    if !file.metadata().map_err(|error| error_of(&error))?.is_file() {
        return Err(invalid("that is no regular file"));
    }
    file.seek(SeekFrom::Start(offset)).map_err(|error| error_of(&error))?;
    let mut content = Vec::new();
    file.take(length).read_to_end(&mut content).map_err(|error| error_of(&error))?;
    Ok(content)
}

fn entries(dir: &Dir, path: &Path, after: &str) -> Result<EntryPage, Error> {
    let mut found = Vec::new();
    for (index, entry) in dir.read_dir(path).map_err(|error| error_of(&error))?.enumerate() {
        if index >= MAX_NAMES {
            return Err(Error::LimitExceeded(format!(
                "a directory of more than {MAX_NAMES} names is not listed"
            )));
        }
        let entry = entry.map_err(|error| error_of(&error))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.as_str() > after {
            let kind = entry.file_type().map_or(Kind::Other, kind_of);
            found.push(Entry { name, kind });
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let more = found.len() > PAGE;
    found.truncate(PAGE);
    let cursor = if more { found.last().map(|entry| entry.name.clone()) } else { None };
    Ok(EntryPage { entries: found, cursor })
}

/// Writes beside the target and renames over it. A link in its place is replaced, not followed.
fn replace(dir: &Dir, path: &Path, content: &[u8]) -> Result<(), Error> {
    let name = path.file_name().ok_or_else(|| invalid("that names no file"))?;
    if dir.symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return Err(invalid("that is a directory"));
    }
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}", toolgate_base::random_hex(6)));
    let beside = path.with_file_name(beside);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let written = dir
        .open_with(&beside, &options)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| dir.rename(&beside, dir, path));
    written.map_err(|error| {
        let _ = dir.remove_file(&beside);
        error_of(&error)
    })
}

fn kind_of(found: FileType) -> Kind {
    if found.is_file() {
        Kind::File
    } else if found.is_dir() {
        Kind::Directory
    } else if found.is_symlink() {
        Kind::Link
    } else {
        Kind::Other
    }
}

/// What the system said, without paths of the machine.
fn error_of(error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::NotFound("there is no such file".to_owned()),
        // `cap-std` answers like this where a path leaves its directory.
        ErrorKind::PermissionDenied => {
            Error::Denied("the path leaves its directory, or the system denies it".to_owned())
        }
        kind => Error::Unavailable(kind.to_string()),
    }
}

#[cfg(test)]
mod tests;
