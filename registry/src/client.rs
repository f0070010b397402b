//! The client: what it takes from a registry was signed, is new, belongs together and continues what it
//! saw before.
//!
//! Contract. [`Client::open`] needs the fingerprint of a root, which the operator got from the
//! maintainers and not from the registry; there is no first use without one. [`Client::refresh`] walks the
//! roots, checks the snapshot and all that it names, and remembers. [`Client::resolve`] picks a release
//! and [`Client::fetch`] gives its bytes, both only while what was refreshed is fresh. What is revoked is
//! answered from memory at any time, because a registry that cannot be reached must not bring anything
//! back.
//!
//! Bounds: every file has a limit; at most 1024 roots in one refresh; 32 bytes are kept for each line of
//! the log.
//!
//! Threat: whoever serves the files, the network, and whoever stole the keys of one role but not those of
//! the root. [`RegistryError::code`] has a word for each lie.

mod history;
pub(crate) mod judge;
pub(crate) mod load;
pub(crate) mod refresh;
mod remembered;
mod resolve;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use semver::Version;
use toolgate_base::lock::FileLock;
use toolgate_base::{Clock, SystemClock};
use toolgate_signing::{Digest, VerifiedRelease};

use crate::error::RegistryError;
use crate::layout::Fingerprint;
use crate::line::{Listed, ReleaseLine};
use crate::names::NameEntry;
use crate::source::Source;
use crate::state::{self, Trusted};
use crate::time::Time;
pub use remembered::Remembered;

/// How far a version may jump between two visits.
pub(crate) const MAX_STEP: u64 = 1 << 20;
/// How far the clock may be behind the last visit, seconds: what time servers correct.
const CLOCK_SLACK: u64 = 600;
/// How long another process may hold the memory.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// A registry as this machine knows it. Cheap to share behind an `Arc`.
pub struct Client {
    directory: PathBuf,
    source: Source,
    root: Fingerprint,
    clock: Arc<dyn Clock>,
    /// Replaced whole; nobody holds the lock for longer than a copy of the pointer.
    trusted: RwLock<Option<Arc<Trusted>>>,
    /// One change at a time in this process; the file lock is for the others.
    changing: tokio::sync::Mutex<()>,
}

/// What a refresh found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refreshed {
    /// The version of the root.
    pub root: u64,
    /// The version of the snapshot.
    pub snapshot: u64,
    /// Lines of the log.
    pub log: u64,
    /// Whether it differs from what was seen before.
    pub changed: bool,
    /// Until when it can be believed.
    pub fresh_until: Time,
}

/// How fresh what is known is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freshness {
    /// When the registry was last seen good.
    pub seen: Time,
    /// Until when what was seen can be believed: the earliest expiry of its documents.
    pub until: Time,
    /// Whether that is still to come.
    pub fresh: bool,
    /// What expires first.
    pub document: &'static str,
}

impl Freshness {
    fn new(seen: Time, until: Time, document: &'static str, known: bool, now: Time) -> Self {
        Self { seen, until, fresh: known && now < until, document }
    }
}

/// A release that was chosen: its envelope is verified, its component not yet fetched.
#[derive(Debug, Clone)]
pub struct ResolvedRelease {
    /// Its line in the index, with its place in the log.
    pub line: ReleaseLine,
    /// Why it was yanked, if it is; [`Client::resolve`] never chooses such a one.
    pub yanked: Option<String>,
    /// The envelope of the release.
    pub envelope: Vec<u8>,
    /// The release, signed by those to whom the registry delegates it.
    pub release: VerifiedRelease,
    /// Newer releases that fit and were passed over, with the reason.
    pub skipped: Vec<Skipped>,
}

/// A release that was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its version.
    pub version: Version,
    /// The code of the reason, as [`RegistryError::code`].
    pub code: &'static str,
    /// The reason.
    pub reason: String,
}

/// The bytes of a plugin: checked against their digests, not compiled, not judged by the operator's rules.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The component.
    pub component: Vec<u8>,
    /// The envelope of its release.
    pub release: Vec<u8>,
    /// The schema of its settings with the digest that the release names, where it came along.
    pub schema: Option<Vec<u8>>,
}

/// Why something must not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// Why, in the words of the registry.
    pub reason: String,
    /// When it was revoked.
    pub at: Time,
    /// Whether a key was revoked, and not this release.
    pub by_key: bool,
}

impl Client {
    /// The client of a registry with its memory in `directory`, by the clock of this machine.
    ///
    /// Nothing is fetched. Without memory the client knows nothing until the first [`Client::refresh`].
    ///
    /// # Errors
    /// Memory that cannot be read, is of a newer format, or is of another root than `root`.
    pub fn open(directory: &Path, source: Source, root: Fingerprint) -> Result<Self, RegistryError> {
        Self::open_with(directory, source, root, Arc::new(SystemClock))
    }

