//! A state without a guest, with labels open: host calls are tested alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toolgate_grants::Grants;
use toolgate_signing::{Kind, Release};
use wasmtime::component::Resource;

use crate::error::LoadErrorKind;
use crate::facts::{Document, Facts};
use crate::inspect::Inspection;
use crate::limits::{Limits, Meter};
use crate::opened::{Given, Opened};
use crate::ports::{KvEntry, KvExpected, KvOutcome, KvSpace, KvStore, KvWrite, Ports, Record};
use crate::state::{Shared, State};

/// Opens what release, grants and settings say, as loading a plugin does.
pub(super) fn open(
    kind: Kind,
    ports: &Ports,
    settings: &str,
    change: impl FnOnce(&mut Release, &mut Grants),
) -> Result<State, LoadErrorKind> {
    let mut release = crate::tests::guests::release(kind, &[]);
    let mut grants = Grants::default();
    change(&mut release, &mut grants);
    let limits = Limits::clamped(&release);
    let settings = Document::new(settings);
    let inspection = Inspection { imports: release.imports.clone(), ..Inspection::default() };
    let opened = Opened::validate(&Given {
        release: &release,
        inspection: &inspection,
        grants: &grants,
        settings: &settings,
        ports,
        limits: &limits,
    })?;
    let mut shared = Shared::new(&release.name, limits, settings);
    shared.opened = opened;
    shared.record.clone_from(&ports.record);
    Ok(State::new(Arc::new(shared), Meter::start(Duration::from_secs(1))))
}

/// The request at hand of a persona's session.
pub(super) fn request_of(state: &mut State, persona: &str, session: &str) {
    state.renew(Meter::start(Duration::from_secs(1)));
    let facts = Facts { persona: persona.into(), session: session.into(), ..Facts::default() };
    state.lend(&Arc::new(facts)).unwrap();
}

/// A second use of a handle.
pub(super) fn again<T: 'static>(handle: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(handle.rep())
}

/// A store in memory.
#[derive(Default)]
pub(super) struct Memory(Mutex<BTreeMap<(String, String), KvEntry>>);

fn at(space: &KvSpace, key: &str) -> (String, String) {
    (format!("{space:?}"), key.to_owned())
}

impl KvStore for Memory {
    fn get(&self, space: &KvSpace, key: &str) -> Result<Option<KvEntry>, String> {
        Ok(self.0.lock().unwrap().get(&at(space, key)).cloned())
    }

    fn write(&self, space: &KvSpace, key: &str, write: &KvWrite<'_>) -> Result<KvOutcome, String> {
        let mut map = self.0.lock().unwrap();
        let found = map.get(&at(space, key)).cloned();
        let holds = match write.expected {
            KvExpected::Anything => true,
            KvExpected::Absent => found.is_none(),
            KvExpected::Version(version) => found.as_ref().is_some_and(|found| found.version == version),
        };
        if !holds {
            return Ok(KvOutcome::Conflict(found));
        }
        if (key.len() + write.value.len()) as u64 > write.quota {
            return Ok(KvOutcome::Full(0));
        }
        let version = found.map_or(1, |found| found.version + 1);
        map.insert(at(space, key), KvEntry { value: write.value.to_vec(), version });
        Ok(KvOutcome::Written(version))
    }

    fn delete(&self, space: &KvSpace, key: &str) -> Result<bool, String> {
        Ok(self.0.lock().unwrap().remove(&at(space, key)).is_some())
    }

    fn keys(&self, space: &KvSpace, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>, String> {
        let space = format!("{space:?}");
        let map = self.0.lock().unwrap();
        let keys = map
            .keys()
            .filter(|(found, key)| *found == space && key.starts_with(prefix) && key.as_str() > after);
        Ok(keys.map(|(_, key)| key.clone()).take(limit).collect())
    }
}

/// Remembers who saw which secret, or fails.
#[derive(Default)]
pub(super) struct Book {
    pub(super) rows: Mutex<Vec<String>>,
    pub(super) fails: bool,
}

impl Record for Book {
    fn secret_revealed(&self, plugin: &str, label: &str, persona: &str) -> Result<(), String> {
        if self.fails {
            return Err("full".into());
        }
        self.rows.lock().unwrap().push(format!("{plugin} {label} {persona}"));
        Ok(())
    }
}
