//! Why a registry, or something in it, is not used. Each attack has a reason of its own.

use std::path::PathBuf;

use semver::Version;
use toolgate_base::lock::LockError;
use toolgate_signing::{Digest, KeyId, VerifyError};

use crate::layout::Fingerprint;
use crate::time::Time;

/// What an error means for whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Something is not what was signed, seen or recorded.
    Integrity,
    /// What was asked for cannot be: a reference, a setting, a file of a newer format.
    Usage,
    /// The machine or the network failed, or there is nothing of that name.
    Failed,
    /// Somebody has to sign in first.
    Authentication,
}

/// Why a registry or a release in it is refused.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Too few of the keys of its role signed a document.
    #[error("the registry's {what} is refused: {source}")]
    Unsigned {
        /// Which document.
        what: String,
        /// What did not match.
        source: Box<VerifyError>,
    },
    /// A signed document, a line or a file does not have the one form it must have.
    #[error("the registry's {what} is malformed: {detail}")]
    Malformed {
        /// What is.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The first root is not the one that was named.
    #[error("the registry's root {} has the fingerprint {found}, and {} was given; compare it with its maintainers before anything else", .expected.version, .expected.digest)]
    Fingerprint {
        /// What the operator gave.
        expected: Fingerprint,
        /// The digest of what is there.
        found: Digest,
    },
    /// A new root is not signed by enough of the keys of the root before it.
    #[error("root {version} of the registry is not signed by the keys of root {}, so it is no rotation of it: {source}", .version - 1)]
    RootByOld {
        /// The new root.
        version: u64,
        /// What did not match.
        source: Box<VerifyError>,
    },
    /// A new root is not signed by enough of its own keys.
    #[error("root {version} of the registry is not signed by its own keys: {source}")]
    RootByNew {
        /// The new root.
        version: u64,
        /// What did not match.
        source: Box<VerifyError>,
    },
    /// A root says another version than its file, or another origin than the root before it.
    #[error("the registry's root {version} says {found} where {expected} belongs")]
    RootMember {
        /// The version of the file.
        version: u64,
        /// What belongs there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Something older than what was seen before.
    #[error("the registry shows {what} {found}, and {known} was seen before: somebody rolled it back")]
    Rollback {
        /// Which document, or the log.
        what: String,
        /// What was seen.
        known: u64,
        /// What is shown.
        found: u64,
    },
    /// A version so far ahead that nothing honest could ever follow it.
    #[error("the registry's {what} jumps to version {found} from {known}; no version may be more than {step} ahead", step = crate::client::MAX_STEP)]
    FastForward {
        /// Which document.
        what: String,
        /// What was seen.
        known: u64,
        /// What is shown.
        found: u64,
    },
    /// Two contents under one version.
    #[error("the registry shows a second {what} of version {version}: its keys signed two different ones")]
    Equivocation {
        /// Which document.
        what: String,
        /// The version.
        version: u64,
    },
    /// What is shown ended some time ago; somebody may be holding back what is new.
    #[error(
        "the registry's {what} expired at {expired} (it is {now}); nothing new is taken from it until its maintainers renew it"
    )]
    Expired {
        /// Which document.
        what: String,
        /// When.
        expired: Time,
        /// What the clock says.
        now: Time,
    },
    /// The renewal of a snapshot reaches further than the root allows.
    #[error("the registry's freshness reaches to {until}, and its root allows {days} days")]
    TooFresh {
        /// How far.
        until: Time,
        /// The days of the root.
        days: u32,
    },
    /// Pieces of two states of the registry.
    #[error(
        "the registry's {what} is {found}, and its snapshot names {expected}: they do not belong together"
    )]
    MixAndMatch {
        /// Which piece.
        what: String,
        /// What the snapshot names.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The log is no continuation of the log that was seen.
    #[error(
        "the registry's log of {size} lines is no continuation of the {known} lines that were seen: its history was rewritten"
    )]
    Fork {
        /// Lines that were seen.
        known: u64,
        /// Lines that are shown.
        size: u64,
    },
    /// The note over the log is not signed, or is of another log.
    #[error("the registry's checkpoint is refused: {detail}")]
    Checkpoint {
        /// What did not match.
        detail: String,
    },
    /// A line that was seen is another now, or is gone.
    #[error("the registry's lines of {name} are not those that were seen before: lines are only ever added")]
    Rewritten {
        /// The plugin.
        name: String,
    },
    /// A revocation was there and is gone, without new keys for its role.
    #[error(
        "the registry no longer revokes {what}, which it did before; only after its keys were rotated may a revocation go"
    )]
    Withdrawn {
        /// A digest or a key.
        what: String,
    },
    /// A release that nobody should run.
    #[error("{name} {version} was revoked at {at}: {reason}")]
    Revoked {
        /// The plugin.
        name: String,
        /// The version.
        version: Version,
        /// When.
        at: Time,
        /// Why, in the words of the registry.
        reason: String,
    },
    /// A release that is signed by keys that count no more for its place in the log.
    #[error("{name} {version} is signed by the key {key}, which was revoked at {at}: {reason}")]
    KeyRevoked {
        /// The plugin.
        name: String,
        /// The version.
        version: Version,
        /// The key.
        key: KeyId,
        /// When.
        at: Time,
        /// Why.
        reason: String,
    },
    /// A release that is hidden from resolution.
    #[error("{name} {version} was yanked: {reason}")]
    Yanked {
        /// The plugin.
        name: String,
        /// The version.
        version: Version,
        /// Why.
        reason: String,
    },
    /// A release that came into the index too late for whoever asks.
    #[error("{name} {version} came into the index at {published}, which is not long enough ago")]
    Young {
        /// The plugin.
        name: String,
        /// The version.
        version: Version,
        /// When it came into the index.
        published: Time,
    },
    /// Nobody may sign this plugin at this place of the log.
    #[error("the registry delegates {name} to nobody at line {log} of its log")]
    NotDelegated {
        /// The plugin.
        name: String,
        /// Its place in the log.
        log: u64,
    },
    /// The release and its line in the index say different things.
    #[error("the release of {name} says {found} where the index says {expected}")]
    Disagrees {
        /// The plugin.
        name: String,
        /// What the index says.
        expected: String,
        /// What the release says.
        found: String,
    },
    /// A file is not the one that was named by digest.
    #[error("{what} is {found}, and {expected} was named")]
    Digest {
        /// What is.
        what: String,
        /// What was named.
        expected: Digest,
        /// What came.
        found: Digest,
    },
    /// A file is larger than it may be, or than it was said to be.
    #[error("{what} has more than {limit} bytes, which is its limit")]
    TooLarge {
        /// What is.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// There is nothing of that name.
    #[error("the registry has no {0}")]
    Absent(String),
    /// No release of the plugin fits.
    #[error("no release of {name} fits {range}; {why}")]
    NoVersion {
        /// The plugin.
        name: String,
        /// What was asked for.
        range: String,
        /// What there is.
        why: String,
    },
    /// A source that cannot be used.
    #[error("{what} is no registry: {why}")]
    Source {
        /// As it was given.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// A registry wants a sign-in that it did not get.
    #[error("{url} wants a sign-in: {why}")]
    SignIn {
        /// What was asked.
        url: String,
        /// What is missing or was refused.
        why: String,
    },
    /// An address that may not be dialled.
    #[error("{url} is not asked: {why}")]
    NotDialled {
        /// Where to.
        url: String,
        /// Which address it is.
        why: String,
    },
    /// A text that refers to no plugin.
    #[error("`{what}` refers to no plugin: {why}")]
    Reference {
        /// As it was given.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The other side did not answer, or not with the file.
    #[error("{url} cannot be fetched: {detail}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// What happened.
        detail: String,
    },
    /// What this machine remembers of the registry cannot be read. It is never started anew.
    #[error("what was seen of the registry cannot be read ({}): {what}; it is no first use: restore it, or move the directory away to trust the registry anew", .path.display())]
    State {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// What this machine remembers was written by a newer version.
    #[error("{} has format {found}, and this version reads {}; use the newer version", .path.display(), crate::state::FORMAT)]
    NewerState {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// The clock is behind the last time the registry was seen good.
    #[error(
        "the clock says {now}, and the registry was seen good at {seen}: set the clock, or nothing can be said to be fresh"
    )]
    Clock {
        /// What it says.
        now: Time,
        /// When the registry was seen.
        seen: Time,
    },
    /// The registry was never refreshed here.
    #[error("the registry was not read yet on this machine; refresh it first")]
    NeverSeen,
    /// Somebody else is at it.
    #[error(transparent)]
    Busy(#[from] LockError),
    /// A file of this machine.
    #[error("{} cannot be {doing}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Read, written, made.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl RegistryError {
    /// A stable word for the reason, as tests, vectors and `--json` have it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unsigned { .. } => "signature",
            Self::Malformed { .. } => "malformed",
            Self::Fingerprint { .. } => "fingerprint",
            Self::RootByOld { .. } => "root-old-keys",
            Self::RootByNew { .. } => "root-new-keys",
            Self::RootMember { .. } => "root-member",
            Self::Rollback { .. } => "rollback",
            Self::FastForward { .. } => "fast-forward",
            Self::Equivocation { .. } => "equivocation",
            Self::Expired { .. } => "freeze",
            Self::TooFresh { .. } => "too-fresh",
            Self::MixAndMatch { .. } => "mix-and-match",
            Self::Fork { .. } => "fork",
            Self::Checkpoint { .. } => "checkpoint",
            Self::Rewritten { .. } => "rewritten",
            Self::Withdrawn { .. } => "withdrawn",
            Self::Revoked { .. } => "revoked",
            Self::KeyRevoked { .. } => "key-revoked",
            Self::Yanked { .. } => "yanked",
            Self::Young { .. } => "young",
            Self::NotDelegated { .. } => "not-delegated",
            Self::Disagrees { .. } => "disagrees",
            Self::Digest { .. } => "digest",
            Self::TooLarge { .. } => "too-large",
            Self::Absent(_) => "absent",
            Self::NoVersion { .. } => "no-version",
            Self::Source { .. } => "source",
            Self::SignIn { .. } => "sign-in",
            Self::NotDialled { .. } => "not-dialled",
            Self::Reference { .. } => "reference",
            Self::Unreachable { .. } => "unreachable",
            Self::State { .. } => "state",
            Self::NewerState { .. } => "newer-state",
            Self::Clock { .. } => "clock",
            Self::NeverSeen => "never-seen",
            Self::Busy(_) => "busy",
            Self::Io { .. } => "io",
        }
    }

    /// What kind of error this is, for exit codes.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::SignIn { .. } => ErrorClass::Authentication,
            Self::Source { .. }
            | Self::NotDialled { .. }
            | Self::Reference { .. }
            | Self::NewerState { .. } => ErrorClass::Usage,
            Self::Absent(_)
            | Self::NoVersion { .. }
            | Self::Yanked { .. }
            | Self::Young { .. }
            | Self::Unreachable { .. }
            | Self::Clock { .. }
            | Self::NeverSeen
            | Self::Busy(_)
            | Self::Io { .. } => ErrorClass::Failed,
            _ => ErrorClass::Integrity,
        }
    }

    pub(crate) fn malformed(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Malformed { what: what.into(), detail: detail.into() }
    }
}
