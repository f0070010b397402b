//! What must not run, as it was last seen of a registry: for whoever loads plugins and asks no network.
//!
//! It is read from the memory without the log and the list of names, so that it costs a start little.

use std::path::Path;

use toolgate_base::{Clock as _, SystemClock};
use toolgate_signing::{Digest, VerifiedRelease};

use super::{Freshness, Revocation, judge};
use crate::document::{Delegations, Revocations};
use crate::error::RegistryError;
use crate::layout::Fingerprint;
use crate::state::{Seldom, Trusted};
use crate::time::Time;

/// Revocations and delegations as they were last seen, fresh or not.
#[derive(Debug, Clone)]
pub struct Remembered {
    revocations: Revocations,
    delegations: Delegations,
    seen: Time,
    until: (Time, &'static str),
}

impl Remembered {
    /// What the memory in a directory knows; nothing where the registry was never seen.
    ///
    /// # Errors
    /// Memory that cannot be read, is of a newer format, or is of another root than `root`: then nothing
    /// can be said to be unrevoked.
    pub fn load(directory: &Path, root: Fingerprint) -> Result<Option<Self>, RegistryError> {
        let Some(seldom) = Seldom::load(directory)? else { return Ok(None) };
        super::check_root(directory, &seldom.anchors, root)?;
        Ok(seldom.current.map(|(revocations, delegations)| Self {
            revocations,
            delegations,
            seen: seldom.seen_good,
            until: seldom.until,
        }))
    }

    pub(super) fn of(trusted: &Trusted) -> Option<Self> {
        let current = trusted.current.as_ref()?;
        Some(Self {
            revocations: current.revocations.document.clone(),
            delegations: current.delegations.document.clone(),
            seen: trusted.seen_good,
            until: trusted.until(),
        })
    }

    /// Whether a release must not run: it or its component is revoked, or too few of its signers are
    /// left. `log` is its place in the log, from its line; without it every revocation of a key counts.
    pub fn revocation(&self, release: &VerifiedRelease, log: Option<u64>) -> Option<Revocation> {
        let direct = self.revoked(release.digest()).or_else(|| self.revoked(release.component()));
        direct.or_else(|| judge::without_signers(&self.revocations, &self.delegations, release, log))
    }

    /// How fresh it is by the clock of this machine.
    pub fn freshness(&self) -> Freshness {
        let now = Time::from_millis(SystemClock.now_ms());
        Freshness::new(self.seen, self.until.0, self.until.1, true, now)
    }

    /// Whether a release's envelope, or a component, is revoked.
    pub fn revoked(&self, digest: Digest) -> Option<Revocation> {
        let revoked = self.revocations.release(digest)?;
        Some(Revocation { reason: revoked.reason.clone(), at: revoked.at, by_key: false })
    }
}
