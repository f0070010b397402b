//! What proves the operator: a PIN, or an account that agents do not have.
//!
//! Contract: one file, `operator.json`, 0600 in the data directory, holds how the operator is proven.
//! A PIN is kept as its Argon2id hash (RFC 9106, section 4, second recommended option) with a salt of
//! its own. A failed attempt is written down *before* the PIN is compared, so that neither `kill -9`
//! nor a restart wins one back; after [`FREE_ATTEMPTS`] each further one costs a pause that doubles
//! up to [`MAX_PAUSE_MS`]. A file that cannot be read is an error and never "no proof is needed".
//!
//! Bounds: a PIN has [`MIN_PIN`] to [`MAX_PIN`] bytes; the file has at most 4 KiB; one comparison
//! takes 64 MiB and about 0.1 s, and one runs at a time.
//!
//! Threat: an agent with a shell on the operator's account guesses the PIN at its own terminal. The
//! pause bounds what it can try that way. It can also read this file and guess elsewhere, or delete
//! it: the hash makes the first slow, and whoever asks for proof compares with the audit log, which
//! remembers that there was one (docs/threat-model.md says what remains).

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolgate_base::files::write_private;
use toolgate_base::lock::FileLock;
use toolgate_base::{Clock, Secret, random_hex};

use crate::paths::OPERATOR;

/// Fewest bytes of a PIN.
pub const MIN_PIN: usize = 6;
/// Most bytes of a PIN.
pub const MAX_PIN: usize = 128;
/// Attempts without a pause.
pub const FREE_ATTEMPTS: u32 = 3;
/// Longest pause between two attempts, in milliseconds: 15 minutes.
pub const MAX_PAUSE_MS: u64 = 15 * 60 * 1000;

const FORMAT: u32 = 1;
const FIRST_PAUSE_MS: u64 = 2_000;
const MAX_BYTES: u64 = 4 * 1024;
const LOCK_WAIT: Duration = Duration::from_secs(10);
const HASH_BYTES: usize = 32;
/// Random bytes of a salt.
const SALT_BYTES: usize = 16;
/// Argon2id with 64 MiB, three passes and one lane.
const COST: Cost = Cost { memory_kib: 64 * 1024, passes: 3, lanes: 1 };

/// Why the operator was not proven.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The PIN is not the one that was set.
    #[error("that is not the operator PIN{}", pause_text(.0))]
    WrongPin(Duration),
    /// Too many attempts failed; another one counts only after this time.
    #[error("too many wrong PINs were typed; the next attempt counts in {} s", .0.as_secs().saturating_add(1))]
    Wait(Duration),
    /// No PIN is set.
    #[error("no operator PIN is set")]
    NotSet,
    /// The new PIN is too short, too long, or one character many times over.
    #[error("a PIN has {MIN_PIN} to {MAX_PIN} characters and not one alone")]
    Unfit,
    /// The file is not what this version writes.
    #[error("{} cannot be used: {what}; restore it from a copy, or as its owner move it away and run `toolgate operator init`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The file cannot be read or written.
    #[error("{} cannot be used: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process is comparing a PIN.
    #[error(transparent)]
    Busy(#[from] toolgate_base::lock::LockError),
    /// The hash could not be computed, for want of memory.
    #[error("the PIN could not be compared: {0}")]
    Hash(String),
}

fn pause_text(pause: &Duration) -> String {
    if pause.is_zero() {
        return String::new();
    }
    format!("; the next attempt counts in {} s", pause.as_secs())
}

/// How the operator is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorProof {
    /// Not at all: nobody set anything, and whoever uses this account is taken for the operator.
    None,
    /// By a PIN typed at a terminal.
    Pin,
    /// By the account: agents run as another user, with this id, and this one owns the data directory.
    OtherUser {
        /// The user id of agents.
        agents: u32,
    },
}

