//! What this machine has seen of a registry: the memory that makes rollback, forks and rewritten lines
//! visible.
//!
//! `state.json` (0600, replaced in one step) holds the documents that were verified, the lowest versions
//! that are still accepted, what was seen of each plugin and when all was well; beside it stand the hashes
//! of the log and the list of names, both checked against the state when they are read.
//!
//! Threat: somebody removes or damages the memory, so that old lies work again. A file that cannot be read,
//! or one that is missing beside the others, is an error and never a first use.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toolgate_base::files::{create_private_dir, write_private};
use toolgate_signing::Digest;

use crate::document::{self, Delegations, Document, Revocations, Root, Signed, Snapshot};
use crate::error::RegistryError;
use crate::files;
use crate::merkle::{self, Hash, MAX_LEAVES};
use crate::names::{self, Names};
use crate::time::Time;

/// The format of `state.json`.
pub(crate) const FORMAT: u64 = 1;
/// Largest `state.json`: the documents and a line for each plugin that was looked at.
const MAX_STATE: u64 = 64 * 1024 * 1024;
const STATE: &str = "state.json";
const HASHES: &str = "log.hashes";
const NAMES: &str = "names.ndjson";
/// Held while the memory changes.
pub(crate) const LOCK: &str = "lock";

/// Everything that was verified and remembered.
#[derive(Debug, Clone)]
pub(crate) struct Trusted {
    /// The digest of every root from the first one trusted on.
    pub(crate) anchors: BTreeMap<u64, Digest>,
    /// The newest root.
    pub(crate) root: Root,
    /// The lowest versions that are accepted.
    pub(crate) floors: Floors,
    /// The last state of the registry that was wholly verified.
    pub(crate) current: Option<Current>,
    /// What was seen of each plugin.
    pub(crate) seen: BTreeMap<String, Seen>,
    /// When the registry was last seen good.
    pub(crate) seen_good: Time,
}

/// The versions that were seen; 0 where the keys of the role were rotated since (TUF 5.3.11).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Floors {
    pub(crate) snapshot: u64,
    pub(crate) delegations: u64,
    pub(crate) revocations: u64,
}

/// One state of the registry.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    pub(crate) snapshot: Signed<Snapshot>,
    pub(crate) delegations: Signed<Delegations>,
    pub(crate) revocations: Signed<Revocations>,
    /// Until when the snapshot may be believed, renewals included.
    pub(crate) fresh_until: Time,
    pub(crate) names: Names,
    /// The epoch of the root when these hashes were read.
    pub(crate) epoch: u64,
    /// The hash of each line of the log.
    pub(crate) hashes: Vec<Hash>,
}

/// The lines of a plugin that were seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seen {
    pub(crate) lines: u64,
    pub(crate) size: u64,
    pub(crate) digest: Digest,
    pub(crate) sequence: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: u64,
    anchors: BTreeMap<u64, Digest>,
    root: String,
    floors: Floors,
    current: Option<WrittenCurrent>,
    seen: BTreeMap<String, Seen>,
    seen_good: Time,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCurrent {
    snapshot: String,
    delegations: String,
    revocations: String,
    fresh_until: Time,
    epoch: u64,
}

/// What the state of a newer format shares with this one.
#[derive(Deserialize)]
struct Format {
    format: u64,
}

impl Trusted {
    /// What was seen before; nothing on a first use, which is a directory with nothing in it.
    pub(crate) fn load(directory: &Path) -> Result<Option<Self>, RegistryError> {
        let path = directory.join(STATE);
        let damaged =
            |path: &Path, what: &str| RegistryError::State { path: path.to_owned(), what: what.to_owned() };
        let Some(written) = Written::load(directory)? else { return Ok(None) };
        let root =
            document::read(written.root.as_bytes()).map_err(|error| damaged(&path, &error.to_string()))?;
        let current = match written.current {
            Some(current) => Some(current.load(directory)?),
            None => None,
        };
        Ok(Some(Self {
            anchors: written.anchors,
            root,
            floors: written.floors,
            current,
            seen: written.seen,
            seen_good: written.seen_good,
        }))
    }

    /// Stores everything. What stands beside the state goes first: more hashes than the state knows of
    /// are harmless, fewer would be damage.
    pub(crate) fn save(&self, directory: &Path) -> Result<(), RegistryError> {
        let failed =
            |path: &Path, source| RegistryError::Io { path: path.to_owned(), doing: "written", source };
        create_private_dir(directory).map_err(|source| failed(directory, source))?;
        let mut files = Vec::new();
        if let Some(current) = &self.current {
            files.push((
                names_file(current.snapshot.document.names.digest),
                names::write(current.names.values()).into_bytes(),
            ));
            files.push((hashes_file(current.epoch), current.hashes.concat()));
        }
        let written = Written {
            format: FORMAT,
            anchors: self.anchors.clone(),
            root: self.root.to_payload(),
            floors: self.floors,
            current: self.current.as_ref().map(|current| WrittenCurrent {
                snapshot: current.snapshot.document.to_payload(),
                delegations: current.delegations.document.to_payload(),
                revocations: current.revocations.document.to_payload(),
                fresh_until: current.fresh_until,
                epoch: current.epoch,
            }),
            seen: self.seen.clone(),
            seen_good: self.seen_good,
        };
        let kept: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
        files.push((STATE.to_owned(), document::canonical(&written).into_bytes()));
        for (name, bytes) in files {
            let path = directory.join(name);
            write_private(&path, &bytes).map_err(|source| failed(&path, source))?;
        }
        forget_others(directory, &kept);
        Ok(())
    }
}