    /// As [`Client::open`], by another clock.
    pub fn open_with(
        directory: &Path,
        source: Source,
        root: Fingerprint,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RegistryError> {
        let trusted = load(directory, root)?;
        Ok(Self {
            directory: directory.to_owned(),
            source,
            root,
            clock,
            trusted: RwLock::new(trusted.map(Arc::new)),
            changing: tokio::sync::Mutex::new(()),
        })
    }

    /// Reads what is new, checks it, and remembers it. On any error what was known stays known.
    pub async fn refresh(&self) -> Result<Refreshed, RegistryError> {
        let _changing = self.changing.lock().await;
        let _lock = self.lock().await?;
        let now = Time::from_millis(self.clock.now_ms());
        let before = load(&self.directory, self.root)?;
        if let Some(seen) = before.as_ref().map(|trusted| trusted.seen_good)
            && now.seconds().saturating_add(CLOCK_SLACK) < seen.seconds()
        {
            return Err(RegistryError::Clock { now, seen });
        }
        let known = before.as_ref().and_then(|trusted| Some(trusted.current.as_ref()?.snapshot.digest));
        let mut trusted = match before {
            Some(trusted) => trusted,
            None => refresh::first(&self.source, self.root).await?,
        };
        // A root that was verified is kept, whatever happens next: the keys that it dropped are gone.
        let roots = refresh::roots(&self.source, &mut trusted).await;
        self.keep(trusted.clone())?;
        roots?;
        let current = refresh::current(&self.source, &trusted, now).await?;
        trusted.take(current, now);
        let refreshed = Refreshed {
            root: trusted.root.version,
            snapshot: trusted.floors.snapshot,
            log: trusted.current.as_ref().map_or(0, |current| current.snapshot.document.log.size),
            changed: known != trusted.current.as_ref().map(|current| current.snapshot.digest),
            fresh_until: trusted.until().0,
        };
        self.keep(trusted)?;
        Ok(refreshed)
    }

    /// Every name in the registry, sorted, as it was last refreshed.
    pub fn names(&self) -> Result<Vec<NameEntry>, RegistryError> {
        let trusted = self.known()?;
        let current = trusted.current.as_ref().ok_or(RegistryError::NeverSeen)?;
        Ok(current.names.values().cloned().collect())
    }

    /// Every release of a plugin in the order of publication, yanked ones included.
    pub async fn releases(&self, name: &str) -> Result<Vec<Listed>, RegistryError> {
        self.listed(name).await
    }

    /// What is known of revocations. Answered from memory, fresh or not; nothing where the registry was
    /// never seen.
    pub fn remembered(&self) -> Option<Remembered> {
        Remembered::of(self.known().ok()?.as_ref())
    }

    /// As [`Remembered::revocation`], from memory.
    pub fn revocation(&self, release: &VerifiedRelease, log: Option<u64>) -> Option<Revocation> {
        self.remembered()?.revocation(release, log)
    }

    /// How fresh what is known is.
    pub fn freshness(&self) -> Result<Freshness, RegistryError> {
        let trusted = self.known()?;
        let (until, document) = trusted.until();
        let now = Time::from_millis(self.clock.now_ms());
        Ok(Freshness::new(trusted.seen_good, until, document, trusted.current.is_some(), now))
    }

    /// Version and fingerprint of the newest root that is trusted here.
    pub fn root(&self) -> Result<Fingerprint, RegistryError> {
        let trusted = self.known()?;
        let newest = trusted
            .anchors
            .last_key_value()
            .map(|(version, digest)| Fingerprint { version: *version, digest: *digest });
        newest.ok_or(RegistryError::NeverSeen)
    }

    /// Where the files come from.
    pub const fn source(&self) -> &Source {
        &self.source
    }

    fn known(&self) -> Result<Arc<Trusted>, RegistryError> {
        self.trusted.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(RegistryError::NeverSeen)
    }

    fn keep(&self, trusted: Trusted) -> Result<(), RegistryError> {
        trusted.save(&self.directory)?;
        *self.trusted.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(trusted));
        Ok(())
    }

    /// The memory is this process's until the lock is dropped.
    async fn lock(&self) -> Result<FileLock, RegistryError> {
        let directory = self.directory.clone();
        let locked = tokio::task::spawn_blocking(move || {
            toolgate_base::files::create_private_dir(&directory).map_err(|source| RegistryError::Io {
                path: directory.clone(),
                doing: "made",
                source,
            })?;
            Ok(FileLock::exclusive(&directory.join(state::LOCK), LOCK_WAIT)?)
        });
        locked.await.unwrap_or_else(|error| {
            Err(RegistryError::State { path: self.directory.clone(), what: error.to_string() })
        })
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Client")
            .field("source", &self.source)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

/// The memory, if it is of the root that the operator names.
fn load(directory: &Path, root: Fingerprint) -> Result<Option<Trusted>, RegistryError> {
    let Some(trusted) = Trusted::load(directory)? else { return Ok(None) };
    check_root(directory, &trusted.anchors, root)?;
    Ok(Some(trusted))
}

/// That the root which the operator names was trusted here, or follows from one that was.
fn check_root(
    directory: &Path,
    anchors: &BTreeMap<u64, Digest>,
    root: Fingerprint,
) -> Result<(), RegistryError> {
    match anchors.get(&root.version) {
        Some(found) if *found == root.digest => Ok(()),
        Some(found) => Err(RegistryError::Fingerprint { expected: root, found: *found }),
        None => Err(RegistryError::State {
            path: directory.to_owned(),
            what: format!(
                "root {} was never seen here; the fingerprint that is configured is of another registry, or of a root that is newer than the last refresh or older than the first",
                root.version
            ),
        }),
    }
}

#[cfg(test)]
pub(crate) mod tests;
