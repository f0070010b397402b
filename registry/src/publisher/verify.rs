//! Checking a whole registry, wherever it is: every line, every release, every component.

use toolgate_signing::{Digest, MAX_ENVELOPE};

use super::PublishError;
use crate::MAX_COMPONENT;
use crate::client::judge;
use crate::client::load::Loaded;
use crate::error::RegistryError;
use crate::layout::{self, Fingerprint};
use crate::line::{self, ReleaseLine};
use crate::source::Source;
use crate::time::Time;

/// What was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The newest root.
    pub fingerprint: Fingerprint,
    /// The version of the snapshot.
    pub snapshot: u64,
    /// Plugins and releases.
    pub plugins: usize,
    /// Releases whose envelope and component were read.
    pub releases: usize,
    /// Lines of the log.
    pub log: u64,
}

/// Checks everything in a registry as a client would that trusts a root, and every blob besides.
pub async fn verify(source: &Source, root: Fingerprint, now: Time) -> Result<Verified, PublishError> {
    let loaded = Loaded::from(source, root, now).await?;
    let mut releases = 0;
    for lines in loaded.lines.values() {
        for listed in line::listed(lines) {
            check(source, &loaded, &listed.line).await?;
            releases += 1;
        }
    }
    let newest = loaded.roots.last_key_value().ok_or(RegistryError::NeverSeen)?;
    Ok(Verified {
        fingerprint: Fingerprint { version: *newest.0, digest: *newest.1 },
        snapshot: loaded.current.snapshot.document.version,
        plugins: loaded.lines.len(),
        releases,
        log: loaded.current.hashes.len() as u64,
    })
}

/// A release that is revoked is still what it was; whatever else is wrong with one is an error.
async fn check(source: &Source, loaded: &Loaded, line: &ReleaseLine) -> Result<(), RegistryError> {
    let envelope = blob(source, line.release, line.release_size.min(MAX_ENVELOPE as u64)).await?;
    match judge::signed(&loaded.current, line, &envelope) {
        Ok(_) | Err(RegistryError::KeyRevoked { .. }) => {}
        Err(error) => return Err(error),
    }
    blob(source, line.component, line.component_size.min(MAX_COMPONENT)).await.map(|_| ())
}

/// A blob, compared with its name.
pub(super) async fn blob(source: &Source, digest: Digest, limit: u64) -> Result<Vec<u8>, RegistryError> {
    let path = layout::blob(digest);
    let bytes = source.read(&path, limit).await?.ok_or_else(|| RegistryError::Absent(path.clone()))?;
    let found = Digest::of(&bytes);
    if found != digest {
        return Err(RegistryError::Digest { what: path, expected: digest, found });
    }
    Ok(bytes)
}
