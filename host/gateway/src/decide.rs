//! The one decision point. Listing, calling, reading, rendering, subscribing, completing, asking a
//! person, installing and connecting all come here, and nothing in Toolgate decides anywhere else.
//!
//! The host itself allows nothing. It checks that the persona is bound to the server and that the
//! operator did not freeze or deny it beforehand and that it is what was approved ([`floor`]), asks every
//! policy that has the hook, and combines: deny over ask over allow. If all abstain, the fallback
//! policies are asked; if they abstain too, the verdict is deny. With no policy loaded nothing
//! passes (design.md section 3.5). A policy in mode `monitor` is asked like any other and what it says
//! stands in the verdict, but it counts for nothing there.
//!
//! Threat: a policy may be hostile or broken. Its faults arrive here as denials, and an allow that
//! the operator did not grant it arrives as an abstention; both are the work of `toolgate-plugins`.

mod floor;

use std::sync::Arc;

use toolgate_base::display;
use toolgate_config::Permit;
use toolgate_plugins::{Blocked, Decision, Facts, Hook, Listed, PluginSet, Policy, Redaction};
use toolgate_signing::Digest;

use crate::facts::offered_label;
use crate::watch::Current;

/// What the host made of all decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// It passes.
    Allow,
    /// A person has to be asked.
    Ask,
    /// It does not pass.
    Deny,
}

impl Ruling {
    /// `allow`, `ask` or `deny`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What one policy said, kept for `mcp explain` and for the audit log.
#[derive(Debug, Clone)]
pub struct PolicyDecision {
    /// Name of the plugin.
    pub plugin: String,
    /// Digest of its component.
    pub digest: Digest,
    /// Whether it was asked only because all others abstained.
    pub fallback: bool,
    /// Whether what it said is recorded and decides nothing (`mode: monitor`).
    pub monitored: bool,
    /// What it said.
    pub decision: Decision,
}

/// The ruling with its reasons.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// What the host made of it.
    pub ruling: Ruling,
    /// The reason of the decision that prevailed, fit to be shown to the caller.
    pub reason: String,
    /// The plugin whose decision prevailed; none where the host denied for want of any.
    pub by: Option<String>,
    /// Changes to apply, in the order of the policies; only for the hooks list and result.
    pub redactions: Vec<Redaction>,
    /// Every decision, in the order asked.
    pub decisions: Vec<PolicyDecision>,
}

impl Verdict {
    /// A denial by the host itself, before any policy was asked. It may quote what an operator, or whoever
    /// froze something, wrote: that is one line and nothing hidden, as a policy's reason is.
    fn refused(mut reason: String) -> Self {
        reason = display::escape(&reason);
        Self { ruling: Ruling::Deny, reason, by: None, redactions: Vec::new(), decisions: Vec::new() }
    }
}

/// Whether a persona is bound to the server of the request. Made only by [`Binding::of`].
#[derive(Debug, Clone)]
pub struct Binding {
    bound: bool,
    /// What the operator froze and decided beforehand, where this is more than a look at names.
    current: Option<Arc<Current>>,
    /// What `permissions.mcp` says about the server.
    permit: Option<Permit>,
}

impl Binding {
    /// Looks the binding up. An endpoint of one server narrows it and never widens it.
    /// What a session declared does too (SCP-018, APR-022).
    pub fn of(
        servers: &[String],
        server: &str,
        server_only: Option<&str>,
        declared: Option<&[String]>,
    ) -> Self {
        let undeclared = declared.is_some_and(|declared| !declared.iter().any(|name| name == server));
        let narrowed_away = undeclared || server_only.is_some_and(|only| only != server);
        Self {
            bound: !narrowed_away && servers.iter().any(|name| name == server),
            current: None,
            permit: None,
        }
    }

    /// The same with what the operator froze and decided beforehand.
    pub(crate) fn with(self, current: Arc<Current>, permit: Option<Permit>) -> Self {
        Self { current: Some(current), permit, ..self }
    }

    /// The denial of a server that is frozen. A freeze hides nothing: it is said, with its reason.
    fn frozen(&self, facts: &Facts) -> Option<Verdict> {
        let (reason, what) = self.current.as_ref()?.frozen(&facts.server)?;
        Some(Verdict::refused(format!(
            "server '{}' is frozen by the operator: {}. The operator ends it with `toolgate thaw {what}`.",
            facts.server,
            toolgate_base::display::escape(reason)
        )))
    }

    /// Whether the operator froze any plugin.
    pub(crate) fn has_frozen_policies(&self) -> bool {
        self.current.as_ref().is_some_and(|now| !now.frozen_plugins().is_empty())
    }