/// The part of the memory that says what must not run.
pub(crate) struct Seldom {
    pub(crate) anchors: BTreeMap<u64, Digest>,
    pub(crate) current: Option<(Revocations, Delegations)>,
    /// As [`Trusted::until`].
    pub(crate) until: (Time, &'static str),
    pub(crate) seen_good: Time,
}

impl Seldom {
    /// Reads it without the log and the list of names; nothing where the registry was never seen.
    pub(crate) fn load(directory: &Path) -> Result<Option<Self>, RegistryError> {
        let path = directory.join(STATE);
        let Some(written) = Written::load(directory)? else { return Ok(None) };
        let damaged =
            |error: RegistryError| RegistryError::State { path: path.clone(), what: error.to_string() };
        let root: Root = document::read(written.root.as_bytes()).map_err(damaged)?;
        let mut until = (root.expires, Root::WHAT);
        let mut current = None;
        if let Some(known) = &written.current {
            let revocations: Revocations = document::read(known.revocations.as_bytes()).map_err(damaged)?;
            let delegations: Delegations = document::read(known.delegations.as_bytes()).map_err(damaged)?;
            until = ends(&root, known.fresh_until, &delegations, &revocations);
            current = Some((revocations, delegations));
        }
        Ok(Some(Self { anchors: written.anchors, current, until, seen_good: written.seen_good }))
    }
}

/// Until when what is known can be believed, and which document ends then.
pub(crate) fn ends(
    root: &Root,
    fresh_until: Time,
    delegations: &Delegations,
    revocations: &Revocations,
) -> (Time, &'static str) {
    let root = (root.expires, Root::WHAT);
    let ends = [
        root,
        (fresh_until, Snapshot::WHAT),
        (delegations.expires, Delegations::WHAT),
        (revocations.expires, Revocations::WHAT),
    ];
    ends.into_iter().min().unwrap_or(root)
}

impl Written {
    /// The state as it is written; nothing on a first use, which is a directory with nothing in it.
    fn load(directory: &Path) -> Result<Option<Self>, RegistryError> {
        let path = directory.join(STATE);
        let damaged = |what: &str| RegistryError::State { path: path.clone(), what: what.to_owned() };
        let Some(bytes) = read(&path, MAX_STATE)? else {
            return if remains(directory) {
                Err(damaged("it is gone, and what belongs to it is still there"))
            } else {
                Ok(None)
            };
        };
        let format: Format = serde_json::from_slice(&bytes).map_err(|error| damaged(&error.to_string()))?;
        if format.format > FORMAT {
            return Err(RegistryError::NewerState { path, found: format.format });
        }
        serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(&error.to_string()))
    }
}

impl WrittenCurrent {
    fn load(self, directory: &Path) -> Result<Current, RegistryError> {
        let state = directory.join(STATE);
        let damaged = |path: &Path, what: String| RegistryError::State { path: path.to_owned(), what };
        let unread = |error: RegistryError| damaged(&state, error.to_string());
        let snapshot: Signed<Snapshot> = stored(&self.snapshot).map_err(unread)?;
        let file = snapshot.document.names;
        let path = directory.join(names_file(file.digest));
        let bytes = read(&path, document::MAX_NAMES)?;
        let bytes = bytes
            .filter(|bytes| Digest::of(bytes) == file.digest)
            .ok_or_else(|| damaged(&path, "it is not the list of names that was seen".to_owned()))?;
        let names = names::read(&bytes).map_err(|error| damaged(&path, error.to_string()))?;
        let log = snapshot.document.log;
        let path = directory.join(hashes_file(self.epoch));
        let bytes = read(&path, MAX_LEAVES * 32)?.unwrap_or_default();
        let count = usize::try_from(log.size).unwrap_or(usize::MAX);
        let hashes = bytes.as_chunks::<32>().0.get(..count).map(<[Hash]>::to_vec);
        let hashes =
            hashes.filter(|hashes| Digest::from_bytes(merkle::root(hashes)) == log.root).ok_or_else(
                || damaged(&path, "it does not have the hashes of the log that was seen".to_owned()),
            )?;
        Ok(Current {
            delegations: stored(&self.delegations).map_err(unread)?,
            revocations: stored(&self.revocations).map_err(unread)?,
            snapshot,
            fresh_until: self.fresh_until,
            names,
            epoch: self.epoch,
            hashes,
        })
    }
}

fn stored<D: Document>(payload: &str) -> Result<Signed<D>, RegistryError> {
    let document = document::read(payload.as_bytes())?;
    Ok(Signed { document, digest: Digest::of(payload.as_bytes()) })
}

fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
    files::read(path, limit)
        .map_err(|error| RegistryError::State { path: path.to_owned(), what: error.to_string() })
}

fn names_file(digest: Digest) -> String {
    let hex = digest.hex();
    format!("{NAMES}.{}", hex.get(..16).unwrap_or_default())
}

fn hashes_file(epoch: u64) -> String {
    format!("{HASHES}.{epoch}")
}

/// Removes lists and hashes that the state no longer names. What cannot be removed only takes space.
fn forget_others(directory: &Path, kept: &[String]) {
    for name in beside(directory).filter(|name| !kept.contains(name)) {
        let _ = std::fs::remove_file(directory.join(name));
    }
}

/// Whether something of a state is there.
fn remains(directory: &Path) -> bool {
    beside(directory).next().is_some()
}

/// The lists and hashes in the directory.
fn beside(directory: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("{NAMES}.")) || name.starts_with(&format!("{HASHES}.")))
}
