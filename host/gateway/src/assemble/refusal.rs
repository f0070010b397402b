//! Why a plugin is not in force: what happened, to which plugin, and whether something is not what was
//! signed, accepted or named.

use std::path::PathBuf;

use toolgate_plugins::{LoadError, Whose};
use toolgate_signing::{Digest, VerifyError};

/// A release that an index revoked.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "plugin {plugin} {version} was revoked by the index {index} at {at}{}: {reason}; take another release with `toolgate plugin update {plugin}`, or remove it",
    if *.by_key { ", with a key that signed it" } else { "" }
)]
pub struct Revoked {
    /// The plugin.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Digest of the release.
    pub release: Digest,
    /// The index that revoked it.
    pub index: String,
    /// Why, in the words of the index.
    pub reason: String,
    /// When.
    pub at: String,
    /// Whether a key was revoked, and not this release.
    pub by_key: bool,
}

/// Why a plugin is not in force.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Its files cannot be read.
    #[error("plugin {plugin}: {path} cannot be read: {source}")]
    Unreadable {
        /// The plugin as configured.
        plugin: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The release or the component is not what was signed by a trusted key.
    #[error("plugin {plugin} is refused before compilation: {source}")]
    Unverified {
        /// The plugin as configured.
        plugin: String,
        /// What did not match.
        source: Box<VerifyError>,
    },
    /// It is signed, and it is another plugin or version than the configuration names.
    #[error("plugin {plugin} is refused: the release is {found}, which is not what the configuration names")]
    Mismatch {
        /// The plugin as configured.
        plugin: String,
        /// Name and version that the release states.
        found: String,
    },
    /// It is signed and does not fit the host or the grant.
    #[error("{source}")]
    Unloadable {
        /// What did not fit.
        source: Box<LoadError>,
    },
    /// Nothing of that name is in the bundle, and no directory was given.
    #[error(
        "plugin {plugin} is neither in the bundle nor in a directory of plugins.load; add {{ plugin: ./DIR }} there"
    )]
    Unknown {
        /// The plugin as configured.
        plugin: String,
    },
    /// A name that an index has to resolve, and no lock says to what.
    #[error("plugin {plugin} is not in the bundle, and no release of it is locked: {reason}")]
    Unresolved {
        /// The plugin as configured.
        plugin: String,
        /// What is missing, and what to do.
        reason: String,
    },
    /// The lock names a release whose files were never fetched to this machine.
    #[error(
        "plugin {plugin} is locked at release {release}, whose files are not on this machine; `toolgate lock check` fetches them"
    )]
    NotHere {
        /// The plugin as configured.
        plugin: String,
        /// The release in the lock.
        release: Digest,
    },
    /// Its digest is denied.
    #[error(
        "plugin {plugin} is denied: {digest} ({reason}, {at}); install another release, or lift it with `toolgate plugin deny --lift {digest}`"
    )]
    Denied {
        /// The plugin as configured.
        plugin: String,
        /// The digest of component or release that is denied.
        digest: Digest,
        /// Why, in the words of whoever denied it.
        reason: String,
        /// When.
        at: String,
    },
    /// An index revoked it, or the keys that signed it.
    #[error(transparent)]
    Revoked(Box<Revoked>),
    /// What an index revoked cannot be read, so nothing can be checked against it.
    #[error("plugin {plugin} is refused, because what the index {index} revoked cannot be read: {reason}")]
    RevocationsUnreadable {
        /// The plugin.
        plugin: String,
        /// The index.
        index: String,
        /// What is wrong with what was seen of it.
        reason: String,
    },
    /// An installed plugin is not the one that was accepted.
    #[error(
        "plugin {plugin} is refused: its {what} is {found}, and {accepted} was accepted when it was installed or locked"
    )]
    NotAsAccepted {
        /// The plugin.
        plugin: String,
        /// `component` or `release`.
        what: &'static str,
        /// The digest in `plugins.d` or `toolgate.lock`.
        accepted: Digest,
        /// The digest of the bytes.
        found: Digest,
    },
    /// What is denied cannot be read, so nothing can be checked against it.
    #[error("plugin {plugin} is refused, because what is denied cannot be read: {reason}")]
    DenialsUnreadable {
        /// The plugin as configured.
        plugin: String,
        /// What is wrong with the file.
        reason: String,
    },
    /// The settings do not fit the schema that the plugin came with.
    #[error("the settings of plugin {plugin} do not fit its schema:{}", lines(problems))]
    Settings {
        /// The plugin's name.
        plugin: String,
        /// One line for each fault, with file, line and column where the setting is written.
        problems: Vec<String>,
    },
    /// The entry itself cannot be used.
    #[error("plugin {plugin}: {reason}")]
    Entry {
        /// The plugin as configured.
        plugin: String,
        /// What is wrong with the entry.
        reason: String,
    },
}

impl Refusal {
    /// A stable word for the reason; for what a signature is about, that of the published vectors.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::Unverified { source, .. } => source.code(),
            Self::Mismatch { .. } => "mismatch",
            Self::Unloadable { .. } => "unloadable",
            Self::Unknown { .. } => "unknown",
            Self::Unresolved { .. } => "unresolved",
            Self::NotHere { .. } => "not-here",
            Self::Denied { .. } => "denied",
            Self::Revoked(revoked) if revoked.by_key => "key-revoked",
            Self::Revoked(_) => "revoked",
            Self::RevocationsUnreadable { .. } => "revocations-unreadable",
            Self::NotAsAccepted { .. } => "not-as-accepted",
            Self::DenialsUnreadable { .. } => "denials-unreadable",
            Self::Settings { .. } => "settings",
            Self::Entry { .. } => "entry",
        }
    }

    /// Whether something is not what was signed or named (exit code 5), as opposed to an entry that
    /// cannot be used.
    pub fn is_integrity(&self) -> bool {
        match self {
            Self::Unverified { .. }
            | Self::Mismatch { .. }
            | Self::Denied { .. }
            | Self::Revoked(_)
            | Self::RevocationsUnreadable { .. }
            | Self::NotAsAccepted { .. }
            | Self::DenialsUnreadable { .. } => true,
            Self::Unloadable { source } => source.kind.whose() != Whose::OperatorDenied,
            Self::Unreadable { .. }
            | Self::Unknown { .. }
            | Self::Unresolved { .. }
            | Self::Settings { .. }
            | Self::NotHere { .. }
            | Self::Entry { .. } => false,
        }
    }
}

fn lines(problems: &[String]) -> String {
    problems.iter().flat_map(|line| ["\n  ", line.as_str()]).collect()
}