    /// What a policy says: one that is frozen denies all it guards.
    fn ask(&self, policy: &Policy, hook: Hook, facts: &Arc<Facts>) -> Decision {
        let frozen = self.current.as_ref().is_some_and(|now| now.frozen_plugins().contains(policy.name()));
        if frozen { frozen_policy(policy) } else { policy.check(hook, facts) }
    }

    /// Whether anything of this server exists for the caller (SCP-002).
    pub fn holds(&self) -> bool {
        self.bound
    }
}

/// Decides one request.
pub fn decide(policies: &PluginSet, binding: &Binding, hook: Hook, facts: &Arc<Facts>) -> Verdict {
    if !binding.holds() {
        return not_bound(facts);
    }
    if let Some(blocked) = policies.blocked().first() {
        return missing(blocked);
    }
    if let Some(frozen) = binding.frozen(facts) {
        return frozen;
    }
    if let Some(denied) = floor::denied(binding, hook, facts) {
        return denied;
    }
    if let Some(unapproved) = floor::unapproved(hook, facts) {
        return unapproved;
    }
    let ask = |policy: &Policy, fallback: bool| PolicyDecision {
        plugin: policy.name().to_owned(),
        digest: policy.digest(),
        fallback,
        monitored: policy.is_monitored(),
        decision: binding.ask(policy, hook, facts),
    };
    let mut decisions: Vec<PolicyDecision> = policies
        .policies()
        .iter()
        .filter(|policy| policy.has(hook))
        .map(|policy| ask(policy, false))
        .collect();
    if hook != Hook::Result && undecided(&decisions) {
        let fallbacks = policies.fallbacks().iter().filter(|policy| policy.has(hook));
        decisions.extend(fallbacks.map(|policy| ask(policy, true)));
    }
    let verdict = floor::asked(binding, hook, facts, combine(hook, decisions));
    without_label(facts, verdict)
}

/// Stands in a denial for a label that must not be written.
const NO_LABEL: &str = "[a name that no label is offered for]";

/// A policy that denies says which label is missing, and a model with a shell reads it: where that label would be of
/// more than this, or holds what a server wants obeyed, it is not repeated. The policy's own words stay in its
/// decision.
fn without_label(facts: &Facts, mut verdict: Verdict) -> Verdict {
    let repeats = verdict.ruling == Ruling::Deny
        && !facts.label.is_empty()
        && verdict.by.is_some()
        && verdict.reason.contains(&facts.label);
    if repeats && offered_label(facts).is_none() {
        verdict.reason = verdict.reason.replace(&facts.label, NO_LABEL);
    }
    verdict
}

/// Decides many list entries at once: one batch per policy instead of one store per entry.
/// Gives exactly one verdict for each entry, in order.
pub fn decide_list(policies: &PluginSet, binding: &Binding, facts: &[Arc<Facts>]) -> Vec<Verdict> {
    look_at_list(policies, binding, facts).0
}

/// The same, and whether a policy looked at more than plain facts and definitions, so that the verdicts
/// hold for these entries alone.
pub(crate) fn look_at_list(
    policies: &PluginSet,
    binding: &Binding,
    facts: &[Arc<Facts>],
) -> (Vec<Verdict>, bool) {
    if !binding.holds() {
        return (facts.iter().map(not_bound).collect(), true);
    }
    if let Some(blocked) = policies.blocked().first() {
        return (facts.iter().map(|_| missing(blocked)).collect(), true);
    }
    // All entries of a list are of one server.
    if let Some(frozen) = facts.first().and_then(|first| binding.frozen(first)) {
        return (facts.iter().map(|_| frozen.clone()).collect(), true);
    }
    let denied: Vec<Option<Verdict>> = facts
        .iter()
        .map(|facts| {
            let denied = floor::denied(binding, Hook::List, facts);
            denied.or_else(|| floor::unapproved(Hook::List, facts))
        })
        .collect();
    let judged: Vec<usize> =
        (0..facts.len()).filter(|index| matches!(denied.get(*index), Some(None))).collect();
    let mut knew_more = judged.len() < facts.len();
    let mut decisions: Vec<Vec<PolicyDecision>> = facts.iter().map(|_| Vec::new()).collect();
    for policy in policies.policies().iter().filter(|policy| policy.has(Hook::List)) {
        knew_more |= ask_batch(binding, policy, false, facts, &judged, &mut decisions);
    }
    for policy in policies.fallbacks().iter().filter(|policy| policy.has(Hook::List)) {
        let undecided = |index: &usize| decisions.get(*index).is_some_and(|of_entry| undecided(of_entry));
        let open: Vec<usize> = judged.iter().copied().filter(undecided).collect();
        knew_more |= ask_batch(binding, policy, true, facts, &open, &mut decisions);
    }
    let verdict = |(denied, of_entry): (Option<Verdict>, Vec<PolicyDecision>)| {
        denied.unwrap_or_else(|| combine(Hook::List, of_entry))
    };
    (denied.into_iter().zip(decisions).map(verdict).collect(), knew_more)
}

