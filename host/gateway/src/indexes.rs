//! The registries of plugins that the operator names: from a reference to bytes, and what must not run.
//!
//! Contract: a name is looked up in the index that the rule of `plugins.trust` for it names, else in each of
//! `plugins.indexes` in order; the first that has it decides, and one that cannot be read ends the search,
//! because whoever blocks it must not choose another for us. What was seen of an index stands below the data
//! directory; revocations are answered from there, without any network.
//!
//! An index takes away and never gives: who may sign is still said by `plugins.trust`. It is heard about
//! every plugin that no rule ties to another index, and about those of the bundle not at all unless they
//! were installed from it, so that no third party ends all gateways.
//!
//! Threat: whoever serves an index; see `toolgate_registry`. Memory that cannot be read refuses the plugins
//! that the index is heard about: what it revoked is not known then.

mod reach;
mod standing;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use semver::VersionReq;
use toolgate_base::{Clock as _, SystemClock};
use toolgate_config::plugins_layer::STORE;
use toolgate_config::{Config, Index};
use toolgate_registry::{
    Client, ErrorClass, Fetched, Fingerprint, Listed, Reference, Refreshed, RegistryError, Remembered,
    ResolvedRelease, Source, Time,
};
use toolgate_signing::{Digest, VerifiedRelease};

use crate::assemble::{PluginFiles, Refusal, Revoked, rule_for};
use crate::bundle;

pub use reach::reach;
pub use standing::{Standing, standings};
pub use watch::refused_row;

/// Where what was seen of indexes is, below the store of plugins.
const DIRECTORY: &str = "indexes";

/// Why an index gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// What one index says, or does not say.
    #[error("index {index}: {source}")]
    Index {
        /// Its name in `plugins.indexes`.
        index: String,
        /// What it was.
        source: Box<RegistryError>,
    },
    /// A reference that stands for nothing.
    #[error(transparent)]
    Reference(Box<RegistryError>),
    /// No index has the plugin.
    #[error("no index has {plugin}; asked: {}", .asked.join(", "))]
    Absent {
        /// The plugin.
        plugin: String,
        /// The indexes that were asked, in order.
        asked: Vec<String>,
    },
    /// An entry of `plugins.hosts` that cannot be used.
    #[error("plugins.hosts, {host}: {reason}")]
    Host {
        /// The host.
        host: String,
        /// What is wrong.
        reason: String,
    },
    /// No index is configured at all.
    #[error(
        "{0} is a name, and no index is configured; add one under plugins.indexes in toolgate.yaml, with the fingerprint of its root"
    )]
    NoIndex(String),
}

impl IndexError {
    fn of(index: &str, source: RegistryError) -> Self {
        Self::Index { index: index.to_owned(), source: Box::new(source) }
    }

    /// What kind of error this is, for exit codes.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Index { source, .. } | Self::Reference(source) => source.class(),
            Self::Absent { .. } => ErrorClass::Failed,
            Self::NoIndex(_) | Self::Host { .. } => ErrorClass::Usage,
        }
    }

    /// A stable word for the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Index { source, .. } | Self::Reference(source) => source.code(),
            Self::Absent { .. } => "absent",
            Self::NoIndex(_) => "no-index",
            Self::Host { .. } => "host",
        }
    }

    /// The index that it is about.
    pub fn index(&self) -> Option<&str> {
        match self {
            Self::Index { index, .. } => Some(index),
            _ => None,
        }
    }
}

/// Where the bytes of a plugin came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// As it was given: a directory (absolute), a URL, `NAME@RANGE` or `oci://…`.
    pub source: String,
    /// The index that resolved it.
    pub index: Option<String>,
    /// Its place in the log of that index.
    pub log: Option<u64>,
}

impl Origin {
    /// The index, with the place in its log.
    pub fn place(&self) -> Option<(&str, u64)> {
        self.index.as_deref().zip(self.log)
    }
}

/// The bytes of a plugin, not judged by the operator's rules yet.
#[derive(Debug, Clone)]
pub struct Found {
    /// The two files.
    pub files: PluginFiles,
    /// Where they came from.
    pub origin: Origin,
}

