//! The registries of plugins that the operator names, and how hosts are reached: `plugins.indexes` and
//! `plugins.hosts`.

use std::path::PathBuf;
use std::time::Duration;

use toolgate_base::Secret;
use toolgate_signing::Digest;

/// How often an index is asked while Toolgate serves, unless its entry says otherwise.
pub(crate) const DEFAULT_REFRESH: Duration = Duration::from_hours(1);

/// One entry of `plugins.indexes`. Naming it is the grant for its host; its root is trusted by its
/// fingerprint and in no other way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// What the operator calls it; also names the directory of what was seen of it.
    pub name: String,
    /// An https URL, plain http to a loopback address, or the absolute path of a directory.
    pub place: String,
    /// Which root is trusted at first: its version, from 1.
    pub root_version: u64,
    /// The sha256 of that root's signed bytes.
    pub root: Digest,
    /// How often it is asked while Toolgate serves. Default one hour, at least one second.
    pub refresh: Duration,
}

/// `plugins.update`: what happens when a newer release of an installed plugin is found, where the install
/// did not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Updates {
    /// A person is asked.
    #[default]
    Ask,
    /// It is taken, if it may do no more than the one before.
    Auto,
    /// Nothing is looked for: `plugin update` refuses.
    Never,
}

/// One entry of `plugins.hosts`: what is known of a host that plugins come from, be it that of an index, of
/// an OCI registry or of a release.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceHost {
    /// The host in lower case, with its port where that is not 443.
    pub host: String,
    /// A file with certificates of authorities, as PEM, that are believed for it beside those of this machine.
    pub ca: Option<PathBuf>,
    /// Whether it has an address of a private network.
    pub private: bool,
    /// As whom to sign in to an OCI registry, with the password.
    pub sign_in: Option<(String, Secret)>,
    /// The password as it stands in the file, where it is a template.
    pub(crate) shown_password: String,
}
