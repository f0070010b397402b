//! What a policy or an adapter says, as the gateway sees it: after authority and bounds were applied.

use std::fmt;

use crate::fault::Fault;

/// What one policy says about one request (design.md 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing to say. Also an `allow` that the plugin was not granted.
    Abstain,
    /// It may pass.
    Allow {
        /// Why, at most 1 KiB, without control characters.
        reason: String,
    },
    /// A person has to be asked.
    Ask {
        /// What that person is told, at most 1 KiB, without control characters.
        reason: String,
    },
    /// It must not pass.
    Deny {
        /// What the caller is told, at most 1 KiB, without control characters.
        reason: String,
        /// Set when this is no judgement but the consequence of a fault (design.md 4 "Faults").
        fault: Option<Fault>,
    },
    /// It may pass with changes; only for [`crate::Hook::List`] and [`crate::Hook::Result`].
    Redact(Redaction),
}

/// How a result or a definition is redacted (`types.redaction`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// Changes by pointer, at most 256, in this order.
    Edits(Vec<Edit>),
    /// The host's own filter removes every hidden character from every string.
    HiddenText,
}

/// One change to a document (`types.edit`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// RFC 6901 pointer to what is changed; the empty pointer is the whole document. Well-formed,
    /// but not looked up: the document may have nothing there.
    pub pointer: String,
    /// The new value as one well-formed JSON text; `None` removes the member or element.
    pub value: Option<String>,
}

/// What an adapter does with one document (`adapter.change`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Leave it as it is.
    Unchanged,
    /// Apply these edits, at most 256, in this order.
    Patch(Vec<Edit>),
    /// Use this JSON text instead; well-formed JSON.
    Replace(String),
    /// Refuse the call, or hide the tool. At most 1 KiB, without control characters.
    Fail(String),
}

/// Which decisions a plugin may give. `abstain` needs no authority.
#[allow(clippy::struct_excessive_bools)] // four independent permissions, and no states
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DecisionSet {
    /// May let something pass by itself.
    pub allow: bool,
    /// May demand that a person is asked.
    pub ask: bool,
    /// May refuse.
    pub deny: bool,
    /// May change what is shown.
    pub redact: bool,
}

/// A word in a list of decisions that names no decision.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is no decision; use allow, ask, deny or redact")]
pub struct UnknownDecision(pub String);

impl DecisionSet {
    /// Nothing but abstain.
    pub const NONE: DecisionSet = DecisionSet { allow: false, ask: false, deny: false, redact: false };
    /// Everything. Only for what the operator trusts to let calls pass.
    pub const ALL: DecisionSet = DecisionSet { allow: true, ask: true, deny: true, redact: true };

    /// Reads a list of words, as `plugins.load[].decisions` and a release write them.
    /// `abstain` is accepted and adds nothing.
    pub fn parse<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Result<Self, UnknownDecision> {
        let mut set = Self::NONE;
        for word in words {
            match word.as_ref() {
                "abstain" => {}
                "allow" => set.allow = true,
                "ask" => set.ask = true,
                "deny" => set.deny = true,
                "redact" => set.redact = true,
                other => return Err(UnknownDecision(other.to_owned())),
            }
        }
        Ok(set)
    }

    /// What both sides permit: a release declares, an operator grants.
    #[must_use]
    pub fn and(self, other: DecisionSet) -> DecisionSet {
        DecisionSet {
            allow: self.allow && other.allow,
            ask: self.ask && other.ask,
            deny: self.deny && other.deny,
            redact: self.redact && other.redact,
        }
    }

    /// The words, in a fixed order.
    pub fn words(self) -> Vec<&'static str> {
        [(self.allow, "allow"), (self.ask, "ask"), (self.deny, "deny"), (self.redact, "redact")]
            .into_iter()
            .filter_map(|(held, word)| held.then_some(word))
            .collect()
    }
}

/// Deny, ask and redact, but not allow: what is granted where the operator says nothing.
impl Default for DecisionSet {
    fn default() -> Self {
        DecisionSet { allow: false, ..Self::ALL }
    }
}

impl fmt::Debug for DecisionSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.words()).finish()
    }
}
