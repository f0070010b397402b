//! The signed documents of a registry, each a closed version 1.
//!
//! Threat: a document that two readers understand differently, or that says more than this version
//! reads. So a payload must be exactly the canonical JSON of what was read from it: no member too many,
//! none twice, no other spelling. Whoever signs and whoever verifies see the same bytes.

mod delegations;
mod revocations;
mod root;
mod snapshot;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toolgate_signing::{Digest, Threshold, VerifyError, canonical_json, verify_payload};

use crate::error::RegistryError;
use crate::time::Time;

pub use delegations::{Delegations, Period};
pub use revocations::{Revocations, RevokedKey, RevokedRelease};
pub use root::{Role, RoleRule, Roles, Root};
pub(crate) use snapshot::MAX_NAMES;
pub use snapshot::{Config, File, FreshnessDocument, Log, Pin, Snapshot};

/// The greatest version of anything: what JSON numbers hold exactly.
pub(crate) const MAX_VERSION: u64 = (1 << 53) - 1;

/// A broken rule for a member of a document.
pub(crate) type Broken = (&'static str, &'static str);

/// A document of the registry.
pub(crate) trait Document: Serialize + DeserializeOwned {
    /// What it is called in messages.
    const WHAT: &'static str;
    /// The payload type under its signatures.
    const PAYLOAD_TYPE: &'static str;

    /// Counts from 1.
    fn version(&self) -> u64;

    /// After this it is not believed any more.
    fn expires(&self) -> Time;

    /// The rules that types alone do not hold.
    fn check(&self) -> Result<(), Broken>;

    /// The bytes that are signed.
    fn to_payload(&self) -> String {
        canonical(self)
    }
}

/// A document whose signatures were checked, with the digest of its payload.
#[derive(Debug, Clone)]
pub(crate) struct Signed<D> {
    pub(crate) document: D,
    pub(crate) digest: Digest,
}

/// Verifies an envelope and reads its payload.
pub(crate) fn verify<D: Document>(envelope: &[u8], rule: &Threshold) -> Result<Signed<D>, RegistryError> {
    let verified = verify_payload(D::WHAT, envelope, D::PAYLOAD_TYPE, rule).map_err(unsigned::<D>)?;
    Ok(Signed { digest: Digest::of(&verified.payload), document: read(&verified.payload)? })
}

pub(crate) fn unsigned<D: Document>(source: VerifyError) -> RegistryError {
    RegistryError::Unsigned { what: D::WHAT.to_owned(), source: Box::new(source) }
}

/// Reads a payload that was verified, or that this machine stored after it was.
pub(crate) fn read<D: Document>(payload: &[u8]) -> Result<D, RegistryError> {
    let document: D = read_canonical(D::WHAT, payload)?;
    let version = (1..=MAX_VERSION).contains(&document.version());
    let rules = if version { document.check() } else { Err(("version", "between 1 and 2^53 - 1")) };
    match rules {
        Ok(()) => Ok(document),
        Err((member, rule)) => {
            Err(RegistryError::malformed(D::WHAT, format!("the member `{member}` must be: {rule}")))
        }
    }
}

/// Reads JSON that must be exactly the canonical form of what is read from it.
pub(crate) fn read_canonical<T: Serialize + DeserializeOwned>(
    what: &str,
    bytes: &[u8],
) -> Result<T, RegistryError> {
    let malformed = |detail: String| {
        RegistryError::malformed(
            what,
            toolgate_base::display::escape(&detail).chars().take(200).collect::<String>(),
        )
    };
    let value: T = serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
    if canonical(&value).as_bytes() == bytes {
        return Ok(value);
    }
    Err(malformed(
        "it is not in its one canonical form, or holds a member twice or one this version does not know"
            .to_owned(),
    ))
}

/// Canonical JSON of a value of this crate.
pub(crate) fn canonical(value: &impl Serialize) -> String {
    // Neither can fail: no map here has other keys than strings, and serde writes no duplicate.
    let written = serde_json::to_string(value).unwrap_or_default();
    canonical_json(&written).unwrap_or_default()
}

/// The payload of an envelope that nobody has verified: only to compare its digest with one that the
/// operator gave.
pub(crate) fn claimed_payload(envelope: &[u8]) -> Option<Vec<u8>> {
    #[derive(serde::Deserialize)]
    struct Claim {
        payload: String,
    }
    let claim: Claim = serde_json::from_slice(envelope).ok()?;
    STANDARD.decode(claim.payload).ok()
}

/// Words that a person wrote into a document: one line that a terminal can show.
pub(crate) fn is_words(text: &str) -> bool {
    (1..=500).contains(&text.chars().count()) && toolgate_base::display::escape(text) == text
}
