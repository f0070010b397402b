//! Recorded documents, asked again: what a plugin answers to them, and where two versions differ.
//!
//! Contract: a replay runs under the very limits, linker and checks of a load ([`PluginHost::load`]),
//! touches no server and no store, and changes nothing. It serves authors (`plugin test`) and
//! operators before an update (`plugin update --dry-run`). A document that this kind of plugin is
//! never asked about has no outcome.

mod document;
mod outcome;
mod rehearsal;

use toolgate_signing::{
    Release, SigningKey, Threshold, VerifiedRelease, VerifyError, sign_release, verify_release,
};

use crate::error::LoadError;
use crate::facts::Hook;
use crate::fault::{Fault, InstallerError};
use crate::host::{Admission, Plugin, PluginHost};

pub use document::{Moment, RecordError, Recorded};
pub use rehearsal::{RehearsalError, rehearse};

/// What a plugin answered to one document.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The document's name.
    pub name: String,
    /// The answer as JSON, in the form of the `.expected.json` files; none where this kind of
    /// plugin is not asked at that moment, or does not export that hook.
    pub answer: Option<serde_json::Value>,
    /// Set when this is no answer but a fault, which is never what anybody expects.
    pub fault: Option<Fault>,
}

/// One document to which two plugins answer differently.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The document's name.
    pub name: String,
    /// What the first answers.
    pub old: Option<serde_json::Value>,
    /// What the second answers.
    pub new: Option<serde_json::Value>,
}

/// Loads a component and asks it about every document, in order. Blocking; a document takes at most
/// the plugin's own deadline.
///
/// # Errors
/// [`LoadError`] as for any load, settings that the plugin does not accept included.
pub fn replay(
    host: &PluginHost,
    component: &[u8],
    release: &VerifiedRelease,
    admission: &Admission,
    documents: &[Recorded],
) -> Result<Vec<Outcome>, LoadError> {
    let mut plugin = host.load(component, release, admission)?;
    let mut outcomes = Vec::with_capacity(documents.len());
    for document in documents {
        // One document must not speak for the next: who was put aside by faults gets a fresh start.
        if is_put_aside(&plugin) {
            plugin = host.load(component, release, admission)?;
        }
        outcomes.push(ask(&plugin, document));
    }
    Ok(outcomes)
}

/// Where two replays of the same documents differ, in the order of the first.
pub fn compare(old: &[Outcome], new: &[Outcome]) -> Vec<Difference> {
    let answer_of = |name: &str| new.iter().find(|outcome| outcome.name == name);
    old.iter()
        .filter_map(|was| {
            let now = answer_of(&was.name).and_then(|now| now.answer.clone());
            (was.answer != now).then(|| Difference {
                name: was.name.clone(),
                old: was.answer.clone(),
                new: now,
            })
        })
        .collect()
}

/// A release that nobody signed, so that its author can try it: signed with a key that exists for
/// this moment only. It is good for a replay; nothing else takes it, because no rule of trust knows
/// the key.
pub fn trial(release: &Release, component: &[u8]) -> Result<VerifiedRelease, VerifyError> {
    let key = SigningKey::from_seed(&toolgate_base::random_bytes());
    let envelope = sign_release(release, component, &key);
    verify_release(&envelope, &|_| Some(Threshold { keys: vec![key.public()], minimum: 1 }))
}

fn is_put_aside(plugin: &Plugin) -> bool {
    match plugin {
        Plugin::Policy(policy) => policy.is_put_aside(),
        Plugin::Adapter(adapter) => adapter.is_put_aside(),
        Plugin::Installer(_) => false,
    }
}

fn ask(plugin: &Plugin, document: &Recorded) -> Outcome {
    let name = document.name().to_owned();
    let answered = match (plugin, document.moment()) {
        (Plugin::Policy(policy), Moment::Policy(hook)) if policy.has(*hook) => {
            Some(outcome::decision(policy.check(*hook, document.facts())))
        }
        (Plugin::Adapter(adapter), Moment::Tools) => {
            let changes = adapter.tools(std::slice::from_ref(document.facts()));
            Some(outcome::change(changes.map(|mut changes| changes.pop())))
        }
        (Plugin::Adapter(adapter), Moment::Arguments) => {
            Some(outcome::change(adapter.arguments(document.facts()).map(Some)))
        }
        (Plugin::Adapter(adapter), Moment::Content) => {
            Some(outcome::change(adapter.content(document.facts()).map(Some)))
        }
        (Plugin::Installer(installer), Moment::Search { query, cursor }) => {
            Some(installed(installer.search(query, cursor.as_deref()), outcome::page))
        }
        (Plugin::Installer(installer), Moment::Lookup { id }) => {
            Some(installed(installer.lookup(id), |found| outcome::found(found.as_ref())))
        }
        (Plugin::Installer(installer), Moment::Resolve { id, requirement }) => {
            Some(installed(installer.resolve(id, requirement.as_deref()), outcome::plan))
        }
        _ => None,
    };
    match answered {
        Some(Ok(answer)) => Outcome { name, answer: Some(answer), fault: None },
        Some(Err(fault)) => Outcome { name, answer: Some(outcome::fault(&fault)), fault: Some(fault) },
        None => Outcome { name, answer: None, fault: None },
    }
}

/// An answer of an installer's: an error that it gives on purpose is an answer as well.
fn installed<T>(
    answer: Result<T, InstallerError>,
    read: impl FnOnce(&T) -> serde_json::Value,
) -> Result<serde_json::Value, Fault> {
    match answer {
        Ok(answer) => Ok(read(&answer)),
        Err(InstallerError::Answer { kind, message, .. }) => Ok(outcome::error(kind, &message)),
        Err(InstallerError::Fault(fault)) => Err(fault),
    }
}

/// The moments at which a policy is asked, by their words.
fn hook_of(word: &str) -> Option<Hook> {
    Hook::ALL.into_iter().find(|hook| hook.word() == word)
}

#[cfg(test)]
mod tests;
