//! A copy of a registry, made of what was verified, in an order in which a reader never sees half of it.

use std::path::Path;

use toolgate_signing::MAX_ENVELOPE;

use super::store::{Files, Store};
use super::{PublishError, lock, verify::blob};
use crate::MAX_COMPONENT;
use crate::client::load::Loaded;
use crate::error::RegistryError;
use crate::layout::{self, Fingerprint};
use crate::line;
use crate::names;
use crate::source::Source;
use crate::tile;
use crate::time::Time;

/// What a mirror has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrored {
    /// The newest root.
    pub fingerprint: Fingerprint,
    /// The version of the snapshot.
    pub snapshot: u64,
    /// Releases.
    pub releases: usize,
    /// Blobs that were not there yet.
    pub copied: usize,
}

/// Copies a registry into a directory. Only what was verified is written; what is there is kept.
pub async fn mirror(
    source: &Source,
    root: Fingerprint,
    directory: &Path,
    now: Time,
) -> Result<Mirrored, PublishError> {
    let loaded = Loaded::from(source, root, now).await?;
    std::fs::create_dir_all(directory).map_err(|error| RegistryError::Io {
        path: directory.to_owned(),
        doing: "made",
        source: error,
    })?;
    let _lock = lock(directory)?;
    let store = Store::new(directory);
    let newest = loaded.roots.last_key_value().ok_or(RegistryError::NeverSeen)?;
    let fingerprint = Fingerprint { version: *newest.0, digest: *newest.1 };
    refuse_older(directory, &loaded).await?;
    let copy = Copy { source, store: &store };
    let (mut releases, mut copied) = (0, 0);
    for listed in loaded.lines.values().flat_map(|lines| line::listed(lines)) {
        let line = &listed.line;
        copied += copy.release(line).await?;
        releases += 1;
    }
    let mut files = Files::default();
    for (name, text) in &loaded.texts {
        files.put(layout::index(name), text.clone());
    }
    let snapshot = &loaded.current.snapshot.document;
    files.put(layout::blob(snapshot.names.digest), names::write(loaded.current.names.values()));
    files.extend(tile::changed(&loaded.current.hashes, 0));
    for path in [
        layout::CONFIG.to_owned(),
        layout::delegations(snapshot.delegations.version),
        layout::revocations(snapshot.revocations.version),
    ] {
        files.put(path.clone(), copy.read(&path).await?);
    }
    // The first roots, the snapshot under the newest, and then that one: the step that publishes.
    let version = loaded.root.version;
    for older in root.version..version {
        files.put(layout::root(older), copy.read(&layout::root(older)).await?);
    }
    let last_root = (layout::root(version), copy.read(&layout::root(version)).await?);
    let shown = (layout::snapshot(version), copy.read(&layout::snapshot(version)).await?);
    let last = if store.has(&last_root.0, &last_root.1) {
        shown
    } else {
        files.put(shown.0, shown.1);
        last_root
    };
    store.publish(&files, &last)?;
    store.write(layout::CHECKPOINT, snapshot.checkpoint.as_bytes())?;
    if let Some(fresh) = source.read(layout::FRESHNESS, MAX_ENVELOPE as u64).await? {
        store.write(layout::FRESHNESS, &fresh)?;
    }
    Ok(Mirrored { fingerprint, snapshot: snapshot.version, releases, copied })
}

/// A mirror never goes back.
async fn refuse_older(directory: &Path, new: &Loaded) -> Result<(), PublishError> {
    if !directory.join(layout::CONFIG).exists() {
        return Ok(());
    }
    let have = Loaded::of(directory).await?;
    let versions = (new.current.snapshot.document.version, have.current.snapshot.document.version);
    if new.root.version == have.root.version && versions.0 < versions.1 {
        return Err(RegistryError::Rollback {
            what: "snapshot version".to_owned(),
            known: versions.1,
            found: versions.0,
        }
        .into());
    }
    Ok(())
}

struct Copy<'a> {
    source: &'a Source,
    store: &'a Store,
}

impl Copy<'_> {
    async fn read(&self, path: &str) -> Result<Vec<u8>, RegistryError> {
        let read = self.source.read(path, MAX_ENVELOPE as u64).await?;
        read.ok_or_else(|| RegistryError::Absent(path.to_owned()))
    }

    /// Envelope, component and what the release names by digest; how many of them were new.
    async fn release(&self, line: &line::ReleaseLine) -> Result<usize, PublishError> {
        let envelope = blob(self.source, line.release, line.release_size.min(MAX_ENVELOPE as u64)).await?;
        let component = blob(self.source, line.component, line.component_size.min(MAX_COMPONENT)).await?;
        let mut blobs = vec![(line.component, component)];
        for digest in named(&envelope) {
            // What a release names by digest need not be published.
            if let Some(bytes) = self.source.read(&layout::blob(digest), MAX_COMPONENT).await?
                && toolgate_signing::Digest::of(&bytes) == digest
            {
                blobs.push((digest, bytes));
            }
        }
        blobs.push((line.release, envelope));
        let mut copied = 0;
        for (digest, bytes) in blobs {
            let path = layout::blob(digest);
            if !self.store.has(&path, &bytes) {
                self.store.write(&path, &bytes)?;
                copied += 1;
            }
        }
        Ok(copied)
    }
}

/// The digests of readme, settings schema, bill of materials and sources in an envelope whose digest the
/// log names; whoever installs it verifies its signatures.
fn named(envelope: &[u8]) -> Vec<toolgate_signing::Digest> {
    #[derive(serde::Deserialize)]
    struct Statement {
        predicate: toolgate_signing::Release,
    }
    let payload = crate::document::claimed_payload(envelope).unwrap_or_default();
    let Ok(statement) = serde_json::from_slice::<Statement>(&payload) else { return Vec::new() };
    let release = statement.predicate;
    [release.readme, release.settings_schema, release.sbom, release.sources].into_iter().flatten().collect()
}