/// A release that an index resolved; its component is not fetched yet.
pub struct Chosen {
    client: Client,
    /// The index.
    pub index: String,
    source: String,
    /// The release.
    pub release: ResolvedRelease,
}

impl Chosen {
    /// Its bytes.
    pub async fn fetch(&self) -> Result<Found, IndexError> {
        let fetched =
            self.client.fetch(&self.release).await.map_err(|error| IndexError::of(&self.index, error))?;
        let origin = Origin {
            source: self.source.clone(),
            index: Some(self.index.clone()),
            log: Some(self.release.line.log),
        };
        Ok(Found { files: files_of(&self.release.line.name, fetched), origin })
    }

    /// How long ago the release came into its index, by the word of the index.
    pub fn age(&self) -> Duration {
        let now = Time::from_millis(SystemClock.now_ms()).seconds();
        Duration::from_secs(now.saturating_sub(self.release.line.published.seconds()))
    }
}

/// The bytes behind a reference; a relative directory begins at `base`.
pub async fn find(config: &Config, reference: &Reference, base: &Path) -> Result<Found, IndexError> {
    if let Reference::Registry { name, range } = reference {
        return newest(config, name, range, None).await?.fetch().await;
    }
    let fetched = reference
        .fetch(base, &reach(config)?)
        .await
        .map_err(|error| IndexError::Reference(Box::new(error)))?;
    let source = match reference {
        Reference::Directory(path) => {
            let path = base.join(path);
            path.canonicalize().unwrap_or(path).display().to_string()
        }
        other => other.to_string(),
    };
    let mut files = files_of(&source, fetched);
    if let Reference::Directory(path) = reference {
        // One that is not the signed one is refused when the plugin is compiled.
        files.schema = crate::assemble::schema_in(&base.join(path));
    }
    Ok(Found { files, origin: Origin { source, index: None, log: None } })
}

/// The newest release of a plugin in a range, of those that came into the index at least `age` ago.
pub async fn newest(
    config: &Config,
    name: &str,
    range: &VersionReq,
    age: Option<Duration>,
) -> Result<Chosen, IndexError> {
    let now = Time::from_millis(SystemClock.now_ms()).seconds();
    let by = age.map(|age| Time::from_seconds(now.saturating_sub(age.as_secs())));
    let source = Reference::Registry { name: name.to_owned(), range: range.clone() }.to_string();
    let mut asked = Vec::new();
    for index in indexes_of(config, name) {
        let client = open(config, index)?;
        let failed = |error| IndexError::of(&index.name, error);
        client.refresh().await.map_err(failed)?;
        match client.resolve_published(name, range, by).await {
            Ok(release) => return Ok(Chosen { client, index: index.name.clone(), source, release }),
            Err(RegistryError::Absent(_)) => asked.push(index.name.clone()),
            Err(error) => return Err(failed(error)),
        }
    }
    if asked.is_empty() {
        return Err(IndexError::NoIndex(name.to_owned()));
    }
    Err(IndexError::Absent { plugin: name.to_owned(), asked })
}

/// The bytes of the release that a lock names, from the index that it names. What the index revoked is
/// refused; yanked or stale it is given all the same, because it was reviewed.
pub(crate) async fn locked(
    config: &Config,
    index: &Index,
    name: &str,
    release: Digest,
) -> Result<PluginFiles, IndexError> {
    let failed = |error| IndexError::of(&index.name, error);
    let client = open(config, index)?;
    // What was seen before is enough: the digest says what is meant.
    if let Err(error) = client.refresh().await
        && (client.freshness().is_err() || error.class() == ErrorClass::Integrity)
    {
        return Err(failed(error));
    }
    let resolved = client.locked(name, release).await.map_err(failed)?;
    let fetched = client.fetch(&resolved).await.map_err(failed)?;
    Ok(files_of(name, fetched))
}

/// A plugin that a search found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The index.
    pub index: String,
    /// The plugin.
    pub name: String,
    /// Its releases in the order of publication.
    pub releases: Vec<Listed>,
}

/// The plugins of all indexes whose name holds every one of these words, at most `most` of each index; and
/// the indexes that could not be asked.
pub async fn search(config: &Config, words: &[String], most: usize) -> (Vec<Hit>, Vec<IndexError>) {
    let (mut hits, mut unasked) = (Vec::new(), Vec::new());
    for index in &config.plugins.indexes {
        match search_one(config, index, words, most).await {
            Ok(found) => hits.extend(found),
            Err(error) => unasked.push(error),
        }
    }
    (hits, unasked)
}