/// Whether the policy knew more than its answers can be kept for.
fn ask_batch(
    binding: &Binding,
    policy: &Policy,
    fallback: bool,
    facts: &[Arc<Facts>],
    indices: &[usize],
    decisions: &mut [Vec<PolicyDecision>],
) -> bool {
    let chosen: Vec<Arc<Facts>> =
        indices.iter().filter_map(|index| facts.get(*index).map(Arc::clone)).collect();
    let frozen = binding.current.as_ref().is_some_and(|now| now.frozen_plugins().contains(policy.name()));
    let said = if frozen {
        Listed { decisions: chosen.iter().map(|_| frozen_policy(policy)).collect(), knew_more: true }
    } else {
        policy.look_at_list(&chosen)
    };
    for (index, decision) in indices.iter().zip(said.decisions) {
        if let Some(of_entry) = decisions.get_mut(*index) {
            of_entry.push(PolicyDecision {
                plugin: policy.name().to_owned(),
                digest: policy.digest(),
                fallback,
                monitored: policy.is_monitored(),
                decision,
            });
        }
    }
    said.knew_more
}

fn frozen_policy(policy: &Policy) -> Decision {
    let reason = format!("policy {} is frozen by the operator, and so denies all it guards", policy.name());
    Decision::Deny { reason, fault: None }
}

fn not_bound(facts: &Arc<Facts>) -> Verdict {
    Verdict::refused(format!(
        "persona '{}' has no server '{}'. Add it under personas.{}.servers in toolgate.yaml.",
        facts.persona, facts.server, facts.persona
    ))
}

/// A policy that belongs here is not in force, and nobody knows what it would have denied.
fn missing(blocked: &Blocked) -> Verdict {
    Verdict::refused(format!(
        "the policy {} is not in force, and nothing passes without it: {}",
        blocked.plugin, blocked.reason
    ))
}

fn undecided(decisions: &[PolicyDecision]) -> bool {
    let mut counting = decisions.iter().filter(|said| !said.monitored);
    counting.all(|said| matches!(said.decision, Decision::Abstain | Decision::Redact(_)))
}

/// Deny over ask over allow; a redaction is no permission, it rides along with one.
fn combine(hook: Hook, decisions: Vec<PolicyDecision>) -> Verdict {
    let find = |wanted: fn(&Decision) -> Option<&str>| {
        decisions.iter().filter(|said| !said.monitored).find_map(|said| {
            wanted(&said.decision).map(|reason| (reason.to_owned(), Some(said.plugin.clone())))
        })
    };
    let denied = find(|decision| match decision {
        Decision::Deny { reason, .. } => Some(reason),
        _ => None,
    });
    let asked = find(|decision| match decision {
        Decision::Ask { reason } => Some(reason),
        _ => None,
    });
    let allowed = find(|decision| match decision {
        Decision::Allow { reason } => Some(reason),
        _ => None,
    });
    let (ruling, (reason, by)) = match (denied, asked, allowed) {
        (Some(denied), _, _) => (Ruling::Deny, denied),
        // What has come back cannot be asked about: the call has run.
        (None, Some(asked), _) if hook == Hook::Result => (Ruling::Deny, asked),
        (None, Some(asked), _) => (Ruling::Ask, asked),
        (None, None, Some(allowed)) => (Ruling::Allow, allowed),
        // The result belongs to a call that was allowed; policies can only take from it.
        (None, None, None) if hook == Hook::Result => (Ruling::Allow, (String::new(), None)),
        (None, None, None) => (Ruling::Deny, (nobody_decided(&decisions), None)),
    };
    let redactions = decisions
        .iter()
        .filter(|said| !said.monitored)
        .filter_map(|said| match &said.decision {
            Decision::Redact(redaction) => Some(redaction.clone()),
            _ => None,
        })
        .collect();
    Verdict { ruling, reason, by, redactions, decisions }
}

fn nobody_decided(decisions: &[PolicyDecision]) -> String {
    if decisions.is_empty() {
        "no policy is loaded that judges this, and Toolgate allows nothing by itself. \
         Set plugins.bundle to default, or load a policy under plugins.load."
            .to_owned()
    } else {
        format!(
            "none of the {} policies asked allows this, and Toolgate allows nothing by itself. \
             See `toolgate mcp explain`.",
            decisions.len()
        )
    }
}

#[cfg(test)]
mod tests;
