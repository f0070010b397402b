//! Policies in mode `monitor`: what they would have said is in the audit log and decides nothing.
//!
//! Contract: a request leaves one row for each such policy that had something to say about it. A listing
//! asks about every definition again and again, so of listings only what is new leaves a row: another
//! definition, or another answer about it.
//!
//! Bounds: [`MOST`] answers about definitions are remembered; when there are more, all are told anew.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_plugins::{Decision, Facts, Hook};
use toolgate_signing::Digest;
use toolgate_store::{AuditRow, CallFacts, Event};

use crate::Gateway;
use crate::decide::{PolicyDecision, Verdict};

/// Answers about definitions that are remembered at most.
const MOST: usize = 16_384;

/// The answers about definitions that are in the log already.
#[derive(Default)]
pub(crate) struct Noted(Mutex<HashSet<Digest>>);

impl Noted {
    /// Whether this answer about this definition is not in the log yet; from now on it is.
    fn is_new(&self, facts: &Facts, said: &PolicyDecision) -> bool {
        let (word, _) = words(&said.decision);
        let digest = facts.digest.as_deref().unwrap_or_default();
        let parts = [&facts.persona, &facts.server, &facts.name, digest, &said.plugin, word];
        let key = Digest::of(parts.join("\n").as_bytes());
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() >= MOST {
            noted.clear();
        }
        noted.insert(key)
    }
}

impl Gateway {
    /// One row for each policy in mode `monitor` that had something to say about a request.
    pub(crate) fn note_monitored(&self, call: &CallFacts, hook: Hook, verdict: &Verdict) {
        for said in with_a_word(verdict) {
            let about = AuditRow::about_call(Event::PolicyMonitored, call)
                .with_action(Event::PolicyMonitored.action());
            self.store.append_detached(row(about, hook, said));
        }
    }

    /// The same about a connection.
    pub(crate) fn note_monitored_server(&self, persona: &str, server: &str, hook: Hook, verdict: &Verdict) {
        for said in with_a_word(verdict) {
            self.store.append_detached(row(about_server(persona, server), hook, said));
        }
    }

    /// The same about the definitions of a listing, where it is news.
    pub(crate) fn note_monitored_list(&self, facts: &[Arc<Facts>], verdicts: &[Verdict]) {
        let in_force = self.plugins();
        for (facts, verdict) in facts.iter().zip(verdicts) {
            for said in with_a_word(verdict).filter(|said| in_force.noted_monitored.is_new(facts, said)) {
                let mut about = about_server(&facts.persona, &facts.server);
                about.tool = Some(facts.name.clone());
                self.store.append_detached(row(about, Hook::List, said));
            }
        }
    }
}

/// The word for a decision, and its reason.
pub(crate) fn words(decision: &Decision) -> (&'static str, &str) {
    match decision {
        Decision::Abstain => ("abstain", ""),
        Decision::Allow { reason } => ("allow", reason),
        Decision::Ask { reason } => ("ask", reason),
        Decision::Deny { reason, .. } => ("deny", reason),
        Decision::Redact(_) => ("redact", ""),
    }
}

/// An abstention would have changed nothing.
fn with_a_word(verdict: &Verdict) -> impl Iterator<Item = &PolicyDecision> {
    verdict.decisions.iter().filter(|said| said.monitored && said.decision != Decision::Abstain)
}

fn about_server(persona: &str, server: &str) -> AuditRow {
    let mut row = AuditRow::about_server(Event::PolicyMonitored, server);
    row.persona_id = Some(persona.to_owned());
    row
}

fn row(about: AuditRow, hook: Hook, said: &PolicyDecision) -> AuditRow {
    let (decision, reason) = words(&said.decision);
    about
        .with("plugin", said.plugin.as_str())
        .with("digest", said.digest.to_string())
        .with("hook", hook.word())
        .with("decision", decision)
        .with("reason", reason)
}