async fn search_one(
    config: &Config,
    index: &Index,
    words: &[String],
    most: usize,
) -> Result<Vec<Hit>, IndexError> {
    let failed = |error| IndexError::of(&index.name, error);
    let client = open(config, index)?;
    client.refresh().await.map_err(failed)?;
    let names = client.names().map_err(failed)?.into_iter().map(|entry| entry.name);
    let fitting = names.filter(|name| words.iter().all(|word| name.contains(&word.to_lowercase())));
    let mut hits = Vec::new();
    for name in fitting.take(most) {
        let releases = client.releases(&name).await.map_err(failed)?;
        hits.push(Hit { index: index.name.clone(), name, releases });
    }
    Ok(hits)
}

/// Asks every index what is new, so that what was revoked is known; each with what came of it.
pub async fn refresh(config: &Config) -> Vec<(String, Result<Refreshed, IndexError>)> {
    let mut all = Vec::new();
    for index in &config.plugins.indexes {
        let refreshed = match open(config, index) {
            Ok(client) => client.refresh().await.map_err(|error| IndexError::of(&index.name, error)),
            Err(error) => Err(error),
        };
        all.push((index.name.clone(), refreshed));
    }
    all
}

/// That no index which is heard about a release revoked it. `from` is the index it was installed from, with
/// its place in the log there.
pub(crate) fn check_revoked(
    config: &Config,
    release: &VerifiedRelease,
    from: Option<(&str, u64)>,
) -> Result<(), Refusal> {
    let stated = release.release();
    for index in &config.plugins.indexes {
        let log = from.filter(|(name, _)| *name == index.name).map(|(_, log)| log);
        if log.is_none() && !is_heard(config, &index.name, &stated.name) {
            continue;
        }
        let known = Remembered::load(&directory(config, index), fingerprint(index)).map_err(|error| {
            Refusal::RevocationsUnreadable {
                plugin: stated.name.clone(),
                index: index.name.clone(),
                reason: error.to_string(),
            }
        })?;
        if let Some(revoked) = known.and_then(|known| known.revocation(release, log)) {
            return Err(Refusal::Revoked(Box::new(Revoked {
                plugin: stated.name.clone(),
                version: stated.version.to_string(),
                release: release.digest(),
                index: index.name.clone(),
                reason: revoked.reason,
                at: revoked.at.to_string(),
                by_key: revoked.by_key,
            })));
        }
    }
    Ok(())
}

/// The indexes in which a plugin is looked up, in order.
pub(crate) fn indexes_of<'a>(config: &'a Config, name: &'a str) -> impl Iterator<Item = &'a Index> {
    let only = rule_for(&config.plugins.trust, name).and_then(|rule| rule.index.as_deref());
    config.plugins.indexes.iter().filter(move |index| only.is_none_or(|only| only == index.name))
}

fn is_heard(config: &Config, index: &str, plugin: &str) -> bool {
    !plugin.starts_with(bundle::PREFIX) && indexes_of(config, plugin).any(|heard| heard.name == index)
}

pub(crate) fn open(config: &Config, index: &Index) -> Result<Client, IndexError> {
    let failed = |error| IndexError::of(&index.name, error);
    // The path of a directory is absolute in a configuration.
    let source = Source::parse(&index.place, Path::new(""), &reach(config)?).map_err(failed)?;
    Client::open(&directory(config, index), source, fingerprint(index)).map_err(failed)
}

fn directory(config: &Config, index: &Index) -> PathBuf {
    config.data_dir.join(STORE).join(DIRECTORY).join(&index.name)
}

const fn fingerprint(index: &Index) -> Fingerprint {
    Fingerprint { version: index.root_version, digest: index.root }
}

fn files_of(plugin: &str, fetched: Fetched) -> PluginFiles {
    PluginFiles {
        plugin: plugin.to_owned(),
        component: fetched.component.into(),
        release: fetched.release.into(),
        schema: fetched.schema.map(Into::into),
    }
}
