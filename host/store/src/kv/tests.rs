//! One table, many owners.

use std::time::Duration;

use super::{KvCondition, KvDone, KvPlace, KvValue};
use crate::testing::Bench;

const QUOTA: u64 = 100;

fn place(owner: &'static str) -> KvPlace<'static> {
    KvPlace { plugin: "acme/guard", label: "seen", scope: "session", owner }
}

fn put(bench: &Bench, owner: &'static str, key: &str, value: &[u8]) -> KvDone {
    bench.store().kv_write(&place(owner), key, value, None, KvCondition::None, QUOTA).unwrap()
}

fn value(bench: &Bench, owner: &'static str, key: &str) -> Option<Vec<u8>> {
    bench.store().kv_get(&place(owner), key).unwrap().map(|found| found.value)
}

#[test]
fn a_value_belongs_to_one_plugin_label_scope_and_owner() {
    let bench = Bench::new();
    put(&bench, "one", "k", b"v");
    assert_eq!(value(&bench, "one", "k"), Some(b"v".to_vec()));
    assert_eq!(value(&bench, "two", "k"), None);
    for other in [
        KvPlace { plugin: "acme/other", ..place("one") },
        KvPlace { label: "other", ..place("one") },
        KvPlace { scope: "persona", ..place("one") },
    ] {
        assert_eq!(bench.store().kv_get(&other, "k").unwrap(), None);
    }
    assert!(bench.store().kv_delete(&place("one"), "k").unwrap());
    assert!(!bench.store().kv_delete(&place("one"), "k").unwrap());
}

#[test]
fn a_value_outlives_the_process_and_expires_by_the_clock() {
    let mut bench = Bench::new();
    let ttl = Some(Duration::from_secs(10));
    bench.store().kv_write(&place("one"), "short", b"x", ttl, KvCondition::None, QUOTA).unwrap();
    put(&bench, "one", "long", b"y");
    bench.open();
    assert_eq!(value(&bench, "one", "short"), Some(b"x".to_vec()));
    bench.clock.advance(10_000);
    assert_eq!(value(&bench, "one", "short"), None);
    assert_eq!(bench.store().kv_keys(&place("one"), "", "", 10).unwrap(), ["long"]);
}

#[test]
fn of_two_processes_that_compare_and_set_one_wins() {
    let bench = Bench::new();
    let KvDone::Written(first) = put(&bench, "one", "k", b"0") else { panic!() };
    let other = bench.another("cli");
    let set = |store: &crate::Store, value: &[u8], version| {
        store.kv_write(&place("one"), "k", value, None, KvCondition::Version(version), QUOTA).unwrap()
    };
    let KvDone::Written(second) = set(bench.store(), b"a", first) else { panic!() };
    assert!(second > first);
    let conflict = KvDone::Conflict(Some(KvValue { value: b"a".to_vec(), version: second }));
    assert_eq!(set(&other, b"b", first), conflict);
    let absent = other.kv_write(&place("one"), "k", b"c", None, KvCondition::Absent, QUOTA).unwrap();
    assert_eq!(absent, conflict);
    assert_eq!(value(&bench, "one", "k"), Some(b"a".to_vec()));
}

#[test]
fn a_version_is_not_given_twice_even_after_the_key_was_removed() {
    let bench = Bench::new();
    let KvDone::Written(first) = put(&bench, "one", "k", b"0") else { panic!() };
    bench.store().kv_delete(&place("one"), "k").unwrap();
    bench.clock.advance(1);
    let KvDone::Written(second) = put(&bench, "one", "k", b"0") else { panic!() };
    assert!(second > first);
}

#[test]
fn the_quota_counts_keys_and_values_of_one_space_and_a_replaced_value_makes_room() {
    let bench = Bench::new();
    assert!(matches!(put(&bench, "one", "a", &[0; 60]), KvDone::Written(_)));
    assert_eq!(put(&bench, "one", "b", &[0; 39]), KvDone::Full(61));
    assert!(matches!(put(&bench, "one", "b", &[0; 38]), KvDone::Written(_)));
    assert!(matches!(put(&bench, "one", "a", &[0; 59]), KvDone::Written(_)));
    assert!(
        matches!(put(&bench, "two", "a", &[0; 99]), KvDone::Written(_)),
        "another space is another quota"
    );
}

#[test]
fn many_spaces_together_are_bounded_too() {
    let bench = Bench::new();
    let write = |owner: &str| {
        let place = KvPlace { plugin: "acme/guard", label: "seen", scope: "session", owner };
        bench.store().kv_write(&place, "k", &[0; 99], None, KvCondition::None, QUOTA).unwrap()
    };
    for session in 0..64 {
        assert!(matches!(write(&session.to_string()), KvDone::Written(_)), "{session}");
    }
    assert!(matches!(write("64"), KvDone::Full(_)));
}

#[test]
fn keys_come_in_order_page_by_page_and_a_prefix_is_no_pattern() {
    let bench = Bench::new();
    for key in ["a%", "a_1", "ab", "b", "ä"] {
        put(&bench, "one", key, b"");
    }
    let keys = |prefix, after, limit| bench.store().kv_keys(&place("one"), prefix, after, limit).unwrap();
    assert_eq!(keys("", "", 2), ["a%", "a_1"]);
    assert_eq!(keys("", "a_1", 9), ["ab", "b", "ä"]);
    assert_eq!(keys("a", "", 9), ["a%", "a_1", "ab"]);
    assert_eq!(keys("a%", "", 9), ["a%"]);
    assert_eq!(keys("ä", "", 9), ["ä"]);
}
