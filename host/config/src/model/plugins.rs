//! The `plugins` block: which signed components are loaded, who may sign them, and what each is granted.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use toolgate_grants::Grants;
use toolgate_signing::{Digest, PublicKey};

use crate::index::{Index, SourceHost, Updates};
use crate::places::Places;

/// A release that was taken back within three days reaches nobody who waits for them.
const DEFAULT_MIN_AGE: Duration = Duration::from_hours(72);

/// The `plugins` block.
#[derive(Debug, Clone)]
pub struct Plugins {
    /// Whether the bundle in the binary is loaded.
    pub bundle: Bundle,
    /// The policies that are asked when every other one abstained, in order.
    pub fallback: Vec<String>,
    /// Who may sign which plugins.
    pub trust: Vec<TrustRule>,
    /// Further plugins, with what each may do.
    pub load: Vec<Load>,
    /// Whether `<data_dir>/plugins.d` counts.
    pub managed: bool,
    /// How young a release may be that an update takes, counted from when it was published. Default three days.
    pub min_age: Duration,
    /// What happens when a newer release of an installed plugin is found.
    pub update: Updates,
    /// Registries of plugins, in the order in which they are asked.
    pub indexes: Vec<Index>,
    /// What is known of hosts that plugins come from.
    pub hosts: Vec<SourceHost>,
}

impl Default for Plugins {
    fn default() -> Self {
        Self {
            bundle: Bundle::Default,
            fallback: vec!["toolgate/ask".to_owned()],
            trust: Vec::new(),
            load: Vec::new(),
            managed: true,
            min_age: DEFAULT_MIN_AGE,
            update: Updates::default(),
            indexes: Vec::new(),
            hosts: Vec::new(),
        }
    }
}

/// `plugins.bundle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bundle {
    /// The signed components in the binary are loaded.
    Default,
    /// None of them is: with no other policy, nothing passes.
    None,
}

/// One rule of `plugins.trust`.
#[derive(Debug, Clone)]
pub struct TrustRule {
    /// The plugins it is about: `acme/name`, or `acme/*` for everything of `acme`.
    pub plugins: String,
    /// Distinct keys, at least one.
    pub keys: Vec<PublicKey>,
    /// How many of `keys` must have signed: 1 to the number of keys.
    pub minimum: u32,
    /// Those of `keys` that must have signed, whoever else did.
    pub all_of: Vec<PublicKey>,
    /// The one index that these plugins come from and whose revocations count for them; else any.
    pub index: Option<String>,
    /// Whether `plugin trust add` made it, and not the operator's file.
    pub added: bool,
}

/// One entry of `plugins.load`.
#[derive(Clone)]
pub struct Load {
    /// The plugin's name (`acme/strict-policy`), or the path of a directory as written (`./DIR`).
    pub plugin: String,
    /// For a path: where it leads, counted from the config file.
    pub dir: Option<PathBuf>,
    /// The versions that will do; `None` takes what the lock or the directory has.
    pub version: Option<semver::VersionReq>,
    /// Which decisions count: of `allow`, `ask`, `deny`, `redact`. Default: all but `allow`.
    pub decisions: Vec<String>,
    /// `mode: monitor`: what it says is recorded and decides nothing.
    pub monitor: bool,
    /// A JSON object, as text.
    pub settings_json: String,
    /// Where each of the settings stands.
    pub settings_places: Places,
    /// The one release that it stands for, where something says so: an installed plugin, or a name that
    /// `toolgate.lock` has. A directory and a name of the bundle have none.
    pub pinned: Option<Pinned>,
    /// What it may reach beyond its own memory.
    pub granted: Grants,
    /// The settings with templates in place of what variables expanded to.
    pub(crate) shown_settings: Value,
    /// The grants likewise.
    pub(crate) shown_grants: Value,
}

/// The release that an entry stands for, by its digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    /// Who says so.
    pub by: PinnedBy,
    /// `policy`, `adapter` or `installer`.
    pub kind: String,
    /// Digest of the component.
    pub component: Digest,
    /// Digest of the release, which also names the directory of its files.
    pub release: Digest,
    /// The index of `plugins.indexes` that it came from, with its place in the log there.
    pub from: Option<(String, u64)>,
}

/// Where a release is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinnedBy {
    /// In `plugins.d`, by an install on this machine.
    Install,
    /// In `toolgate.lock`, for an entry of `toolgate.yaml`.
    Lock,
}

impl Load {
    /// Whether it comes from the layer `plugins.d` and not from `toolgate.yaml`.
    pub fn is_installed(&self) -> bool {
        self.pinned.as_ref().is_some_and(|pinned| pinned.by == PinnedBy::Install)
    }

    /// The name, where the entry states one; a directory holds whatever it holds.
    pub fn name(&self) -> Option<&str> {
        (self.dir.is_none() || self.pinned.is_some()).then_some(self.plugin.as_str())
    }

    /// Digest of everything that was granted: decisions, settings and grants, with templates in place of
    /// what variables expand to, so that no secret can be guessed from it.
    pub fn grants_digest(&self) -> Digest {
        let mut decisions = self.decisions.clone();
        // Taking a policy's say away is no less than granting it one.
        decisions.extend(self.monitor.then(|| "monitor".to_owned()));
        decisions.sort_unstable();
        grants_digest(&decisions, &self.shown_settings, &self.shown_grants)
    }
}

/// Digest of a grant. The decisions are sorted.
pub fn grants_digest(decisions: &[String], settings: &Value, grants: &Value) -> Digest {
    let whole = serde_json::json!({ "decisions": decisions, "settings": settings, "grants": grants });
    // A value has no duplicate key and no broken text, so it always has a canonical form.
    let text = toolgate_signing::canonical_json(&whole.to_string()).unwrap_or_default();
    Digest::of_parts(&[b"toolgate grants v1\n", text.as_bytes()])
}

impl fmt::Debug for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Settings and grants may hold what a variable expanded to.
        formatter
            .debug_struct("Load")
            .field("plugin", &self.plugin)
            .field("version", &self.version)
            .field("decisions", &self.decisions)
            .finish_non_exhaustive()
    }
}
