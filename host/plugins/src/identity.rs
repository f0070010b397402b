//! What makes one loaded plugin this plugin, for whatever must not outlive a change of it.

use toolgate_signing::Digest;

use crate::decision::DecisionSet;

/// Component, release, settings and authority of a loaded plugin. A cached view of a list, a
/// pending ask and a lockfile line are bound to these (design.md 3.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The plugin's name.
    pub name: String,
    /// Digest of the component.
    pub component: Digest,
    /// Digest of the signed release.
    pub release: Digest,
    /// Digest of the settings as given.
    pub settings: Digest,
    /// What it may decide.
    pub decisions: DecisionSet,
    /// Whether what it says is only recorded.
    pub monitored: bool,
    /// Digest of the operator's grants, without the values of secrets.
    pub grants: Digest,
}

impl Identity {
    /// One line for a digest over several plugins. `role` keeps a policy and a fallback apart.
    pub(crate) fn line(&self, role: &str) -> String {
        // Names hold no line breaks (they are checked with the release), so lines cannot run together.
        format!(
            "{role}{} {} {} {} {} {} {}\n",
            if self.monitored { " monitored" } else { "" },
            self.name,
            self.component,
            self.release,
            self.settings,
            self.decisions.words().join(","),
            self.grants
        )
    }
}
