//! Asking a plugin without letting it reach anything.
//!
//! Contract: less is open than by any grant. `kv` is a memory that begins empty, is kept from one document
//! to the next, and is gone at the end; `files` are the directories that the caller's grants name, for
//! reading only; `http` has labels and no host, `secrets` have labels and no value, so that every use
//! answers as denied or unavailable, and nothing is revealed. What settings would open besides is closed,
//! but for directories, which are for reading as well.
//!
//! Threat: a release that nobody has accepted yet, made to send or change something while it is only
//! looked at.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_grants::Grants;
use toolgate_signing::{Access, Release, VerifyError};

use super::{Outcome, Recorded, replay, trial};
use crate::error::{HostError, LoadError};
use crate::host::{Admission, HostOptions, PluginHost};
use crate::ports::{KvEntry, KvExpected, KvOutcome, KvSpace, KvStore, KvWrite, Ports};

/// Why a plugin could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// The statement breaks a rule of releases, so that no signature would make it one.
    #[error("this could not be released as it is: {0}")]
    Release(#[from] VerifyError),
    /// The plugin host does not start.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The plugin does not load, with these settings.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Loads a component as `release` describes it and asks it every document, in order. Whether anybody
/// signed the release is not asked here. Blocking.
///
/// # Errors
/// [`RehearsalError`]; settings that the plugin does not accept included.
pub fn rehearse(
    component: &[u8],
    release: &Release,
    admission: &Admission,
    documents: &[Recorded],
) -> Result<Vec<Outcome>, RehearsalError> {
    let (release, grants) = confined(release, &admission.grants);
    let trial = trial(&release, component)?;
    let ports = Ports { kv: Some(Arc::new(Memory::default())), ..Ports::default() };
    let host = PluginHost::connected(HostOptions::default(), ports)?;
    let admission = Admission { grants, ..admission.clone() };
    Ok(replay(&host, component, &trial, &admission, documents)?)
}

/// The release and the grants with everything closed that reaches outside.
fn confined(release: &Release, granted: &Grants) -> (Release, Grants) {
    let mut release = release.clone();
    release.settings_hosts.clear();
    for label in release.capabilities.files.values_mut() {
        label.access = Access::Read;
    }
    let mut grants = Grants::declared(&release);
    for grant in grants.http.values_mut() {
        grant.hosts = Some(Vec::new());
    }
    for (label, grant) in &mut grants.kv {
        grant.max_bytes = granted.kv.get(label).and_then(|granted| granted.max_bytes);
    }
    grants.files.retain(|label, grant| {
        let named = granted.files.get(label).map(|granted| granted.directories.clone());
        // Where nobody names directories, those in the settings count, if the release has a place for them.
        let in_settings = release.capabilities.files.get(label).is_some_and(|label| label.settings.is_some());
        let keep = named.is_some() || !in_settings;
        grant.directories = named.unwrap_or_default();
        keep
    });
    (release, grants)
}

/// A store for as long as one rehearsal takes; nothing expires in it.
#[derive(Default)]
struct Memory(Mutex<HashMap<KvSpace, Space>>);

#[derive(Default)]
struct Space {
    entries: BTreeMap<String, KvEntry>,
    written: u64,
}

impl Space {
    /// Bytes of keys and values, but for those of one key.
    fn used_beside(&self, key: &str) -> u64 {
        let others = self.entries.iter().filter(|(name, _)| *name != key);
        others.map(|(name, entry)| (name.len() + entry.value.len()) as u64).sum()
    }
}

impl Memory {
    fn with<T>(&self, space: &KvSpace, work: impl FnOnce(&mut Space) -> T) -> T {
        work(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(space.clone()).or_default())
    }
}

impl KvStore for Memory {
    fn get(&self, space: &KvSpace, key: &str) -> Result<Option<KvEntry>, String> {
        Ok(self.with(space, |space| space.entries.get(key).cloned()))
    }

    fn write(&self, space: &KvSpace, key: &str, write: &KvWrite<'_>) -> Result<KvOutcome, String> {
        Ok(self.with(space, |space| {
            let there = space.entries.get(key).cloned();
            let fits = match write.expected {
                KvExpected::Anything => true,
                KvExpected::Absent => there.is_none(),
                KvExpected::Version(version) => there.as_ref().is_some_and(|entry| entry.version == version),
            };
            if !fits {
                return KvOutcome::Conflict(there);
            }
            let used = space.used_beside(key);
            if used.saturating_add((key.len() + write.value.len()) as u64) > write.quota {
                return KvOutcome::Full(used);
            }
            space.written += 1;
            let version = space.written;
            space.entries.insert(key.to_owned(), KvEntry { value: write.value.to_vec(), version });
            KvOutcome::Written(version)
        }))
    }

    fn delete(&self, space: &KvSpace, key: &str) -> Result<bool, String> {
        Ok(self.with(space, |space| space.entries.remove(key).is_some()))
    }

    fn keys(&self, space: &KvSpace, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>, String> {
        Ok(self.with(space, |space| {
            let fitting = space.entries.keys().filter(|key| key.starts_with(prefix) && key.as_str() > after);
            fitting.take(limit).cloned().collect()
        }))
    }
}

#[cfg(test)]
mod tests;
