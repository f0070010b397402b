//! Names and paths: where each file of a registry stands, and what a plugin, an origin and the
//! fingerprint of a root are called.
//!
//! Threat: a name from the index becomes a path or a URL. So only names that were checked here are
//! put into one, and they hold nothing but lowercase letters, digits and `-`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolgate_signing::Digest;

/// Format and origin.
pub(crate) const CONFIG: &str = "config.json";
/// The later expiry of one snapshot.
pub(crate) const FRESHNESS: &str = "freshness.json";

/// The signed note over the log, where tools of transparency logs look for it.
pub(crate) const CHECKPOINT: &str = "checkpoint";

/// Longest namespace, and name in it.
const MAX_PART: usize = 63;
/// Longest origin.
const MAX_ORIGIN: usize = 200;

/// `root/<n>.json`.
pub(crate) fn root(version: u64) -> String {
    format!("root/{version}.json")
}

/// `delegations/<n>.json`.
pub(crate) fn delegations(version: u64) -> String {
    format!("delegations/{version}.json")
}

/// `revocations/<n>.json`.
pub(crate) fn revocations(version: u64) -> String {
    format!("revocations/{version}.json")
}

/// The snapshot under the root of a version.
pub(crate) fn snapshot(root: u64) -> String {
    format!("snapshot/{root}.json")
}

/// `blob/<sha256>`.
pub(crate) fn blob(digest: Digest) -> String {
    format!("blob/{}", digest.hex())
}

/// The lines of a plugin: `index/ac/me/acme/guard`, sharded by the namespace as cargo's index is.
/// The name must have passed [`is_plugin_name`].
pub(crate) fn index(name: &str) -> String {
    let namespace = name.split('/').next().unwrap_or_default();
    let part = |from: usize, to: usize| namespace.get(from..to).unwrap_or_default();
    match namespace.len() {
        length @ (1 | 2) => format!("index/{length}/{name}"),
        3 => format!("index/3/{}/{name}", part(0, 1)),
        _ => format!("index/{}/{}/{name}", part(0, 2), part(2, 4)),
    }
}

/// Whether a text is `namespace/name`, each of 1 to 63 lowercase letters, digits and `-`, and `-` neither
/// first nor last: the names that releases have.
pub fn is_plugin_name(text: &str) -> bool {
    text.split_once('/').is_some_and(|(namespace, name)| is_part(namespace) && is_part(name))
}

/// Whether a text is the name of a plugin, or `namespace/*`.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.strip_suffix("/*").map_or_else(|| is_plugin_name(text), is_part)
}

fn is_part(part: &str) -> bool {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (1..=MAX_PART).contains(&part.len())
        && part.bytes().all(plain)
        && !part.starts_with('-')
        && !part.ends_with('-')
}

/// Whether a text can be the origin of a registry: a host and a path as in a URL without its scheme,
/// without spaces, `+` and control characters (C2SP tlog-checkpoint; signed notes end a name at a space).
pub(crate) fn is_origin(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'/' | b':');
    (1..=MAX_ORIGIN).contains(&text.len()) && text.bytes().all(plain)
}

/// Which root is trusted at first use: its version and the sha256 of its signed bytes. Written
/// `<version>:sha256:<hex>`; without the version it is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// The version of the root.
    pub version: u64,
    /// The digest of its payload.
    pub digest: Digest,
}

/// Why a text is no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the fingerprint of a root is written sha256:<64 hex digits>, or 3:sha256:<64 hex digits> for root 3"
)]
pub struct FingerprintError;

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let (version, digest) = match text.split_once(':') {
            Some(("sha256", _)) => ("1", text),
            Some(parts) => parts,
            None => return Err(FingerprintError),
        };
        let plain = version.bytes().all(|byte| byte.is_ascii_digit()) && !version.starts_with('0');
        let number = version.parse().map_err(|_| FingerprintError)?;
        let digest = digest.parse().map_err(|_| FingerprintError)?;
        if plain { Ok(Self { version: number, digest }) } else { Err(FingerprintError) }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.version, self.digest)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_sharded_by_its_namespace_and_no_two_plugins_share_a_file() {
        assert_eq!(index("acme/guard"), "index/ac/me/acme/guard");
        assert_eq!(index("abc/x"), "index/3/a/abc/x");
        assert_eq!(index("ab/x"), "index/2/ab/x");
        assert_eq!(index("a/x"), "index/1/a/x");
        assert_eq!(index("acme2/guard"), "index/ac/me/acme2/guard");
    }

    #[test]
    fn what_could_leave_a_directory_is_no_name() {
        for bad in [
            "", "acme", "acme/", "/x", "../x", "acme/..", "acme/x/y", "Acme/x", "acme/x.y", "-a/x", "a/x-",
            "a/%2e",
        ] {
            assert!(!is_plugin_name(bad), "{bad}");
        }
        assert!(
            is_plugin_name("acme/github-guard")
                && is_pattern("acme/*")
                && !is_pattern("*")
                && !is_pattern("a*/b")
        );
    }

    #[test]
    fn a_fingerprint_has_one_spelling_for_each_root() {
        let digest = Digest::of(b"root");
        let third = Fingerprint { version: 3, digest };
        assert_eq!(third.to_string().parse(), Ok(third));
        assert_eq!(digest.to_string().parse(), Ok(Fingerprint { version: 1, digest }));
        for bad in ["", "3", "03:", "+3:", "x:"] {
            assert!(format!("{bad}{digest}x").parse::<Fingerprint>().is_err());
        }
        assert!(format!("03:{digest}").parse::<Fingerprint>().is_err());
        assert!(format!("+3:{digest}").parse::<Fingerprint>().is_err());
    }
}
