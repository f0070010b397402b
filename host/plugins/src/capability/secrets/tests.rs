use std::sync::Arc;

use toolgate_grants::SecretGrant;
use toolgate_signing::{Kind, SecretCapability};

use super::super::testing::{Book, again, open, request_of};
use super::*;
use crate::bindings::secrets_reveal::Host as _;
use crate::ports::{Ports, Record};
use crate::state::Phase;

fn state(book: Option<Arc<Book>>, value: &str, asked: bool, granted: bool) -> Result<State, LoadErrorKind> {
    let ports = Ports { record: book.map(|book| book as Arc<dyn Record>), ..Ports::default() };
    open(Kind::Policy, &ports, "{}", |release, grants| {
        let declared = SecretCapability { purpose: "t".into(), send_to: Vec::new(), reveal: asked };
        release.capabilities.secrets.insert("token".into(), declared);
        let grant = SecretGrant { value: Secret::new(value), send_to: None, reveal: granted };
        grants.secrets.insert("token".into(), grant);
    })
}

fn revealed(state: &mut State) -> Result<Vec<u8>, Error> {
    let secret = HostSecret::open(state, "token".into()).unwrap().unwrap();
    state.reveal(again(&secret)).unwrap()
}

#[test]
fn a_secret_is_not_read_without_reveal() {
    let book = Arc::new(Book::default());
    let mut state = state(Some(Arc::clone(&book)), "s3cret", true, false).unwrap();
    assert!(matches!(revealed(&mut state), Err(Error::Denied(why)) if why.contains("reveal")));
    assert!(book.rows.lock().unwrap().is_empty());
}

#[test]
fn what_is_revealed_was_written_down_first() {
    let book = Arc::new(Book::default());
    let mut state = state(Some(Arc::clone(&book)), "s3cret", true, true).unwrap();
    request_of(&mut state, "default", "one");
    assert_eq!(revealed(&mut state).unwrap(), b"s3cret");
    assert_eq!(*book.rows.lock().unwrap(), ["test/guest token default"]);
}

#[test]
fn nothing_is_revealed_that_cannot_be_written_down() {
    let failing = Arc::new(Book { fails: true, ..Book::default() });
    for book in [None, Some(failing)] {
        let mut state = state(book, "s3cret", true, true).unwrap();
        assert!(matches!(revealed(&mut state), Err(Error::Unavailable(_))));
    }
}

#[test]
fn a_grant_to_reveal_what_the_release_does_not_ask_to_see_is_refused() {
    assert!(matches!(state(None, "s3cret", false, true), Err(LoadErrorKind::Grant(_))));
}

#[test]
fn a_secret_without_a_value_or_a_grant_opens_nothing_and_none_before_the_verdict() {
    let mut empty = state(None, "", true, true).unwrap();
    assert!(matches!(HostSecret::open(&mut empty, "token".into()).unwrap(), Err(Error::Unavailable(_))));
    let mut open = state(None, "s3cret", true, true).unwrap();
    assert!(matches!(HostSecret::open(&mut open, "other".into()).unwrap(), Err(Error::Denied(_))));
    let secret = HostSecret::open(&mut open, "token".into()).unwrap().unwrap();
    open.phase = Phase::BeforeVerdict;
    assert!(matches!(HostSecret::open(&mut open, "token".into()).unwrap(), Err(Error::Denied(_))));
    assert!(matches!(open.reveal(again(&secret)).unwrap(), Err(Error::Denied(_))));
}
