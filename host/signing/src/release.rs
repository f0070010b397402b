//! What a release says: the predicate of the signed statement, version 1, closed.
//!
//! A member that version 1 does not have is refused, because a host that skipped it would ignore
//! what the signer meant to forbid; a new member is a new version, under a new predicate type.
//! The values are checked when a release is verified, not when one of these is made.

mod check;

use std::collections::BTreeMap;

use semver::Version;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

pub(crate) use check::check;

/// `_type` of the statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// `predicateType` of the statement.
pub const PREDICATE_TYPE: &str = "https://toolgate.dev/plugin-release/v1";

/// One release of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// `namespace/name`, both of lowercase letters, digits and `-`.
    pub name: String,
    /// The version for people.
    pub version: Version,
    /// Goes up with every release of this plugin, whatever the version says: the guard against rollback.
    pub sequence: u64,
    /// What it is.
    pub kind: Kind,
    /// The WIT world that the component targets, as `toolgate:plugin/policy@0.1.0`.
    pub world: String,
    /// Exactly the interfaces that the component imports; sorted, each once.
    pub imports: Vec<String>,
    /// Exactly the interfaces that the component exports; sorted, each once.
    pub exports: Vec<String>,
    /// What it asks of the host beyond the interfaces that are always there.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// The decisions it may give, of `allow`, `ask`, `deny`, `redact`; each once. Empty unless a policy.
    pub decisions: Vec<String>,
    /// What it asks for; the host gives at most its own limits.
    pub limits: Limits,
    /// The oldest host that can load it.
    pub min_host: Version,
    /// For an adapter: the servers it is made for; sorted, each once.
    #[serde(default)]
    pub servers: Vec<String>,
    /// RFC 6901 pointers into the settings where the operator may name hosts for `http`.
    #[serde(default)]
    pub settings_hosts: Vec<String>,
    /// Digest of the JSON Schema of its settings.
    pub settings_schema: Option<Digest>,
    /// Digest of its readme.
    pub readme: Option<Digest>,
    /// Digest of its bill of materials.
    pub sbom: Option<Digest>,
    /// Digest of the sources it was built from.
    pub sources: Option<Digest>,
    /// The toolchain it was built with, on which the component's bytes depend.
    pub toolchain: String,
    /// Digest of the envelope of the release before this one.
    pub previous: Option<Digest>,
    /// When it was published: `YYYY-MM-DDTHH:MM:SSZ`.
    pub published: String,
}

/// The kinds of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Judges requests.
    Policy,
    /// Knows a source of servers.
    Installer,
    /// Knows one server.
    Adapter,
}

impl Kind {
    /// The word for it in releases, configuration and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Installer => "installer",
            Self::Adapter => "adapter",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a release asks for in time and space. Zero asks for the host's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Linear memory in bytes.
    pub memory_bytes: u64,
    /// Running time of one call in milliseconds.
    pub call_ms: u64,
    /// Running time of starting an instance in milliseconds.
    pub init_ms: u64,
    /// Bytes that one host call may carry.
    pub host_bytes: u64,
}

/// Capabilities by interface and label. The operator's grant opens a label; nothing is open without one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// Requests over HTTP.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub http: BTreeMap<String, HttpCapability>,
    /// Secrets that the host puts into headers it sends.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretCapability>,
    /// Key-value stores.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kv: BTreeMap<String, KvCapability>,
    /// Directories.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, FilesCapability>,
    /// For a guest whose language needs a libc: a WASI with nothing in it. None: `wasi:*` is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasi: Option<Wasi>,
}

/// How much of WASI a guest gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wasi {
    /// It links, and there is nothing in it: no files, arguments, variables, sockets or names.
    Sealed,
}

impl Capabilities {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.http.is_empty()
            && self.secrets.is_empty()
            && self.kv.is_empty()
            && self.files.is_empty()
            && self.wasi.is_none()
    }
}

/// One label of `http`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpCapability {
    /// Origins, as `https://api.example.com`.
    pub hosts: Vec<String>,
    /// Methods in lowercase.
    pub methods: Vec<String>,
    /// Largest response in bytes; none asks for the host's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_response: Option<u64>,
}

/// One label of `secrets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretCapability {
    /// What it is for, in a few words for the operator.
    pub purpose: String,
    /// Origins that it may be sent to.
    pub send_to: Vec<String>,
    /// Whether the plugin asks to see the secret itself, which is a grant of its own.
    #[serde(default)]
    pub reveal: bool,
}

/// One label of `kv`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvCapability {
    /// Bytes of keys and values together.
    pub max_bytes: u64,
}

/// One label of `files`. The operator binds a directory to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesCapability {
    /// What may be done there.
    pub access: Access,
    /// RFC 6901 pointer into the settings where the operator may name the directories instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
}

/// What may be done with a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// The statement around a release; the predicate is borrowed when one is written and owned when one is read.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Statement<P> {
    #[serde(rename = "_type")]
    pub(crate) kind: String,
    pub(crate) subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    pub(crate) predicate_type: String,
    pub(crate) predicate: P,
}

/// What a statement is about.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) digest: SubjectDigest,
}

/// The digest of the component, in the spelling of in-toto.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubjectDigest {
    pub(crate) sha256: String,
}

#[cfg(test)]
pub(crate) mod tests;
