//! Decisions that need not be asked for again.
//!
//! Contract: a policy runs in a fresh instance each time, so what it says is a function of what it was
//! told. Where it was told nothing but the plain facts of a request (names, labels, digests, flags), and
//! did nothing but look at them, its decision is kept for the next request with the same facts. One that
//! looked at a document, the session or the clock, wrote to the log, or has any label open to it, is
//! asked each time, and so is one that failed. A policy that is loaded anew begins with nothing.
//!
//! Bounds: [`MOST`] decisions a policy; when there are more, all are asked for anew.
//!
//! Threat: a name that a client or a server chose is part of the key. It is hashed with keys that this
//! process drew, twice, so that nobody can find two requests that share one.

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
    known: RwLock<HashMap<Key, Decision>>,
}

impl Remembered {
    /// The key of a request: every plain fact of it, and the hook.
    pub(crate) fn key(&self, hook: Hook, facts: &Facts) -> Key {
        self.keys.each_ref().map(|key| key.hash_one((hook, facts.plain())))
    }

    /// What was said about it.
    pub(crate) fn get(&self, key: Key) -> Option<Decision> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Keeps what was said.
    pub(crate) fn keep(&self, key: Key, decision: Decision) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, decision);
    }
}
