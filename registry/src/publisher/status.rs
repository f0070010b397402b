//! How a registry stands: what expires when, who must sign what, what is in it.

use super::{PublishError, Publisher};
use crate::document;
use crate::document::{Document as _, FreshnessDocument, Role};
use crate::error::RegistryError;
use crate::layout::{self, Fingerprint};
use crate::time::Time;

/// How a registry stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Which registry it is.
    pub origin: String,
    /// What clients may be told: the newest root.
    pub fingerprint: Fingerprint,
    /// What they may have been told: the first root.
    pub first: Fingerprint,
    /// Root, snapshot, delegations, revocations.
    pub documents: Vec<DocumentStatus>,
    /// Each role with its number of keys and threshold.
    pub roles: Vec<(Role, usize, u32)>,
    /// Namespaces and how many keys sign them now.
    pub namespaces: Vec<(String, usize, u32)>,
    /// How many plugins there are.
    pub plugins: usize,
    /// Lines of the log, and its epoch.
    pub log: (u64, u64),
    /// Revoked releases and keys.
    pub revoked: (usize, usize),
    /// Whether a root waits for signatures.
    pub proposal: bool,
}

/// One document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentStatus {
    /// Which one.
    pub what: &'static str,
    /// Its version.
    pub version: u64,
    /// When it expires; the snapshot with its renewal.
    pub expires: Time,
    /// Whole days until then; 0 when it has expired, or does today.
    pub days: u64,
    /// Whether it has expired.
    pub expired: bool,
}

impl Publisher {
    /// How the registry stands now.
    pub async fn status(&self) -> Result<Status, PublishError> {
        let loaded = self.load().await?;
        let now = self.now();
        let current = &loaded.current;
        let renewed = self.renewed(&loaded.root, current.snapshot.digest)?;
        let snapshot = &current.snapshot.document;
        let row = |what, version, expires: Time| DocumentStatus {
            what,
            version,
            expires,
            days: now.days_until(expires),
            expired: expires <= now,
        };
        let named = |entry: Option<(&u64, &toolgate_signing::Digest)>| {
            let (version, digest) = entry.ok_or(RegistryError::NeverSeen)?;
            Ok::<_, RegistryError>(Fingerprint { version: *version, digest: *digest })
        };
        let log = current.hashes.len() as u64;
        Ok(Status {
            origin: loaded.root.origin.clone(),
            fingerprint: named(loaded.roots.last_key_value())?,
            first: named(loaded.roots.first_key_value())?,
            documents: vec![
                row("root", loaded.root.version, loaded.root.expires),
                row("snapshot", snapshot.version, snapshot.expires.max(renewed.unwrap_or(snapshot.expires))),
                row(
                    "delegations",
                    current.delegations.document.version,
                    current.delegations.document.expires,
                ),
                row(
                    "revocations",
                    current.revocations.document.version,
                    current.revocations.document.expires,
                ),
            ],
            roles: Role::ALL
                .into_iter()
                .map(|role| (role, loaded.root.rule(role).keys.len(), loaded.root.rule(role).threshold))
                .collect(),
            namespaces: current
                .delegations
                .document
                .namespaces
                .iter()
                .filter_map(|(name, periods)| {
                    let last = periods.last()?;
                    Some((name.clone(), last.keys.len(), last.threshold))
                })
                .collect(),
            plugins: current.names.len(),
            log: (log, loaded.root.epoch),
            revoked: (current.revocations.document.releases.len(), current.revocations.document.keys.len()),
            proposal: self.directory.join(super::PROPOSAL).exists(),
        })
    }

    /// The later expiry of a snapshot, if it was renewed by a key that may.
    fn renewed(
        &self,
        root: &document::Root,
        snapshot: toolgate_signing::Digest,
    ) -> Result<Option<Time>, PublishError> {
        let limit = toolgate_signing::MAX_ENVELOPE as u64;
        let Some(envelope) = crate::files::read(&self.directory.join(layout::FRESHNESS), limit)? else {
            return Ok(None);
        };
        let fresh = document::verify::<FreshnessDocument>(&envelope, &root.threshold(Role::Refresh));
        Ok(fresh
            .ok()
            .filter(|fresh| fresh.document.snapshot == snapshot)
            .map(|fresh| fresh.document.expires()))
    }
}
