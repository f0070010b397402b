//! The snapshot: which files belong together; its later expiry; and the file that says which registry
//! this is.

use serde::{Deserialize, Serialize};
use toolgate_signing::Digest;

use super::{Broken, Document};
use crate::layout;
use crate::merkle::MAX_LEAVES;
use crate::time::Time;

/// The format of the index that this version reads and writes.
pub(crate) const FORMAT: u32 = 1;
/// Largest list of names, bytes.
pub(crate) const MAX_NAMES: u64 = 16 * 1024 * 1024;

/// `config.json`. It is not signed; the snapshot names its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The format of the index: 1.
    pub index: u32,
    /// What people call it.
    pub name: String,
    /// As every root says.
    pub origin: String,
}

/// `snapshot/<n>.json`, under root n.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Goes up with everything that is published.
    pub version: u64,
    /// After this nothing new is taken, unless it was renewed.
    pub expires: Time,
    /// `config.json`.
    pub config: Digest,
    /// The delegations in force.
    pub delegations: Pin,
    /// The revocations in force.
    pub revocations: Pin,
    /// The list of names, a blob.
    pub names: File,
    /// The log of all lines.
    pub log: Log,
    /// The signed note over the log, as `checkpoint` has it.
    pub checkpoint: String,
}

/// A document by version and digest of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Its version.
    pub version: u64,
    /// The sha256 of its payload.
    pub digest: Digest,
}

/// A file by size and digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Bytes.
    pub size: u64,
    /// Their sha256.
    pub digest: Digest,
}

/// The log by its length and root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// How many lines it has.
    pub size: u64,
    /// The root of their Merkle tree (RFC 6962), written as a digest.
    pub root: Digest,
}

impl Document for Snapshot {
    const WHAT: &'static str = "snapshot";
    const PAYLOAD_TYPE: &'static str = "application/vnd.toolgate.registry.snapshot.v1+json";

    fn version(&self) -> u64 {
        self.version
    }

    fn expires(&self) -> Time {
        self.expires
    }

    fn check(&self) -> Result<(), Broken> {
        let versions = [self.delegations.version, self.revocations.version];
        let rules = [
            (
                versions.iter().all(|version| (1..=super::MAX_VERSION).contains(version)),
                "version",
                "at least 1",
            ),
            (self.names.size <= MAX_NAMES, "names", "at most 16 MiB"),
            (self.log.size <= MAX_LEAVES, "log", "at most 1048576 lines"),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, member, rule)) => Err((member, rule)),
            None => Ok(()),
        }
    }
}

/// `freshness.json`: says that a snapshot is still the newest one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreshnessDocument {
    /// The version of the snapshot.
    pub version: u64,
    /// The sha256 of its payload.
    pub snapshot: Digest,
    /// Until when it may be believed.
    pub expires: Time,
}

impl Document for FreshnessDocument {
    const WHAT: &'static str = "freshness";
    const PAYLOAD_TYPE: &'static str = "application/vnd.toolgate.registry.freshness.v1+json";

    fn version(&self) -> u64 {
        self.version
    }

    fn expires(&self) -> Time {
        self.expires
    }

    fn check(&self) -> Result<(), Broken> {
        Ok(())
    }
}

impl Config {
    /// The rules that types alone do not hold.
    pub(crate) fn check(&self) -> Result<(), Broken> {
        let rules = [
            (self.index == FORMAT, "index", "1, which is what this version reads"),
            (
                super::is_words(&self.name) && self.name.len() <= 64,
                "name",
                "one line of at most 64 characters",
            ),
            (layout::is_origin(&self.origin), "origin", "a host and a path, as plugins.example/main"),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, member, rule)) => Err((member, rule)),
            None => Ok(()),
        }
    }
}
