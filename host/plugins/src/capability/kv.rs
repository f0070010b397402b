//! `toolgate:plugin/kv`: a small memory by label and scope, kept by a [`KvStore`].
//!
//! A handle names a label and a scope, not an owner: whose values it reaches is worked out at each
//! use from the request at hand, so that a warm instance cannot carry one session's store into the
//! call of another. Bounds: 512 bytes a key, `host-bytes` a value, the quota of the label in each
//! space; what belongs to a session is forgotten a day after its last write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Resource;

use super::{invalid, not_granted};
use crate::bindings::kv::{Entry, Expected, Host, HostStore, KeyPage, Outcome, Scope};
use crate::bindings::types::Error;
use crate::error::LoadErrorKind;
use crate::opened::{Given, only_declared};
use crate::ports::{KvEntry, KvExpected, KvOutcome, KvSpace, KvStore, KvWrite};
use crate::state::State;

/// Bytes of a key.
const MAX_KEY: usize = 512;
/// Keys in one page.
const PAGE: usize = 256;
/// Longest life of what belongs to a session.
const SESSION_TTL: Duration = Duration::from_hours(24);

/// One open label.
pub(crate) struct Label {
    /// None where the host has no store: then every use answers as unavailable.
    store: Option<Arc<dyn KvStore>>,
    quota: u64,
}

/// What stands behind a `store` handle.
#[allow(unreachable_pub)] // the generated bindings re-export it, which they can only for a `pub` item
pub struct Store {
    label: String,
    scope: Scope,
}

/// The labels that are open.
pub(crate) fn validate(given: &Given<'_>) -> Result<BTreeMap<String, Label>, LoadErrorKind> {
    let mut open = BTreeMap::new();
    for (label, declared, grant) in only_declared("kv", &given.release.capabilities.kv, &given.grants.kv)? {
        let store = given.ports.kv.clone();
        let quota = grant.max_bytes.map_or(declared.max_bytes, |most| most.min(declared.max_bytes));
        open.insert(label.clone(), Label { store, quota });
    }
    Ok(open)
}

impl Host for State {}

impl HostStore for State {
    fn open(&mut self, label: String, scope: Scope) -> wasmtime::Result<Result<Resource<Store>, Error>> {
        if !self.shared.opened.kv.contains_key(&label) {
            return Ok(Err(not_granted("kv", &label)));
        }
        Ok(Ok(self.table.push(Store { label, scope })?))
    }

    fn get(&mut self, store: Resource<Store>, key: String) -> wasmtime::Result<Result<Option<Entry>, Error>> {
        let (label, scope) = self.named(&store)?;
        Ok(self.with_kv(&label, scope, &key, |_, store, space| {
            Ok(store.get(space, &key).map_err(Error::Unavailable)?.map(entry))
        }))
    }

    fn put(
        &mut self,
        store: Resource<Store>,
        key: String,
        value: Vec<u8>,
        ttl_ms: Option<u64>,
    ) -> wasmtime::Result<Result<u64, Error>> {
        let (label, scope) = self.named(&store)?;
        Ok(match self.kv_write(&label, scope, &key, &value, ttl_ms, KvExpected::Anything) {
            Ok(KvOutcome::Written(version)) => Ok(version),
            Ok(_) => Err(Error::Internal("an unconditional write met a condition".to_owned())),
            Err(error) => Err(error),
        })
    }

    fn compare_and_set(
        &mut self,
        store: Resource<Store>,
        key: String,
        expected: Expected,
        value: Vec<u8>,
        ttl_ms: Option<u64>,
    ) -> wasmtime::Result<Result<Outcome, Error>> {
        let expected = match expected {
            Expected::Absent => KvExpected::Absent,
            Expected::Version(version) => KvExpected::Version(version),
        };
        let (label, scope) = self.named(&store)?;
        Ok(match self.kv_write(&label, scope, &key, &value, ttl_ms, expected) {
            Ok(KvOutcome::Written(version)) => Ok(Outcome::Written(version)),
            Ok(KvOutcome::Conflict(found)) => Ok(Outcome::Conflict(found.map(entry))),
            Ok(KvOutcome::Full(_)) => Err(Error::Internal("a full store was not reported".to_owned())),
            Err(error) => Err(error),
        })
    }

