//! The publisher: the one hand that writes a registry.
//!
//! Contract. Every change is verified as a client would verify it before anything of it is visible, and
//! becomes visible by replacing one file: the snapshot, or for a rotation of the root the new root. A
//! publisher that is killed at any moment leaves the old registry or the new one; what it had written
//! beside is overwritten by the next.
//!
//! Keys are [`Signer`]s that the caller gives for one change; each role takes those of its own, and a
//! change for which some are missing is refused before anything is written.
//!
//! Bounds: one publisher at a time for a directory, by a lock; those of the client for every file.

mod change;
mod init;
mod judge;
mod mirror;
mod root;
mod status;
mod store;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toolgate_base::lock::FileLock;
use toolgate_base::{Clock, SystemClock};
use toolgate_signing::{SignError, Signer, Threshold, VerifyError, seal};

use crate::client::load::Loaded;
use crate::document::{Document, Role};
use crate::error::{ErrorClass, RegistryError};
use crate::layout::Fingerprint;
use crate::time::Time;

pub use change::{Plugin, Published, Revoke};
pub use init::{Init, Initialised};
pub use mirror::{Mirrored, mirror};
pub use root::{Finished, PROPOSAL, Proposal, RootChange, proposal_to_sign, read_proposal, sign_proposal};
pub use status::{DocumentStatus, Status};
pub use verify::{Verified, verify};

pub(crate) use store::Store;

/// Held while a registry changes.
const LOCK: &str = ".lock";
/// How long another publisher may take.
const LOCK_WAIT: Duration = Duration::from_mins(1);

/// The fingerprint of the first root of a registry of this machine, for its own maintainers; a client is
/// told it by them.
pub fn first_root(directory: &Path) -> Result<Fingerprint, RegistryError> {
    Loaded::first(directory)
}

/// Signers, as the verbs take them.
pub type Signers<'a> = &'a [Box<dyn Signer>];

/// Why nothing was published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The registry, or what should go into it, does not hold.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Keys of a role are missing.
    #[error("the role `{role}` needs {need} of its keys to sign, and {have} of them are here; its keys are {}", list(.keys))]
    MissingKeys {
        /// The role.
        role: Role,
        /// How many must sign.
        need: u32,
        /// How many can.
        have: usize,
        /// The ids of the role's keys.
        keys: Vec<String>,
    },
    /// A signer did not sign.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The release does not hold by the registry's own rules.
    #[error("the release is not published: {source}")]
    Release {
        /// What did not match.
        source: Box<VerifyError>,
    },
    /// What was asked for does not fit what is there.
    #[error("{0}")]
    Unfit(String),
}

impl PublishError {
    /// What kind of error this is, for exit codes.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Registry(error) => error.class(),
            Self::MissingKeys { .. } | Self::Unfit(_) => ErrorClass::Usage,
            Self::Sign(SignError::DoesNotVerify { .. }) | Self::Release { .. } => ErrorClass::Integrity,
            Self::Sign(_) => ErrorClass::Failed,
        }
    }

    /// A stable word for the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Registry(error) => error.code(),
            Self::MissingKeys { .. } => "missing-keys",
            Self::Sign(SignError::Waits) => "waits",
            Self::Sign(_) => "sign",
            Self::Release { source } => source.code(),
            Self::Unfit(_) => "unfit",
        }
    }
}

fn list(keys: &[String]) -> String {
    let short = |key: &String| key.get(..16).unwrap_or_default().to_owned() + "…";
    keys.iter().map(short).collect::<Vec<_>>().join(", ")
}

/// A registry that is changed: its directory, held under a lock.
pub struct Publisher {
    directory: PathBuf,
    clock: Arc<dyn Clock>,
    store: Store,
    _lock: FileLock,
}

impl Publisher {
    /// Opens the registry in a directory for changes.
    ///
    /// # Errors
    /// Another publisher that does not end; a directory that cannot be written.
    pub fn open(directory: &Path) -> Result<Self, PublishError> {
        Self::open_with(directory, Arc::new(SystemClock))
    }

    /// As [`Publisher::open`], by another clock.
    pub fn open_with(directory: &Path, clock: Arc<dyn Clock>) -> Result<Self, PublishError> {
        if !directory.is_dir() {
            return Err(PublishError::Unfit(format!(
                "{} is no directory; `toolgate registry init` makes a registry",
                directory.display()
            )));
        }
        let held = lock(directory)?;
        let store = Store::new(directory);
        store.sweep();
        Ok(Self { directory: directory.to_owned(), clock, store, _lock: held })
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_millis(self.clock.now_ms())
    }

    /// For tests: the writing step after which this publisher stops, as if it had been killed.
    #[cfg(test)]
    pub(crate) fn stop_after(&mut self, steps: usize) {
        self.store.stop_after(steps);
    }
}

fn lock(directory: &Path) -> Result<FileLock, PublishError> {
    FileLock::exclusive(&directory.join(LOCK), LOCK_WAIT).map_err(|error| RegistryError::from(error).into())
}

/// An envelope of a document with the signatures of the role's signers, as many as there are.
fn sign<D: Document>(
    document: &D,
    role: Role,
    wanted: &Threshold,
    signers: Signers<'_>,
) -> Result<Vec<u8>, PublishError> {
    let chosen = choose(role, wanted, signers)?;
    Ok(seal(D::PAYLOAD_TYPE, document.to_payload().as_bytes(), &chosen)?)
}

/// The signers of a role, each key once; an error if they are too few.
fn choose<'a>(
    role: Role,
    wanted: &Threshold,
    signers: Signers<'a>,
) -> Result<Vec<&'a dyn Signer>, PublishError> {
    let chosen = of_rule(wanted, signers);
    if (chosen.len() as u64) < u64::from(wanted.minimum) {
        return Err(PublishError::MissingKeys {
            role,
            need: wanted.minimum,
            have: chosen.len(),
            keys: wanted.keys.iter().map(|key| key.id().to_string()).collect(),
        });
    }
    Ok(chosen)
}

/// The signers whose keys a rule names, each key once.
fn of_rule<'a>(wanted: &Threshold, signers: Signers<'a>) -> Vec<&'a dyn Signer> {
    let mut chosen: Vec<&dyn Signer> = Vec::new();
    for signer in signers {
        let key = signer.public();
        if wanted.keys.contains(&key) && !chosen.iter().any(|other| other.public() == key) {
            chosen.push(signer.as_ref());
        }
    }
    chosen
}

#[cfg(test)]
mod tests;
