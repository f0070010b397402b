//! What may not be seen may not be used: the verdict of the list hook, asked again before a call, a
//! read or a prompt.
//!
//! A policy that hides a definition, for what its text holds, has said no to the tool; a client that
//! knows or guesses the name must not get further than one that looks. The views are remembered with
//! the set of plugins that gave them, by all that a policy can ask about the definition, so that a
//! call pays for a look into a map and not for more guests (design.md section 4).
//!
//! Bounds: [`MOST`] views; when there are more, all are made anew. Not remembered is a view for which a
//! policy looked at anything but plain facts and the definition (the session, the clock, its own store),
//! one that came of a fault, and any while a policy is frozen: such a policy is asked each time.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, PoisonError, RwLock};

use toolgate_plugins::{Decision, Facts, Hook, PluginSet};

use crate::decide::{self, Binding, Ruling, Verdict};

/// Views that are remembered at most.
const MOST: usize = 16_384;

/// The views of one set of plugins.
#[derive(Default)]
pub(crate) struct Views {
    /// Keyed at random for each set, so that nobody can choose two definitions that share a key.
    keys: [RandomState; 2],
    known: RwLock<HashMap<[u64; 2], Option<Arc<Verdict>>>>,
}

impl Views {
    /// The denial that hides this definition from this caller; `None` where it is shown. `facts` are
    /// those of the call, with the definition in them.
    fn hiding(&self, plugins: &PluginSet, binding: &Binding, facts: &Arc<Facts>) -> Option<Arc<Verdict>> {
        let steady = !binding.has_frozen_policies();
        let key = self.key(facts);
        if steady && let Some(view) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return view.clone();
        }
        let shown = Facts { document: facts.definition.clone(), ..Facts::clone(facts) };
        let (mut verdicts, knew_more) = decide::look_at_list(plugins, binding, &[Arc::new(shown)]);
        let verdict = verdicts.pop();
        // That no policy says anything about a definition is no denial; it only is not listed.
        let view =
            verdict.filter(|verdict| verdict.ruling == Ruling::Deny && verdict.by.is_some()).map(Arc::new);
        if steady && !knew_more && !view.as_deref().is_some_and(is_fault) {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(key, view.clone());
        }
        view
    }

    /// All that can differ between two questions about a definition, but for session and claims. The
    /// bytes are in it, because a policy may look at what no digest of a definition covers.
    fn key(&self, facts: &Facts) -> [u64; 2] {
        self.keys.each_ref().map(|key| key.hash_one((facts.plain(), facts.bytes)))
    }
}

/// The verdict about a call, a read, a prompt, a completion or a subscription: that of its own hook,
/// and where that one lets it pass or asks about it, that of the list hook about the definition.
pub(crate) fn judge(
    views: &Views,
    plugins: &PluginSet,
    binding: &Binding,
    hook: Hook,
    facts: &Arc<Facts>,
) -> Verdict {
    let verdict = decide::decide(plugins, binding, hook, facts);
    if verdict.ruling == Ruling::Deny {
        return verdict;
    }
    match views.hiding(plugins, binding, facts) {
        None => verdict,
        Some(hiding) => {
            let mut decisions = verdict.decisions;
            decisions.extend(
                hiding
                    .decisions
                    .iter()
                    .filter(|said| !said.monitored && matches!(said.decision, Decision::Deny { .. }))
                    .cloned(),
            );
            Verdict { decisions, ..Verdict::clone(&hiding) }
        }
    }
}

fn is_fault(verdict: &Verdict) -> bool {
    verdict
        .decisions
        .iter()
        .any(|said| !said.monitored && matches!(said.decision, Decision::Deny { fault: Some(_), .. }))
}