    fn delete(&mut self, store: Resource<Store>, key: String) -> wasmtime::Result<Result<bool, Error>> {
        let (label, scope) = self.named(&store)?;
        if let Err(error) = self.may_change("kv writes") {
            return Ok(Err(error));
        }
        Ok(self.with_kv(&label, scope, &key, |_, store, space| {
            store.delete(space, &key).map_err(Error::Unavailable)
        }))
    }

    fn keys(
        &mut self,
        store: Resource<Store>,
        prefix: String,
        cursor: Option<String>,
    ) -> wasmtime::Result<Result<KeyPage, Error>> {
        let (label, scope) = self.named(&store)?;
        if prefix.len() > MAX_KEY {
            return Ok(Err(invalid(format!("a prefix has at most {MAX_KEY} bytes"))));
        }
        let after = cursor.unwrap_or_default();
        Ok(self.with_kv(&label, scope, "-", |_, store, space| {
            let mut keys = store.keys(space, &prefix, &after, PAGE + 1).map_err(Error::Unavailable)?;
            let more = keys.len() > PAGE;
            keys.truncate(PAGE);
            let cursor = if more { keys.last().cloned() } else { None };
            Ok(KeyPage { keys, cursor })
        }))
    }

    fn drop(&mut self, store: Resource<Store>) -> wasmtime::Result<()> {
        self.table.delete(store)?;
        Ok(())
    }
}

impl State {
    fn named(&self, store: &Resource<Store>) -> wasmtime::Result<(String, Scope)> {
        let store = self.table.get(store)?;
        Ok((store.label.clone(), store.scope))
    }

    /// Runs one step against the store, with the space that the request at hand gives.
    fn with_kv<T>(
        &mut self,
        label: &str,
        scope: Scope,
        key: &str,
        step: impl FnOnce(&Label, &dyn KvStore, &KvSpace) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(invalid(format!("a key has 1 to {MAX_KEY} bytes")));
        }
        let space = self.space(label, scope)?;
        let shared = Arc::clone(&self.shared);
        let open = shared.opened.kv.get(label).ok_or_else(|| not_granted("kv", label))?;
        let Some(store) = &open.store else {
            return Err(Error::Unavailable("this host has no store for kv".to_owned()));
        };
        self.wait(|_| step(open, store.as_ref(), &space))
    }

    fn kv_write(
        &mut self,
        label: &str,
        scope: Scope,
        key: &str,
        value: &[u8],
        ttl_ms: Option<u64>,
        expected: KvExpected,
    ) -> Result<KvOutcome, Error> {
        self.may_change("kv writes")?;
        let ttl = match (ttl_ms.map(Duration::from_millis), scope) {
            (Some(Duration::ZERO), _) => return Err(invalid("a ttl has at least one millisecond")),
            (Some(ttl), Scope::Session) => Some(ttl.min(SESSION_TTL)),
            (None, Scope::Session) => Some(SESSION_TTL),
            (ttl, _) => ttl,
        };
        self.with_kv(label, scope, key, |label, store, space| {
            let write = KvWrite { value, ttl, expected, quota: label.quota };
            match store.write(space, key, &write).map_err(Error::Unavailable)? {
                KvOutcome::Full(used) => Err(Error::LimitExceeded(format!(
                    "the quota of kv.{} is {} bytes, and {used} are used",
                    space.label, label.quota
                ))),
                done => Ok(done),
            }
        })
    }

    fn space(&self, label: &str, scope: Scope) -> Result<KvSpace, Error> {
        let subject = || {
            self.subject
                .as_ref()
                .ok_or_else(|| invalid("no request is at hand, so there is no persona and no session"))
        };
        let (scope, owner) = match scope {
            Scope::Plugin => ("plugin", String::new()),
            Scope::Persona => ("persona", subject()?.persona.clone()),
            // A session belongs to its persona: an id alone could be met by another one's.
            Scope::Session => {
                let subject = subject()?;
                ("session", format!("{}\n{}", subject.persona, subject.session))
            }
        };
        Ok(KvSpace { plugin: self.shared.name.clone(), label: label.to_owned(), scope, owner })
    }
}

fn entry(found: KvEntry) -> Entry {
    Entry { value: found.value, version: found.version }
}

#[cfg(test)]
mod tests;
