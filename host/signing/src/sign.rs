//! Making signatures: for publishers, `xtask` and tests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer as _;
use serde_json::json;
use zeroize::Zeroizing;

use crate::canonical::canonical_json;
use crate::digest::Digest;
use crate::dsse::{PAYLOAD_TYPE, pre_authentication_encoding};
use crate::key::{KeyError, PublicKey};
use crate::release::{PREDICATE_TYPE, Release, STATEMENT_TYPE, Statement, Subject, SubjectDigest};

/// A secret Ed25519 key. Public and secret half are kept together, because signing with a foreign public
/// half gives the secret away (RUSTSEC-2022-0093). Zeroed on drop; prints as its public half.
pub struct SigningKey(pub(crate) ed25519_dalek::SigningKey);

impl SigningKey {
    /// The key of a 32-byte seed (RFC 8032, section 5.1.5).
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// The key of a seed in 64 hex digits; space around them is ignored, as files end in a line feed.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        let mut seed = Zeroizing::new([0; 32]);
        hex::decode_to_slice(text.trim(), seed.as_mut_slice()).map_err(|_| KeyError::Seed)?;
        Ok(Self::from_seed(&seed))
    }

    /// The half that verifies.
    pub fn public(&self) -> PublicKey {
        PublicKey::of(self.0.verifying_key())
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SigningKey({})", self.public())
    }
}

/// Signs a release of `component`. Deterministic: the same release, component and key give the same bytes.
///
/// The lists that are sets are sorted; nothing else is checked, so verify what you publish.
pub fn sign_release(release: &Release, component: &[u8], key: &SigningKey) -> Vec<u8> {
    sign_payload(PAYLOAD_TYPE, release_statement(release, Digest::of(component)).as_bytes(), &[key])
}

/// The statement of a release as canonical JSON: the payload that [`sign_release`] signs.
pub fn release_statement(release: &Release, component: Digest) -> String {
    let mut release = release.clone();
    for set in [
        &mut release.imports,
        &mut release.exports,
        &mut release.decisions,
        &mut release.servers,
        &mut release.settings_hosts,
    ] {
        set.sort_unstable();
        set.dedup();
    }
    let statement = Statement {
        kind: STATEMENT_TYPE.to_owned(),
        subject: vec![Subject {
            name: release.name.clone(),
            digest: SubjectDigest { sha256: component.hex() },
        }],
        predicate_type: PREDICATE_TYPE.to_owned(),
        predicate: release,
    };
    // Neither can fail: the type has no map with other keys than strings, and serde writes no duplicate.
    let written = serde_json::to_string(&statement).unwrap_or_default();
    canonical_json(&written).unwrap_or_default()
}

/// A DSSE envelope around any payload, with one signature per key, ending in a line feed.
pub fn sign_payload(payload_type: &str, payload: &[u8], keys: &[&SigningKey]) -> Vec<u8> {
    let signed = pre_authentication_encoding(payload_type, payload);
    let signatures: Vec<serde_json::Value> = keys
        .iter()
        .map(|key| {
            let signature = key.0.sign(&signed).to_bytes();
            json!({ "keyid": key.public().id().as_str(), "sig": STANDARD.encode(signature) })
        })
        .collect();
    crate::signer::written(payload_type, payload, &signatures)
}

#[cfg(test)]
mod tests;
