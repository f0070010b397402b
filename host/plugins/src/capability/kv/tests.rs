use std::sync::Arc;

use toolgate_grants::KvGrant;
use toolgate_signing::{Kind, KvCapability};
use wasmtime::component::Resource;

use super::super::testing::{Memory, again, open, request_of};
use super::*;
use crate::ports::Ports;
use crate::state::Phase;

fn granted(kind: Kind, most: Option<u64>) -> State {
    let ports = Ports { kv: Some(Arc::new(Memory::default())), ..Ports::default() };
    open(kind, &ports, "{}", |release, grants| {
        release.capabilities.kv.insert("seen".into(), KvCapability { max_bytes: 64 });
        release.capabilities.kv.insert("other".into(), KvCapability { max_bytes: 64 });
        grants.kv.insert("seen".into(), KvGrant { max_bytes: most });
    })
    .unwrap()
}

fn store(state: &mut State, scope: Scope) -> Resource<Store> {
    HostStore::open(state, "seen".into(), scope).unwrap().unwrap()
}

fn put(state: &mut State, store: &Resource<Store>, value: &[u8]) -> Result<u64, Error> {
    state.put(again(store), "k".into(), value.to_vec(), None).unwrap()
}

fn value(state: &mut State, store: &Resource<Store>) -> Option<Vec<u8>> {
    HostStore::get(state, again(store), "k".into()).unwrap().unwrap().map(|entry| entry.value)
}

#[test]
fn works_when_a_label_is_granted() {
    let mut state = granted(Kind::Policy, None);
    let plugin = store(&mut state, Scope::Plugin);
    let version = put(&mut state, &plugin, b"v").unwrap();
    let entry = HostStore::get(&mut state, again(&plugin), "k".into()).unwrap().unwrap().unwrap();
    assert_eq!((entry.value, entry.version), (b"v".to_vec(), version));
    assert_eq!(state.keys(again(&plugin), String::new(), None).unwrap().unwrap().keys, ["k"]);
    assert!(state.delete(again(&plugin), "k".into()).unwrap().unwrap());
    assert_eq!(value(&mut state, &plugin), None);
    HostStore::drop(&mut state, plugin).unwrap();
}

#[test]
fn a_label_that_is_declared_and_not_granted_is_denied_by_a_value() {
    let mut state = granted(Kind::Policy, None);
    for label in ["other", "absent", ""] {
        let said = HostStore::open(&mut state, label.into(), Scope::Plugin).unwrap();
        assert!(matches!(said, Err(Error::Denied(_))), "{label}");
    }
}

#[test]
fn a_handle_reaches_the_session_of_the_request_at_hand_and_no_other() {
    let mut state = granted(Kind::Adapter, None);
    let session = store(&mut state, Scope::Session);
    assert!(matches!(put(&mut state, &session, b"v"), Err(Error::Invalid(_))), "no request is at hand");
    request_of(&mut state, "default", "one");
    put(&mut state, &session, b"v").unwrap();
    request_of(&mut state, "default", "two");
    assert_eq!(value(&mut state, &session), None, "the same warm handle, another session");
    request_of(&mut state, "other", "one");
    assert_eq!(value(&mut state, &session), None, "another persona");
    request_of(&mut state, "default", "one");
    assert_eq!(value(&mut state, &session), Some(b"v".to_vec()));
}

#[test]
fn requests_of_two_sessions_at_once_are_nobodys() {
    let mut state = granted(Kind::Policy, None);
    let persona = store(&mut state, Scope::Persona);
    request_of(&mut state, "default", "one");
    let facts = crate::Facts { persona: "other".into(), session: "two".into(), ..crate::Facts::default() };
    state.lend(&Arc::new(facts)).unwrap();
    assert!(matches!(put(&mut state, &persona, b"v"), Err(Error::Invalid(_))));
}

#[test]
fn compare_and_set_says_who_was_faster() {
    let mut state = granted(Kind::Policy, None);
    let plugin = store(&mut state, Scope::Plugin);
    let mut set = |expected, value: &[u8]| {
        state.compare_and_set(again(&plugin), "k".into(), expected, value.to_vec(), None).unwrap().unwrap()
    };
    let Outcome::Written(first) = set(Expected::Absent, b"a") else { panic!() };
    assert!(matches!(set(Expected::Absent, b"b"), Outcome::Conflict(Some(entry)) if entry.value == b"a"));
    assert!(matches!(set(Expected::Version(first), b"c"), Outcome::Written(_)));
    assert!(matches!(set(Expected::Version(first), b"d"), Outcome::Conflict(Some(_))));
}

#[test]
fn the_smaller_of_two_quotas_counts_and_keys_and_times_are_checked() {
    let mut state = granted(Kind::Policy, Some(10));
    let plugin = store(&mut state, Scope::Plugin);
    assert!(put(&mut state, &plugin, &[0; 9]).is_ok());
    assert!(
        matches!(put(&mut state, &plugin, &[0; 10]), Err(Error::LimitExceeded(why)) if why.contains("kv.seen"))
    );
    let mut keyed = |key: &str, ttl| state.put(again(&plugin), key.into(), Vec::new(), ttl).unwrap();
    assert!(matches!(keyed("", None), Err(Error::Invalid(_))));
    assert!(matches!(keyed(&"k".repeat(513), None), Err(Error::Invalid(_))));
    assert!(matches!(keyed("k", Some(0)), Err(Error::Invalid(_))));
}

#[test]
fn an_adapter_writes_nothing_before_the_verdict() {
    let mut state = granted(Kind::Adapter, None);
    let plugin = store(&mut state, Scope::Plugin);
    state.phase = Phase::BeforeVerdict;
    assert!(matches!(put(&mut state, &plugin, b"v"), Err(Error::Denied(_))));
    assert!(matches!(state.delete(again(&plugin), "k".into()).unwrap(), Err(Error::Denied(_))));
    assert_eq!(value(&mut state, &plugin), None, "reading is fine");
    state.phase = Phase::Open;
    assert!(put(&mut state, &plugin, b"v").is_ok());
}

#[test]
fn a_host_without_a_store_answers_as_unavailable() {
    let mut state = open(Kind::Policy, &Ports::default(), "{}", |release, grants| {
        release.capabilities.kv.insert("seen".into(), KvCapability { max_bytes: 64 });
        grants.kv.insert("seen".into(), KvGrant::default());
    })
    .unwrap();
    let plugin = store(&mut state, Scope::Plugin);
    assert!(matches!(put(&mut state, &plugin, b"v"), Err(Error::Unavailable(_))));
}
