//! Revocations: releases that must not run, and keys that count no more.

use serde::{Deserialize, Serialize};
use toolgate_signing::{Digest, KeyId};

use super::{Broken, Document, is_words};
use crate::time::Time;

/// `revocations/<n>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revocations {
    /// Counts from 1.
    pub version: u64,
    /// After this nothing new is taken.
    pub expires: Time,
    /// Sorted by digest, each once.
    pub releases: Vec<RevokedRelease>,
    /// Sorted by key, each once.
    pub keys: Vec<RevokedKey>,
}

/// A release, or every release of a component, that must not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokedRelease {
    /// The digest of a release's envelope, or of a component.
    pub digest: Digest,
    /// Why, for the operator.
    pub reason: String,
    /// When it was revoked.
    pub at: Time,
}

/// A key whose signatures count no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokedKey {
    /// The id of the key: 64 hex digits.
    pub key: String,
    /// From this line of the log on; 0 for everything it ever signed.
    pub from_log: u64,
    /// Why, for the operator.
    pub reason: String,
    /// When it was revoked.
    pub at: Time,
}

impl Revocations {
    /// The revocation of a release's envelope or of a component.
    pub fn release(&self, digest: Digest) -> Option<&RevokedRelease> {
        self.releases.iter().find(|revoked| revoked.digest == digest)
    }

    /// The revocation of a key for what stands at this line of the log; without a line, any revocation
    /// counts, because nothing says that the release was there before.
    pub fn key(&self, id: &KeyId, log: Option<u64>) -> Option<&RevokedKey> {
        self.keys
            .iter()
            .find(|revoked| revoked.key == id.as_str() && log.is_none_or(|log| revoked.from_log <= log))
    }
}

impl Document for Revocations {
    const WHAT: &'static str = "revocations";
    const PAYLOAD_TYPE: &'static str = "application/vnd.toolgate.registry.revocations.v1+json";

    fn version(&self) -> u64 {
        self.version
    }

    fn expires(&self) -> Time {
        self.expires
    }

    fn check(&self) -> Result<(), Broken> {
        let hex = |id: &str| Digest::from_hex(id).is_ok();
        let rules = [
            (
                self.releases.is_sorted_by(|left, right| left.digest < right.digest),
                "releases",
                "sorted, each once",
            ),
            (self.keys.is_sorted_by(|left, right| left.key < right.key), "keys", "sorted, each once"),
            (self.keys.iter().all(|revoked| hex(&revoked.key)), "keys", "ids of 64 hex digits"),
            (
                self.releases.iter().all(|revoked| is_words(&revoked.reason)),
                "reason",
                "one line of at most 500 characters",
            ),
            (
                self.keys.iter().all(|revoked| is_words(&revoked.reason)),
                "reason",
                "one line of at most 500 characters",
            ),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, member, rule)) => Err((member, rule)),
            None => Ok(()),
        }
    }
}
