//! Why a plugin is not in force: what happened, to which plugin, and whether something is not what was
//! signed, accepted or named.

use std::path::PathBuf;

use toolgate_plugins::{LoadError, Whose};
use toolgate_signing::{Digest, VerifyError};

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
    /// An installed plugin is not the one that was accepted.
    #[error(
        "plugin {plugin} is refused: its {what} is {found}, and {accepted} was accepted when it was installed"
    )]
    NotAsAccepted {
        /// The plugin.
        plugin: String,
        /// `component` or `release`.
        what: &'static str,
        /// The digest in `plugins.d`.
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
            Self::Denied { .. } => "denied",
            Self::NotAsAccepted { .. } => "not-as-accepted",
            Self::DenialsUnreadable { .. } => "denials-unreadable",
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
            | Self::NotAsAccepted { .. }
            | Self::DenialsUnreadable { .. } => true,
            Self::Unloadable { source } => source.kind.whose() != Whose::OperatorDenied,
            Self::Unreadable { .. } | Self::Unknown { .. } | Self::Entry { .. } => false,
        }
    }
}