/// The proof of one data directory.
pub struct Operator {
    path: PathBuf,
    clock: Arc<dyn Clock>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format: u32,
    #[serde(default)]
    pin: Option<PinRecord>,
    #[serde(default)]
    agents_uid: Option<u32>,
    /// Attempts that failed since the last that did not.
    failures: u32,
    /// When the last of them was, in milliseconds since the Unix epoch.
    failed_at_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinRecord {
    salt: String,
    hash: String,
    cost: Cost,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

impl Operator {
    /// The proof kept in `data_dir`; nothing is read yet.
    pub fn of(data_dir: &Path, clock: Arc<dyn Clock>) -> Self {
        Self { path: data_dir.join(OPERATOR), clock }
    }

    /// How the operator is proven.
    pub fn proof(&self) -> Result<OperatorProof, OperatorError> {
        Ok(match self.read()? {
            Some(Record { pin: Some(_), .. }) => OperatorProof::Pin,
            Some(Record { agents_uid: Some(agents), .. }) => OperatorProof::OtherUser { agents },
            Some(_) => return Err(self.damaged("it names no proof")),
            None => OperatorProof::None,
        })
    }

    /// A digest of how the operator is proven, hex, without the attempts that failed; none where nothing is
    /// set. Kept in the audit log, so that a file that was put in place of the one that was set is noticed.
    pub fn digest(&self) -> Result<Option<String>, OperatorError> {
        let Some(record) = self.read()? else { return Ok(None) };
        let set = serde_json::to_vec(&(&record.pin, record.agents_uid));
        let set = set.map_err(|error| self.damaged(&error.to_string()))?;
        Ok(Some(hex::encode(Sha256::digest(set))))
    }

    /// How long no attempt counts, so that nobody types a PIN in vain.
    pub fn pause(&self) -> Result<Duration, OperatorError> {
        Ok(self.read()?.map_or(Duration::ZERO, |record| self.pause_of(&record)))
    }

    /// Sets the PIN in place of whatever was there. The caller has proof of the operator.
    pub fn set_pin(&self, pin: &Secret) -> Result<(), OperatorError> {
        check_fit(pin)?;
        let salt = random_hex(SALT_BYTES);
        let hash = hash(pin, &salt, COST)?;
        let _lock = self.lock()?;
        self.write(&Record {
            format: FORMAT,
            pin: Some(PinRecord { salt, hash: hex::encode(hash), cost: COST }),
            agents_uid: None,
            failures: 0,
            failed_at_ms: 0,
        })
    }

    /// Records that agents run as the user `agents`, so that the owner of the data directory is the
    /// operator. The caller has proof of the operator and compared the two users.
    pub fn set_other_user(&self, agents: u32) -> Result<(), OperatorError> {
        let _lock = self.lock()?;
        self.write(&Record {
            format: FORMAT,
            pin: None,
            agents_uid: Some(agents),
            failures: 0,
            failed_at_ms: 0,
        })
    }

    /// Compares a PIN. The attempt counts before its outcome is known.
    pub fn check_pin(&self, pin: &Secret) -> Result<(), OperatorError> {
        let _lock = self.lock()?;
        let mut record = self.read()?.ok_or(OperatorError::NotSet)?;
        let pause = self.pause_of(&record);
        if !pause.is_zero() {
            return Err(OperatorError::Wait(pause));
        }
        record.failures = record.failures.saturating_add(1);
        record.failed_at_ms = self.clock.now_ms();
        self.write(&record)?;
        let kept = record.pin.as_ref().ok_or(OperatorError::NotSet)?;
        let given = hash(pin, &kept.salt, kept.cost)?;
        // `Secret` compares in constant time.
        if !Secret::new(hex::encode(given)).matches(&kept.hash) {
            return Err(OperatorError::WrongPin(self.pause_of(&record)));
        }
        record.failures = 0;
        record.failed_at_ms = 0;
        self.write(&record)
    }

    /// A clock that was set back makes the pause longer, never shorter, and never longer than the longest.
    fn pause_of(&self, record: &Record) -> Duration {
        let Some(beyond) = record.failures.checked_sub(FREE_ATTEMPTS) else { return Duration::ZERO };
        let pause =
            FIRST_PAUSE_MS.saturating_mul(1_u64.checked_shl(beyond).unwrap_or(u64::MAX)).min(MAX_PAUSE_MS);
        let until = record.failed_at_ms.saturating_add(pause);
        Duration::from_millis(until.saturating_sub(self.clock.now_ms()).min(pause))
    }

    fn read(&self) -> Result<Option<Record>, OperatorError> {
        let failed = |source| OperatorError::Io { path: self.path.clone(), source };
        let file = match std::fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
        let record: Record = serde_json::from_str(&text).map_err(|error| self.damaged(&error.to_string()))?;
        if record.format != FORMAT {
            return Err(
                self.damaged(&format!("its format is {}, and this version knows {FORMAT}", record.format))
            );
        }
        Ok(Some(record))
    }

    fn write(&self, record: &Record) -> Result<(), OperatorError> {
        let text = serde_json::to_vec(record).map_err(|error| self.damaged(&error.to_string()))?;
        write_private(&self.path, &text)
            .map_err(|source| OperatorError::Io { path: self.path.clone(), source })
    }

    fn lock(&self) -> Result<FileLock, OperatorError> {
        Ok(FileLock::exclusive(&self.path.with_extension("lock"), LOCK_WAIT)?)
    }

    fn damaged(&self, what: &str) -> OperatorError {
        OperatorError::Damaged { path: self.path.clone(), what: what.to_owned() }
    }
}

/// Whether a PIN can be set: [`MIN_PIN`] to [`MAX_PIN`] bytes, and not one character alone.
///
/// # Errors
/// [`OperatorError::Unfit`].
pub fn check_fit(pin: &Secret) -> Result<(), OperatorError> {
    let text = pin.expose();
    let first = text.chars().next();
    if !(MIN_PIN..=MAX_PIN).contains(&text.len()) || text.chars().all(|other| Some(other) == first) {
        return Err(OperatorError::Unfit);
    }
    Ok(())
}

fn hash(pin: &Secret, salt: &str, cost: Cost) -> Result<[u8; HASH_BYTES], OperatorError> {
    let failed = |error: argon2::Error| OperatorError::Hash(error.to_string());
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(HASH_BYTES)).map_err(failed)?;
    let mut out = [0_u8; HASH_BYTES];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(pin.expose().as_bytes(), salt.as_bytes(), &mut out)
        .map_err(failed)?;
    Ok(out)
}

#[cfg(test)]
mod tests;
