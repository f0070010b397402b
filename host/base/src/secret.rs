//! A string that must not be seen: tokens, keys, header values.
//!
//! Threat: a secret reaches a log line, an error message, a status page or a core dump because
//! some struct around it derives `Debug` or `Serialize`. So this type prints as `***`, has no
//! `Serialize`, and overwrites its memory when it is dropped. A copy that [`Secret::expose`] lets
//! out is the caller's to look after.

use std::fmt;

use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

/// What stands in place of a secret wherever it would be shown.
const MASK: &str = "***";

/// A secret text. Prints as `***`; its memory is zeroed on drop.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the text over. A `String` given by value is not copied.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself. Every call of this is a place where a secret can leak; keep the borrow short.
    pub fn expose(&self) -> &str {
        self.0.as_str()
    }

    /// Whether there is no text at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the secret is `candidate`, in time that depends on the lengths alone.
    pub fn matches(&self, candidate: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), candidate.as_bytes());
        let differing = own.iter().zip(other).fold(0_u8, |seen, (left, right)| seen | (left ^ right));
        own.len() == other.len() && std::hint::black_box(differing) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other.expose())
    }
}

impl Eq for Secret {}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests;
