//! Public keys: what is admitted, how it is written, how it is named.
//!
//! Threat: a key that verifies what nobody signed, or one signer who counts as two. A key of small
//! order accepts signatures on almost anything; a point with a second encoding would be two keys with
//! two ids. Both are refused when a key is read, so that no rule can be made of one.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::Digest;

/// Names the algorithm in front of a written key.
const SCHEME: &str = "ed25519:";

/// Begins the bytes under a key id; the last byte says that an Ed25519 key follows.
const ID_DOMAIN: &[u8] = b"toolgate key v1\n\x01";

/// Why a text or its bytes are not admitted as a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text does not begin with `ed25519:`.
    #[error("a key begins with `ed25519:`")]
    Scheme,
    /// What follows is not standard base64 with padding.
    #[error("what follows `ed25519:` must be standard base64 with padding")]
    Base64,
    /// The bytes are not 32.
    #[error("an Ed25519 key has 32 bytes, and this has {0}")]
    Length(usize),
    /// The bytes are no point of the curve.
    #[error("these 32 bytes are no Ed25519 key")]
    NotAPoint,
    /// The bytes are a second encoding of a point that has another.
    #[error("this key is not in its canonical encoding; it could count as a second key")]
    NonCanonical,
    /// The point has small order: signatures under it prove nothing.
    #[error("this key is weak: signatures under it prove nothing")]
    Weak,
    /// A secret key is not 64 hex digits.
    #[error("an Ed25519 seed is written as 64 hex digits")]
    Seed,
}

impl KeyError {
    /// A stable word for the reason, as the published vectors have it.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Scheme => "scheme",
            Self::Base64 => "base64",
            Self::Length(_) => "length",
            Self::NotAPoint => "not-a-point",
            Self::NonCanonical => "non-canonical",
            Self::Weak => "weak",
            Self::Seed => "seed",
        }
    }
}

/// The name of a key: lowercase hex of sha256 over a domain and the key. A name is a hint and proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct KeyId(String);

impl KeyId {
    /// The 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// An admitted Ed25519 key. Written `ed25519:<standard base64>`, in one spelling only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads `ed25519:<base64>` and admits the key.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let encoded = text.strip_prefix(SCHEME).ok_or(KeyError::Scheme)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| KeyError::Base64)?;
        let bytes = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| KeyError::Length(bytes.len()))?;
        Self::from_bytes(&bytes)
    }

    /// Admits 32 bytes as a key, or says why not.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::NotAPoint)?;
        if key.to_edwards().compress().to_bytes() != *bytes {
            return Err(KeyError::NonCanonical);
        }
        if key.is_weak() {
            return Err(KeyError::Weak);
        }
        Ok(Self(key))
    }

    /// The 32 bytes.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The name of this key.
    pub fn id(&self) -> KeyId {
        KeyId(Digest::of_parts(&[ID_DOMAIN, self.0.as_bytes()]).hex())
    }

    /// Whether `signature` is this key's over `message`, by the strict rules of RFC 8032: canonical
    /// scalar and point, no point of small order.
    ///
    /// For formats that are no DSSE envelope, as signed notes; the caller sees to it that the message says
    /// what it is.
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }

    #[cfg(any(test, feature = "sign"))]
    pub(crate) const fn of(key: VerifyingKey) -> Self {
        Self(key)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}", STANDARD.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
