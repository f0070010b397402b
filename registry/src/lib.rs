//! Plugin registries: the format of the index, the client that believes nothing, the publisher and a
//! static server.
//!
//! A registry is a set of static files, in a directory or over HTTPS. Nothing that serves them is
//! trusted: a mirror, a cache or whoever took the web server can at most withhold what is new, and that
//! is noticed when the snapshot expires.
//!
//! # The files
//! | path | what | changes |
//! |---|---|---|
//! | `config.json` | format and origin | never |
//! | `root/<n>.json` | keys and thresholds of every role; n counts from 1 without a gap | added |
//! | `delegations/<n>.json` | whose keys may sign the releases of which namespace, for which part of the log | added |
//! | `revocations/<n>.json` | releases and keys that count no more | added |
//! | `snapshot/<n>.json` | which of these belong together, under root n; when that stops being true | replaced |
//! | `freshness.json` | a later expiry for exactly one snapshot | replaced |
//! | `index/<shard>/<namespace>/<name>` | the lines of one plugin | appended |
//! | `blob/<sha256>` | components, releases, lists of names, and what a release names by digest | added |
//! | `tile/0/…`, `checkpoint` | the transparency log over all lines | added, replaced |
//!
//! Every signed document is a DSSE envelope with a payload type of its own, around canonical JSON that
//! has exactly the members this version knows. Replacing the snapshot is the one step that publishes:
//! everything it names was there before under a name that nobody looks at yet, so a publisher that is
//! killed leaves the old registry or the new one.
//!
//! # What the client checks
//! See [`Client`]; the rules are those of The Update Framework (TUF 1.0.34, section 5), and each check
//! names its clause.

mod checkpoint;
mod client;
mod document;
mod error;
mod files;
mod foreign;
mod layout;
mod line;
mod merkle;
mod names;
pub mod oci;
mod publisher;
mod reach;
mod reference;
mod serve;
mod source;
mod state;
mod tile;
mod time;

pub use client::{Client, Fetched, Freshness, Refreshed, Remembered, ResolvedRelease, Revocation, Skipped};
pub use document::{
    Config, Delegations, File, FreshnessDocument, Log, Period, Pin, Revocations, RevokedKey, RevokedRelease,
    Role, RoleRule, Roles, Root, Snapshot,
};
pub use error::{ErrorClass, RegistryError};
pub use foreign::parse_everything;
pub use layout::{Fingerprint, is_plugin_name};
pub use line::{Line, Listed, ReleaseLine, YankLine};
pub use names::NameEntry;
pub use publisher::{
    DocumentStatus, Finished, Init, Initialised, Mirrored, PROPOSAL, Plugin, Proposal, PublishError,
    Published, Publisher, Revoke, RootChange, Signers, Status, Verified, first_root, mirror,
    proposal_to_sign, read_proposal, sign_proposal, verify,
};
pub use reach::{Credentials, Host, Reach};
pub use reference::{Reference, push_target};
pub use serve::Server;
pub use source::Source;
pub use time::Time;

/// Largest component, bytes.
pub const MAX_COMPONENT: u64 = 64 * 1024 * 1024;

/// Whose log a text is about that waits for the signatures of a checkpoint, and how many lines the log has;
/// nothing if it is no such text.
pub fn unsigned_checkpoint(text: &str) -> Option<(String, u64)> {
    checkpoint::Checkpoint::of_text(text).map(|found| (found.origin, found.size))
}
