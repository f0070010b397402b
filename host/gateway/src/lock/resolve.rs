//! Names in `plugins.load` that an index has: which release each stands for, and its bytes.
//!
//! Contract: only the lock says which release a name stands for. [`resolve`] reads it when a configuration
//! is loaded, and what it said then counts until the process ends; a name that it does not have is refused.
//! [`relock`] is the one place that asks an index for a version, and only `lock update` calls it.
//! [`fetch_missing`] brings the bytes of locked releases to this machine, by their digests.
//!
//! Threat: an index that answers with another release than the lock names. The release is found by the
//! digest of its signed envelope and placed under it; signature, component and grants are then judged like
//! those of any other plugin.

use semver::{Version, VersionReq};
use toolgate_config::plugins_layer::PluginsLayer;
use toolgate_config::{Config, ConfigError, Index, Load, Pinned, PinnedBy};
use toolgate_plugins::{Power, powers, widening};
use toolgate_signing::VerifiedRelease;

use super::{LockedPlugin, Place};
use crate::assemble::{PluginFiles, Refusal};
use crate::bundle;
use crate::indexes::{self, IndexError, indexes_of};
use crate::install::{self, InstallError};

/// Why a name was not resolved, or its bytes were not had.
#[derive(Debug, thiserror::Error)]
pub enum RelockError {
    /// An index gave nothing.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// What it gave is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The bytes cannot be kept.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The store of plugins cannot be locked.
    #[error(transparent)]
    Layer(#[from] ConfigError),
}

/// A name that stands for another release than before.
#[derive(Debug)]
pub struct Moved {
    /// The plugin.
    pub plugin: String,
    /// The version that was locked, if one was.
    pub from: Option<Version>,
    /// The version that is locked now.
    pub to: Version,
    /// What it may do that the locked one may not; everything where none was locked.
    pub wider: Vec<Power>,
}

/// Lets each name that an index has stand for the release that the lock beside the configuration names. What
/// the lock does not say stays unresolved and is refused where it would be loaded.
pub fn resolve(config: &mut Config) {
    let names: Vec<String> =
        config.operator_plugins.load.iter().filter(|entry| is_of_index(entry)).map(named).collect();
    for name in names {
        if let Ok((pinned, _)) = locked(config, &name) {
            pin(config, &name, &pinned);
        }
    }
}

/// Why a name is not resolved.
pub(crate) fn unresolved(config: &Config, plugin: &str) -> Refusal {
    let reason = locked(config, plugin).err().unwrap_or_else(|| {
        "toolgate.lock was written while this process ran; what it says counts from the next start".to_owned()
    });
    Refusal::Unresolved { plugin: plugin.to_owned(), reason }
}

/// Fetches what the lock names and this machine does not have.
pub async fn fetch_missing(config: &Config) -> Result<(), RelockError> {
    for entry in config.plugins.load.iter().filter(|entry| is_locked(entry)) {
        let (Some(pinned), Some(dir)) = (&entry.pinned, &entry.dir) else { continue };
        if dir.exists() {
            continue;
        }
        let index = pinned.from.as_ref().and_then(|(index, _)| index_named(config, index));
        let index = index.ok_or_else(|| unresolved(config, &entry.plugin))?;
        let found = indexes::locked(config, index, &entry.plugin, pinned.release).await?;
        let _lock = PluginsLayer::of(&config.data_dir).lock()?;
        install::place(dir, &found)?;
    }
    Ok(())
}

/// Asks the indexes for the names that the lock does not have, or has at a version that the entry does not
/// want any more; with `upgrade` for all of them, and takes newer releases that are `plugins.min_age` old.
/// The configuration then stands for what was found; the lock is written by whoever called.
pub async fn relock(config: &mut Config, upgrade: bool) -> Result<Vec<Moved>, RelockError> {
    let entries: Vec<Load> =
        config.operator_plugins.load.iter().filter(|entry| is_of_index(entry)).cloned().collect();
    let mut moved = Vec::new();
    for entry in entries {
        let range = entry.version.clone().unwrap_or(VersionReq::STAR);
        let before = locked(config, &entry.plugin).ok();
        let fits = before
            .as_ref()
            .is_some_and(|(_, locked)| locked.version.parse().is_ok_and(|version| range.matches(&version)));
        if fits && !upgrade {
            continue;
        }
        let age = if fits { Some(config.plugins.min_age) } else { None };
        let chosen = match indexes::newest(config, &entry.plugin, &range, age).await {
            Err(error) if fits && matches!(error.code(), "young" | "no-version") => continue,
            chosen => chosen?,
        };
        let line = &chosen.release.line;
        // A version may be newer and its release older, as a branch that is kept up; only forward here.
        if fits && before.as_ref().is_some_and(|(_, locked)| line.sequence <= locked.sequence) {
            continue;
        }
        let from = (chosen.index.clone(), line.log);
        let found = chosen.fetch().await?.files;
        let release = found.verify(&config.plugins.trust)?;
        found.check_denied(config, &release, Some((&from.0, from.1)))?;
        let wider = wider(config, before.as_ref().map(|(pinned, _)| pinned), &release);
        let layer = PluginsLayer::of(&config.data_dir);
        {
            let _lock = layer.lock()?;
            install::place(&layer.files_of(&release.digest()), &found)?;
        }
        moved.push(Moved {
            plugin: entry.plugin.clone(),
            from: before.and_then(|(_, locked)| locked.version.parse().ok()),
            to: release.release().version.clone(),
            wider,
        });
        let pinned = Pinned {
            by: PinnedBy::Lock,
            kind: release.release().kind.as_str().to_owned(),
            component: release.component(),
            release: release.digest(),
            from: Some(from),
        };
        pin(config, &entry.plugin, &pinned);
    }
    Ok(moved)
}

/// What a release may do that the locked one may not. What cannot be compared is treated as new.
fn wider(config: &Config, before: Option<&Pinned>, release: &VerifiedRelease) -> Vec<Power> {
    let layer = PluginsLayer::of(&config.data_dir);
    let old = before.and_then(|pinned| {
        let files = PluginFiles::read(&layer.files_of(&pinned.release)).ok()?;
        files.verify(&config.plugins.trust).ok()
    });
    match old {
        Some(old) => widening(old.release(), release.release()),
        None => powers(release.release()).into_values().collect(),
    }
}

/// What the lock says of a name, if it may be loaded; else what is missing.
fn locked(config: &Config, plugin: &str) -> Result<(Pinned, LockedPlugin), String> {
    const UPDATE: &str = "`toolgate lock update` asks the indexes and writes it";
    let place = Place::beside(config.path.as_deref()).map_err(|error| error.to_string())?;
    let lock = place.read().map_err(|error| error.to_string())?;
    let Some(lock) = lock else { return Err(format!("there is no toolgate.lock; {UPDATE}")) };
    let entry = lock.plugins.into_iter().find(|entry| entry.name == plugin);
    let Some(entry) = entry else { return Err(format!("toolgate.lock does not have it; {UPDATE}")) };
    let from = entry.index.clone().zip(entry.log);
    let Some(from) = from else {
        return Err(format!("toolgate.lock has it from a directory or the bundle; {UPDATE}"));
    };
    if !indexes_of(config, plugin).any(|index| index.name == from.0) {
        return Err(format!(
            "toolgate.lock has it from the index {}, from which plugins.indexes and plugins.trust do not let it come; {UPDATE}",
            from.0
        ));
    }
    let pinned = Pinned {
        by: PinnedBy::Lock,
        kind: entry.kind.clone(),
        component: entry.component,
        release: entry.release,
        from: Some(from),
    };
    Ok((pinned, entry))
}

/// Both the merged plugins and those to which the layer is added again when it changes.
fn pin(config: &mut Config, plugin: &str, pinned: &Pinned) {
    let dir = PluginsLayer::of(&config.data_dir).files_of(&pinned.release);
    let all = config.plugins.load.iter_mut().chain(&mut config.operator_plugins.load);
    for entry in all.filter(|entry| entry.plugin == plugin && is_of_index(entry)) {
        entry.dir = Some(dir.clone());
        entry.pinned = Some(pinned.clone());
    }
}

/// Whether an entry of `toolgate.yaml` is a name that only an index can have.
fn is_of_index(entry: &Load) -> bool {
    is_locked(entry) || (entry.dir.is_none() && bundle::find(&entry.plugin).is_none())
}

fn is_locked(entry: &Load) -> bool {
    entry.pinned.as_ref().is_some_and(|pinned| pinned.by == PinnedBy::Lock)
}

fn named(entry: &Load) -> String {
    entry.plugin.clone()
}

fn index_named<'a>(config: &'a Config, name: &str) -> Option<&'a Index> {
    config.plugins.indexes.iter().find(|index| index.name == name)
}
