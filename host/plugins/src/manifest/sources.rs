//! The digest of the sources of a component, the same on every machine that has the same files.
//!
//! Form: sha256 over a domain line, then for each file in the order of its name the length of the
//! name, the name, the length (64) and the hex digits of the sha256 of its content; lengths are 8 bytes,
//! big-endian. Names
//! are relative to the plugin's directory with `/` between their parts. Directories named `target`,
//! `node_modules` or beginning with `.` are left out: they are built or belong to tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolgate_signing::Digest;

use super::{MAX_FILE, ManifestError, bounded};

/// Most files of sources.
pub const SOURCES_LIMIT: usize = 10_000;

const DOMAIN: &[u8] = b"toolgate plugin sources v1\n";

pub(super) fn digest(base: &Path, roots: &[PathBuf]) -> Result<Digest, ManifestError> {
    let mut digests = BTreeMap::new();
    for (name, path) in listed(base, roots)? {
        digests.insert(name, Digest::of(&bounded(&path, MAX_FILE)?).hex());
    }
    Ok(digest_of(&digests))
}

/// Copies the files below `to` and gives the digest of exactly the bytes that were written: what changes
/// meanwhile is in both or in neither.
pub(super) fn copy(base: &Path, roots: &[PathBuf], to: &Path) -> Result<Digest, ManifestError> {
    let mut digests = BTreeMap::new();
    for (name, path) in listed(base, roots)? {
        let bytes = bounded(&path, MAX_FILE)?;
        let target = to.join(&name);
        let failed = |source| ManifestError::Io { path: target.clone(), source };
        std::fs::create_dir_all(target.parent().unwrap_or(to)).map_err(failed)?;
        std::fs::write(&target, &bytes).map_err(failed)?;
        digests.insert(name, Digest::of(&bytes).hex());
    }
    Ok(digest_of(&digests))
}

fn digest_of(digests: &BTreeMap<String, String>) -> Digest {
    let mut bytes = DOMAIN.to_vec();
    for (name, content) in digests {
        for part in [name.as_bytes(), content.as_bytes()] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
    }
    Digest::of(&bytes)
}

/// The files by their names. The digest of a content stands for it, so that sources of any size need no
/// more memory than their list.
fn listed(base: &Path, roots: &[PathBuf]) -> Result<BTreeMap<String, PathBuf>, ManifestError> {
    let mut files = BTreeMap::new();
    for root in roots {
        collect(base, root, &mut files)?;
    }
    Ok(files)
}

fn collect(base: &Path, path: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<(), ManifestError> {
    let failed = |source| ManifestError::Io { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(failed)?.is_dir() {
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?.path();
            let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !(name.starts_with('.') || name == "target" || name == "node_modules") {
                collect(base, &entry, files)?;
            }
        }
        return Ok(());
    }
    if files.len() >= SOURCES_LIMIT {
        return Err(ManifestError::TooManySources);
    }
    let name = path.strip_prefix(base).unwrap_or(path).to_string_lossy().replace('\\', "/");
    files.insert(name, path.to_owned());
    Ok(())
}
