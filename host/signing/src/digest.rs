//! A sha256 and how it is written.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// Names the algorithm in front of every written digest, so that another can be added.
const SCHEME: &str = "sha256:";

/// A sha256. Written `sha256:<64 lowercase hex digits>`, and read only in that spelling.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Why a text is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// The text does not begin with `sha256:`.
    #[error("a digest begins with `sha256:`")]
    Scheme,
    /// What follows is not 64 lowercase hex digits.
    #[error("a digest has 64 lowercase hex digits after `sha256:`")]
    Digits,
}

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::of_parts(&[bytes])
    }

    /// The digest of several pieces, one after the other. The caller sees to it that no other
    /// pieces give the same bytes.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// A digest that was computed elsewhere, for instance while a file was read.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hex digits alone, as in-toto statements and names of blobs have them.
    pub fn hex(&self) -> String {
        // Not `hex::encode`, which collects characters one by one: every call makes several of these.
        let mut digits = [0; 64];
        match hex::encode_to_slice(self.0, &mut digits) {
            Ok(()) => String::from_utf8_lossy(&digits).into_owned(),
            Err(_) => hex::encode(self.0),
        }
    }

    /// Reads the 64 hex digits alone.
    pub fn from_hex(digits: &str) -> Result<Self, DigestError> {
        let lowercase = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let mut bytes = [0; 32];
        if !lowercase || hex::decode_to_slice(digits, &mut bytes).is_err() {
            return Err(DigestError::Digits);
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(SCHEME)?;
        formatter.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        Self::from_hex(text.strip_prefix(SCHEME).ok_or(DigestError::Scheme)?)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
