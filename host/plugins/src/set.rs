//! The plugins of one gateway, in the order in which they are asked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use toolgate_signing::Digest;

use crate::adapter::Adapter;
use crate::identity::Identity;
use crate::policy::Policy;

/// Policies in order, the fallbacks that are asked when all of them abstain, and adapters by the
/// name of their server. An empty set lets nothing pass (design.md 3.5).
#[derive(Clone, Default)]
pub struct PluginSet {
    policies: Vec<Arc<Policy>>,
    fallbacks: Vec<Arc<Policy>>,
    adapters: BTreeMap<String, Arc<Adapter>>,
    blocked: Vec<Blocked>,
}

/// A plugin that belongs into the set and is not in force. What it would have denied cannot be known,
/// so while one is here nothing passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The plugin, as configured.
    pub plugin: String,
    /// Why it is not in force, and what to do.
    pub reason: String,
}

impl PluginSet {
    /// A set of policies and fallbacks in order, without adapters.
    pub fn new(policies: Vec<Policy>, fallbacks: Vec<Policy>) -> Self {
        let shared = |list: Vec<Policy>| list.into_iter().map(Arc::new).collect();
        Self {
            policies: shared(policies),
            fallbacks: shared(fallbacks),
            adapters: BTreeMap::new(),
            blocked: Vec::new(),
        }
    }

    /// Adds a policy after those that are there.
    pub fn push_policy(&mut self, policy: impl Into<Arc<Policy>>) {
        self.policies.push(policy.into());
    }

    /// Adds a fallback policy after those that are there.
    pub fn push_fallback(&mut self, policy: impl Into<Arc<Policy>>) {
        self.fallbacks.push(policy.into());
    }

    /// Sets the adapter of a server, and gives back the one it had.
    pub fn set_adapter(
        &mut self,
        server: impl Into<String>,
        adapter: impl Into<Arc<Adapter>>,
    ) -> Option<Arc<Adapter>> {
        self.adapters.insert(server.into(), adapter.into())
    }

    /// Notes a policy that belongs here and is not in force: from then on nothing passes.
    pub fn block(&mut self, plugin: impl Into<String>, reason: impl Into<String>) {
        self.blocked.push(Blocked { plugin: plugin.into(), reason: reason.into() });
    }

    /// The policies that are missing; while there is one, nothing passes.
    pub fn blocked(&self) -> &[Blocked] {
        &self.blocked
    }

    /// Keeps what `old` has loaded of the same identity, with its warm instances and its failures in a
    /// row: a change of one plugin gives no other a new try. Those of `retried` are taken new.
    #[must_use]
    pub fn keeping(mut self, old: &Self, retried: &[String]) -> Self {
        let again = |name: &str| retried.iter().any(|retried| retried == name);
        for (mine, theirs) in [(&mut self.policies, &old.policies), (&mut self.fallbacks, &old.fallbacks)] {
            for policy in mine.iter_mut().filter(|policy| !again(policy.name())) {
                if let Some(kept) = theirs.iter().find(|kept| kept.identity() == policy.identity()) {
                    *policy = Arc::clone(kept);
                }
            }
        }
        for (server, adapter) in &mut self.adapters {
            if let Some(kept) = old.adapters.get(server)
                && kept.identity() == adapter.identity()
                && !again(adapter.name())
            {
                *adapter = Arc::clone(kept);
            }
        }
        self
    }

    /// The policies, in order.
    pub fn policies(&self) -> &[Arc<Policy>] {
        &self.policies
    }

    /// The fallback policies, in order.
    pub fn fallbacks(&self) -> &[Arc<Policy>] {
        &self.fallbacks
    }

    /// The adapter of a server.
    pub fn adapter(&self, server: &str) -> Option<&Arc<Adapter>> {
        self.adapters.get(server)
    }

    /// The adapters with the names of their servers, sorted.
    pub fn adapters(&self) -> impl Iterator<Item = (&str, &Arc<Adapter>)> {
        self.adapters.iter().map(|(server, adapter)| (server.as_str(), adapter))
    }

    /// Digest over order, components, releases, settings and authority of everything in the set.
    /// A pending ask and a cached view are bound to it, so that a change of any of them voids both.
    pub fn set_digest(&self) -> Digest {
        let mut text = String::from("toolgate plugin set 1\n");
        let mut add = |role: &str, identity: &Identity| text.push_str(&identity.line(role));
        for policy in &self.policies {
            add("policy", policy.identity());
        }
        for policy in &self.fallbacks {
            add("fallback", policy.identity());
        }
        for blocked in &self.blocked {
            text.extend(["blocked ", &Digest::of(blocked.plugin.as_bytes()).hex(), "\n"]);
        }
        let mut add = |role: &str, identity: &Identity| text.push_str(&identity.line(role));
        for (server, adapter) in &self.adapters {
            add(&format!("adapter {server}"), adapter.identity());
        }
        Digest::of(text.as_bytes())
    }
}

impl fmt::Debug for PluginSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PluginSet")
            .field("policies", &self.policies.iter().map(|policy| policy.name()).collect::<Vec<_>>())
            .field("fallbacks", &self.fallbacks.iter().map(|policy| policy.name()).collect::<Vec<_>>())
            .field(
                "adapters",
                &self.adapters.iter().map(|(server, adapter)| (server, adapter.name())).collect::<Vec<_>>(),
            )
            .field("blocked", &self.blocked)
            .finish()
    }
}
