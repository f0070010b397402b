//! A key that is elsewhere: what it has to sign is written to a file, and its signature is read from a file
//! beside that one once somebody has brought it back.
//!
//! Contract: a [`Waiting`] directory belongs to one change. It remembers the moment of that change, so that
//! the same bytes come out again when the signatures are there, and the keys that are elsewhere. A file that
//! is no longer what has to be signed is an error: something else has changed meanwhile, and a signature of
//! the old bytes is good for nothing.
//!
//! Bounds: a week from the first step to the last; 4 KiB for a signature.
//!
//! Threat: whoever can write to the directory can keep the change from happening and no more: every
//! signature is checked under its key before it counts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolgate_base::files::{create_private_dir, read_bounded, write_private};
use toolgate_base::{Clock, SystemClock};
use toolgate_signing::{
    MAX_PAYLOAD, PublicKey, SignError, Signer, decode_pre_authentication, read_signature,
};

use crate::exit::Failure;

/// What a directory of signatures that are awaited says of itself.
const CHANGE: &str = "change.json";
/// What is to be signed, and the signature: endings of file names.
const PAYLOAD: &str = "payload";
const SIGNATURE: &str = "sig";
/// Longest file of a signature, bytes.
const MAX_SIGNATURE: u64 = 4 * 1024;
/// Longest description of a change, bytes.
const MAX_CHANGE: u64 = 64 * 1024;
/// The longest that a change may wait, milliseconds: a week. What it would publish is as old as the change.
const LONGEST: u64 = 7 * 24 * 60 * 60 * 1000;

/// A change whose signatures are made elsewhere.
#[derive(Debug)]
pub(crate) struct Waiting {
    directory: Arc<Path>,
    change: Change,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    format: u32,
    /// When it was begun, Unix milliseconds.
    at: u64,
    keys: Vec<PublicKey>,
}

/// Something that has to be signed, and by whom.
#[derive(Debug, Serialize)]
pub(crate) struct Missing {
    /// The file with the bytes.
    pub(crate) payload: PathBuf,
    /// Where the signature is looked for.
    pub(crate) signature: PathBuf,
    /// The key.
    pub(crate) key: PublicKey,
}

impl Waiting {
    /// Begins a change in a new directory, with the keys that are elsewhere.
    pub(crate) fn begin(directory: &Path, keys: Vec<PublicKey>) -> Result<Self, Failure> {
        // One that came no further than its description is begun again.
        let mut there = std::fs::read_dir(directory).into_iter().flatten().flatten();
        if directory.is_file() || there.any(|entry| entry.file_name() != CHANGE) {
            return Err(Failure::usage(format!("{} is not empty", directory.display()))
                .hint("go on with a change that waits there by --attach, or name a new directory"));
        }
        let change = Change { format: 1, at: SystemClock.now_ms(), keys };
        let text = serde_json::to_string_pretty(&change).map_err(Failure::failed)?;
        create_private_dir(directory)
            .and_then(|()| write_private(&directory.join(CHANGE), text.as_bytes()))
            .map_err(|error| {
                Failure::failed(format!("{} cannot be written: {error}", directory.display()))
            })?;
        Ok(Self { directory: directory.into(), change })
    }

    /// Goes on with a change that was begun.
    pub(crate) fn go_on(directory: &Path) -> Result<Self, Failure> {
        let file = directory.join(CHANGE);
        let unusable = |what: String| Failure::usage(format!("{} cannot be used: {what}", file.display()));
        let bytes = read_bounded(&file, MAX_CHANGE).map_err(|error| unusable(error.to_string()))?;
        let bytes = bytes.ok_or_else(|| {
            unusable("it is not there".to_owned())
                .hint("--attach takes the directory that --payload-out made")
        })?;
        let change: Change = serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()))?;
        if change.format != 1 {
            return Err(unusable(format!("it has format {}, and this version reads 1", change.format)));
        }
        if SystemClock.now_ms().abs_diff(change.at) > LONGEST {
            return Err(unusable("this change was begun more than a week ago, or not yet".to_owned())
                .hint("begin it again with --payload-out and a new directory"));
        }
        Ok(Self { directory: directory.into(), change })
    }

    /// The clock of this change: it stands still.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(At(self.change.at))
    }

    /// The keys that are elsewhere.
    pub(crate) fn signers(&self) -> impl Iterator<Item = Box<dyn Signer>> {
        let of = |key: &PublicKey| {
            let directory = Arc::clone(&self.directory);
            Box::new(Elsewhere { directory, key: *key }) as Box<dyn Signer>
        };
        self.change.keys.iter().map(of)
    }

    /// What was written down and has no signature yet, by the name of the file.
    pub(crate) fn missing(&self) -> Vec<Missing> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut found: Vec<Missing> = entries
            .filter_map(|entry| {
                let payload = entry.path();
                let signature = payload.with_extension(SIGNATURE);
                let stem = payload.file_stem()?.to_str()?;
                let (_, id) = stem.rsplit_once('.')?;
                let key = *self.change.keys.iter().find(|key| short(key) == id)?;
                let waits = payload.extension().is_some_and(|end| end == PAYLOAD) && !signature.exists();
                waits.then_some(Missing { payload, signature, key })
            })
            .collect();
        found.sort_by(|left, right| left.payload.cmp(&right.payload));
        found
    }
}

/// One key of a change.
struct Elsewhere {
    directory: Arc<Path>,
    key: PublicKey,
}

impl Signer for Elsewhere {
    fn public(&self) -> PublicKey {
        self.key
    }

    fn sign(&self, encoded: &[u8]) -> Result<[u8; 64], SignError> {
        let name = format!("{}.{}.{PAYLOAD}", what(encoded), short(&self.key));
        let payload = self.directory.join(name);
        let failed = |path: &Path, error: &dyn std::fmt::Display| {
            SignError::Refused(format!("{}: {error}", path.display()))
        };
        match read_bounded(&payload, MAX_PAYLOAD as u64 + 1024).map_err(|error| failed(&payload, &error))? {
            None => write_private(&payload, encoded).map_err(|error| failed(&payload, &error))?,
            Some(there) if there == encoded => {}
            Some(_) => {
                return Err(failed(
                    &payload,
                    &"this is not what has to be signed any more: the registry has changed since, or the command is another; begin again with --payload-out and a new directory",
                ));
            }
        }
        let signature = payload.with_extension(SIGNATURE);
        match read_bounded(&signature, MAX_SIGNATURE).map_err(|error| failed(&signature, &error))? {
            Some(bytes) => read_signature(&bytes),
            None => Err(SignError::Waits),
        }
    }
}

/// A clock that stands still.
struct At(u64);

impl Clock for At {
    fn now_ms(&self) -> u64 {
        self.0
    }
}

/// What some bytes are that have to be signed, as a word for the name of their file.
fn what(encoded: &[u8]) -> String {
    let kind = decode_pre_authentication(encoded).map(|(kind, _)| kind);
    let word = kind.as_deref().and_then(|kind| {
        kind.strip_prefix("application/vnd.toolgate.registry.")?.split('.').next().map(str::to_owned)
    });
    word.unwrap_or_else(|| "checkpoint".to_owned())
}

fn short(key: &PublicKey) -> String {
    key.id().as_str().chars().take(12).collect()
}
