//! Decisions that need not be asked for again.
//!
//! Contract: a policy runs in a fresh instance each time, so what it says is a function of what it was
//! told. Where it was told nothing but the plain facts of a request (names, labels, digests, flags), and
//! did nothing but look at them, its decision is kept for the next request with the same facts. One that
//! looked at the session or the clock, wrote to the log, or has any label open to it, is asked each time,
//! and so is one that failed. A policy that is loaded anew begins with nothing.
//!
//! A document is no plain fact: a policy that looked into one is asked each time. One that only asked the
//! host whether it hides text, and heard that it does not, would be told the same about every document
//! that hides nothing; its decision is kept for those, and the host looks through each of them first.
//!
//! Bounds: [`MOST`] decisions a policy; when there are more, all are asked for anew.
//!
//! Threat: a name that a client or a server chose is part of the key. It is hashed with keys that this
//! process drew, twice, so that nobody can find two requests that share one. A document that hides text
//! never gets the decision about one that does not: its policy is asked.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{PoisonError, RwLock};

use crate::decision::Decision;
use crate::facts::{Facts, Hook};

/// Decisions that are kept at most.
const MOST: usize = 1_024;

/// Which request a decision is about.
pub(crate) type Key = [u64; 2];

/// What one policy said.
#[derive(Default)]
pub(crate) struct Remembered {
    keys: [RandomState; 2],
    known: RwLock<HashMap<Key, Kept>>,
}

/// A decision, and for which requests of its key it holds.
#[derive(Clone)]
struct Kept {
    decision: Decision,
    /// Whether only for those whose document hides nothing.
    hides_nothing: bool,
}

impl Remembered {
    /// The key of a request: every plain fact of it, the hook, and whether it is about a document.
    pub(crate) fn key(&self, hook: Hook, facts: &Facts) -> Key {
        self.keys.each_ref().map(|key| key.hash_one((hook, facts.document.is_some(), facts.plain())))
    }

    /// What was said about it.
    pub(crate) fn get(&self, key: Key, facts: &Facts) -> Option<Decision> {
        let kept = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()?;
        // Looked through without the lock: a large document takes milliseconds.
        let clean = || facts.document.as_ref().is_some_and(|document| document.hidden_text().is_empty());
        (!kept.hides_nothing || clean()).then_some(kept.decision)
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Keeps what was said; where `hides_nothing`, for documents alone that hide nothing.
    pub(crate) fn keep(&self, key: Key, decision: Decision, hides_nothing: bool) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, Kept { decision, hides_nothing });
    }
}
