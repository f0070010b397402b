use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Resource;

use crate::bindings::documents::HostDocument as _;
use crate::bindings::hashing::Host as _;
use crate::bindings::requests::{HostRequest as _, LabelList, PinState};
use crate::bindings::settings::Host as _;
use crate::bindings::types::Error;
use crate::facts::{self, Document, Facts};
use crate::limits::{Limits, Meter, Parts};
use crate::state::{Shared, State};

/// A state without a guest: the host's side can be tested alone.
fn state(settings: &str, host_bytes: usize) -> State {
    let second = Duration::from_secs(1);
    let limits = Limits {
        memory: 1 << 20,
        host_bytes,
        call: second,
        init: second,
        wait: second,
        parts: Parts::POOLED,
    };
    let shared = Shared::new("test/guest", limits, Document::new(settings));
    State::new(Arc::new(shared), Meter::start(Duration::from_secs(1)))
}

fn document(state: &mut State, text: &str) -> Resource<Document> {
    state.table.push(Document::new(text)).unwrap()
}

fn again(handle: &Resource<Document>) -> Resource<Document> {
    Resource::new_borrow(handle.rep())
}

#[test]
fn a_document_is_read_by_pointer_and_within_the_limit() {
    let mut state = state("{}", 16);
    let handle = document(&mut state, r#"{"a":["x",{"b":"y"}],"long":"0123456789012345678901234567890"}"#);
    assert_eq!(state.size(again(&handle)).unwrap(), 62);
    assert!(matches!(state.read(again(&handle)).unwrap(), Err(Error::LimitExceeded(_))));
    assert_eq!(state.pointer(again(&handle), "/a/1/b".into()).unwrap().unwrap().as_deref(), Some("\"y\""));
    assert_eq!(state.text(again(&handle), "/a/0".into()).unwrap().unwrap().as_deref(), Some("x"));
    assert_eq!(state.text(again(&handle), "/a".into()).unwrap().unwrap(), None);
    assert!(matches!(state.pointer(again(&handle), "a".into()).unwrap(), Err(Error::Invalid(_))));
    assert!(matches!(state.text(again(&handle), "/long".into()).unwrap(), Err(Error::LimitExceeded(_))));
    assert_eq!(state.strings(again(&handle), "/a".into()).unwrap().unwrap(), ["/a/0", "/a/1/b"]);
    assert!(state.strings(again(&handle), "/absent".into()).unwrap().unwrap().is_empty());
    crate::bindings::documents::HostDocument::drop(&mut state, handle).unwrap();
}

#[test]
fn too_many_strings_are_an_error_and_not_a_cut_list() {
    let mut state = state("{}", 1 << 20);
    let handle = document(&mut state, &format!("[{}]", vec!["\"\""; 4097].join(",")));
    assert!(matches!(state.strings(handle, String::new()).unwrap(), Err(Error::LimitExceeded(_))));
}

#[test]
fn the_settings_are_a_document() {
    let mut state = state(r#"{"root":"/data"}"#, 1 << 20);
    let handle = state.get().unwrap();
    assert_eq!(state.text(handle, "/root".into()).unwrap().unwrap().as_deref(), Some("/data"));
}

#[test]
fn digests_are_those_of_the_rest_of_toolgate() {
    let mut state = state("{}", 1 << 20);
    let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(state.sha256(vec![]).unwrap(), empty);
    let one = document(&mut state, r#"{"b":1,"a":2}"#);
    let two = document(&mut state, "{ \"a\": 2, \"b\": 1 }");
    assert_eq!(state.canonical(one).unwrap().unwrap(), state.canonical(two).unwrap().unwrap());
    let bad = document(&mut state, r#"{"a":1,"a":2}"#);
    assert!(matches!(state.canonical(bad).unwrap(), Err(Error::Invalid(_))));
}

#[test]
fn a_request_tells_the_facts_and_can_be_taken_back() {
    let mut state = state("{}", 1 << 20);
    let facts = Arc::new(Facts {
        persona: "me".into(),
        matched_approval: Some("mcp.call:*".into()),
        pin: facts::PinState::Unreadable,
        document: Some(Document::new("{}")),
        ..Facts::default()
    });
    let request = state.lend(&facts).unwrap();
    let borrow = || Resource::new_borrow(request.rep());
    assert_eq!(state.persona(borrow()).unwrap(), "me");
    assert_eq!(state.matched_label(borrow(), LabelList::Allow).unwrap(), None);
    assert_eq!(
        state.matched_label(borrow(), LabelList::RequireApproval).unwrap().as_deref(),
        Some("mcp.call:*")
    );
    assert!(matches!(state.pin(borrow()).unwrap(), PinState::Unreadable));
    assert!(state.document(borrow()).unwrap().is_some());
    assert!(state.definition(borrow()).unwrap().is_none());
    state.take_back(request.rep());
    assert!(state.persona(borrow()).is_err());
    assert_eq!(Arc::strong_count(&facts), 1);
    // A document in the place of a request is left alone.
    let handle = document(&mut state, "{}");
    state.take_back(handle.rep());
    assert!(state.size(handle).is_ok());
}

#[test]
fn the_table_is_bounded() {
    let mut state = state("{}", 1 << 20);
    let facts = Arc::new(Facts::default());
    let mut count = 0;
    while state.lend(&facts).is_ok() {
        count += 1;
        assert!(count <= crate::limits::MAX_HANDLES);
    }
    assert_eq!(count, crate::limits::MAX_HANDLES);
}
