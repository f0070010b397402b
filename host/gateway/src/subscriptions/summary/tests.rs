use std::sync::Arc;

use toolgate_config::Server;

use super::*;
use crate::caller::Caller;
use crate::subscriptions::{Entry, Inbox, Watcher};

fn key(server: &str, credential: &str) -> Key {
    let caller = Caller::new("default", credential, "s", Era::Legacy);
    Key::of(&Server::stdio(server, "x", Vec::new()), &caller)
}

fn held(subscriptions: &Subscriptions, key: &Key, uri: &str) {
    let watcher = Watcher {
        inbox: Arc::<Inbox>::default(),
        shown: uri.to_owned(),
        caller: Caller::new("default", "c", "s", Era::Legacy),
    };
    let entry = Entry { watchers: vec![watcher], ..Entry::default() };
    subscriptions.lock().entry(key.clone()).or_default().entries.insert(uri.to_owned(), entry);
}

#[test]
fn res_019_each_connection_has_an_entry_of_its_own_and_nothing_is_added_up() {
    let all = Subscriptions::default();
    held(&all, &key("a", "one"), "x://1");
    held(&all, &key("a", "two"), "x://1");
    held(&all, &key("b", "one"), "x://1");
    held(&all, &key("b", "one"), "x://2");
    let summary = all.summary(|_| true, |_| Some(Era::Legacy));
    let seen: Vec<(&str, usize)> =
        summary.iter().map(|entry| (entry.server.as_str(), entry.uris.len())).collect();
    assert_eq!(seen, [("a", 1), ("a", 1), ("b", 2)]);
    let of = |server, persona| all.summary(|key| key.is_of(server, persona), |_| None).len();
    assert_eq!((of("a", "default"), of("b", "default"), of("a", "other")), (2, 1, 0));
}

#[test]
fn res_016_res_018_a_lost_connection_has_no_mode_and_says_nothing_of_what_is_honored() {
    let all = Subscriptions::default();
    let key = key("a", "one");
    held(&all, &key, "x://1");
    all.decline(&key, "x://2");
    let [lost] = &all.summary(|_| true, |_| None)[..] else { panic!() };
    assert_eq!((&lost.mode, &lost.unhonored), (&None, &None));
    assert_eq!(lost.standing("x://1"), "unconfirmed");
    let [open] = &all.summary(|_| true, |_| Some(Era::Modern))[..] else { panic!() };
    assert_eq!(open.uris, ["x://1", "x://2"], "RES-017: what was declined was asked for");
    assert_eq!((open.standing("x://1"), open.standing("x://2")), ("subscribed", "not honored"));
}

#[test]
fn a_resource_that_nobody_holds_is_no_subscription() {
    let all = Subscriptions::default();
    let key = key("a", "one");
    let turn = all.turn(&key, "x://1", &Arc::default()).unwrap();
    assert!(all.summary(|_| true, |_| None).is_empty());
    all.drop_left(&key);
    assert!(all.lock().contains_key(&key), "somebody waits for its turn");
    drop(turn);
    all.drop_left(&key);
    assert!(all.lock().is_empty());
}
