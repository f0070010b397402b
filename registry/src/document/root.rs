//! The root: which keys have which role, and how many of them must sign.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolgate_signing::{PublicKey, Threshold};

use super::{Broken, Document};
use crate::layout;
use crate::time::Time;

/// Most days that a renewal of the snapshot may reach.
const MAX_REFRESH_DAYS: u32 = 366;
/// Most keys of a root.
const MAX_KEYS: usize = 64;

/// `root/<n>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// Counts from 1 without a gap.
    pub version: u64,
    /// After this the registry needs a new root.
    pub expires: Time,
    /// Which registry this is, as `plugins.example/main`. The same in every root.
    pub origin: String,
    /// Goes up when the log begins anew, after keys that could append to it were stolen.
    pub epoch: u64,
    /// How many days a renewal of the snapshot may reach, from when it is read.
    pub refresh_days: u32,
    /// Every key by its id.
    pub keys: BTreeMap<String, PublicKey>,
    /// Who may do what.
    pub roles: Roles,
}

/// The rule of each role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roles {
    /// Changes roots.
    pub root: RoleRule,
    /// Says whose keys may sign which plugins.
    pub delegate: RoleRule,
    /// Revokes releases and keys.
    pub revoke: RoleRule,
    /// Adds lines and yanks.
    pub snapshot: RoleRule,
    /// Renews the expiry of a snapshot, and can do nothing else.
    pub refresh: RoleRule,
}

/// So many of these keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleRule {
    /// Ids of keys, sorted, each once.
    pub keys: Vec<String>,
    /// How many of them must sign.
    pub threshold: u32,
}

/// A role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Changes roots.
    Root,
    /// Delegates namespaces.
    Delegate,
    /// Revokes.
    Revoke,
    /// Publishes and yanks.
    Snapshot,
    /// Renews.
    Refresh,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Root, Self::Delegate, Self::Revoke, Self::Snapshot, Self::Refresh];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Delegate => "delegate",
            Self::Revoke => "revoke",
            Self::Snapshot => "snapshot",
            Self::Refresh => "refresh",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Root {
    /// The rule of a role.
    pub const fn rule(&self, role: Role) -> &RoleRule {
        match role {
            Role::Root => &self.roles.root,
            Role::Delegate => &self.roles.delegate,
            Role::Revoke => &self.roles.revoke,
            Role::Snapshot => &self.roles.snapshot,
            Role::Refresh => &self.roles.refresh,
        }
    }

    /// The keys of a role and how many of them must sign.
    pub fn threshold(&self, role: Role) -> Threshold {
        let wanted = self.rule(role);
        let keys = wanted.keys.iter().filter_map(|id| self.keys.get(id).copied()).collect();
        Threshold { keys, minimum: wanted.threshold }
    }

    /// The origin under the checkpoints of this epoch: a log that begins anew is another log.
    pub(crate) fn log_origin(&self) -> String {
        if self.epoch == 1 { self.origin.clone() } else { format!("{}/{}", self.origin, self.epoch) }
    }
}

impl Document for Root {
    const WHAT: &'static str = "root";
    const PAYLOAD_TYPE: &'static str = "application/vnd.toolgate.registry.root.v1+json";

    fn version(&self) -> u64 {
        self.version
    }

    fn expires(&self) -> Time {
        self.expires
    }

    fn check(&self) -> Result<(), Broken> {
        let named = self.keys.iter().all(|(id, key)| key.id().as_str() == id);
        let rules = [
            (layout::is_origin(&self.origin), "origin", "a host and a path, as plugins.example/main"),
            ((1..=super::MAX_VERSION).contains(&self.epoch), "epoch", "at least 1"),
            ((1..=MAX_REFRESH_DAYS).contains(&self.refresh_days), "refresh_days", "1 to 366"),
            (self.keys.len() <= MAX_KEYS, "keys", "at most 64"),
            (named, "keys", "each under its own id"),
        ];
        if let Some((_, member, rule)) = rules.into_iter().find(|(holds, ..)| !holds) {
            return Err((member, rule));
        }
        Role::ALL.into_iter().try_for_each(|role| {
            let rule = self.rule(role);
            let sorted = rule.keys.is_sorted_by(|left, right| left < right);
            let known = rule.keys.iter().all(|id| self.keys.contains_key(id));
            let possible = rule.threshold >= 1 && rule.threshold as usize <= rule.keys.len();
            match (sorted && known, possible) {
                (true, true) => Ok(()),
                (false, _) => Err(("roles", "keys of this root, sorted, each once")),
                (true, false) => Err(("roles", "a threshold from 1 to the number of keys")),
            }
        })
    }
}
