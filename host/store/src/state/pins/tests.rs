use std::fs;

use super::PinnedDefinition;
use crate::state::lost::tests::recover;
use crate::testing::{Bench, digest};
use crate::{ErrorClass, PINS_KNOWN, STATE_DB, Store, StoreError};

fn pin(name: &str) -> PinnedDefinition {
    let definition_json = format!("{{\"name\":\"{name}\"}}");
    PinnedDefinition {
        kind: "tool".to_owned(),
        name: name.to_owned(),
        digest: digest(&definition_json),
        definition_json,
    }
}

fn pinned() -> Bench {
    let bench = Bench::new();
    let pins = vec![pin("write"), pin("read")];
    bench.store().write_pins(&digest("github"), "github", "2025-11-25", &pins).unwrap();
    bench
}

/// The pins are refused, and the message tells how to repair.
fn refused(store: &Store) {
    let error = store.pins_of(&digest("github")).unwrap_err();
    assert!(matches!(error, StoreError::PinsLost { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Integrity);
    assert!(error.to_string().contains("toolgate mcp pin github --accept"), "{error}");
}

#[test]
fn pins_come_back_in_the_servers_order_with_revision_and_protocol() {
    let bench = pinned();
    let pins = bench.store().pins_of(&digest("github")).unwrap().unwrap();
    assert_eq!(pins.definitions, [pin("write"), pin("read")]);
    assert_eq!((pins.known.server.as_str(), pins.known.revision), ("github", 1));
    assert_eq!(pins.known.protocol_revision, "2025-11-25");
    assert_eq!(pins.of("tool", "read"), Some(&pin("read")));
    assert_eq!(pins.of("prompt", "read"), None);
    assert_eq!(bench.store().pins_of(&digest("other")).unwrap(), None, "never pinned");
}

#[test]
fn accepting_again_replaces_the_pins() {
    let mut bench = pinned();
    bench.store().write_pins(&digest("github"), "github", "2026-07-28", &[pin("read")]).unwrap();
    bench.open();
    let pins = bench.store().pins_of(&digest("github")).unwrap().unwrap();
    assert_eq!((pins.definitions.len(), pins.known.revision), (1, 2));
}

/// PI-05: "delete one entry of a known server", and every other change of a row.
#[test]
fn a_removed_added_or_altered_pin_is_an_error_and_no_first_use() {
    for change in [
        "DELETE FROM pins WHERE name = 'read'",
        "DELETE FROM pins",
        "INSERT INTO pins SELECT identity, kind, 'evil', digest, definition FROM pins LIMIT 1",
        "UPDATE pins SET digest = (SELECT digest FROM pins WHERE name = 'write')",
        "UPDATE pins SET definition = '{}' WHERE name = 'read'",
        "UPDATE known_servers SET server = 'gitlab', revision = revision",
        "DELETE FROM known_servers",
        "DELETE FROM known_servers; DELETE FROM pins",
    ] {
        let bench = pinned();
        bench.behind_its_back(STATE_DB).execute_batch(change).unwrap();
        let error = bench.store().pins_of(&digest("github")).unwrap_err();
        assert!(matches!(error, StoreError::PinsLost { .. }), "{change}: {error}");
    }
}

/// PI-05: "truncate the pin file to 10 bytes / make it unreadable".
#[test]
fn a_truncated_state_does_not_open() {
    let mut bench = pinned();
    bench.close();
    let path = bench.path().join(STATE_DB);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..10]).unwrap();
    let error = Store::open(bench.path(), "gateway").unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Integrity);
    assert_eq!(fs::read(&path).unwrap().len(), 10, "nothing was made anew over it");
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(Store::open(bench.path(), "gateway").is_err());
}

/// PI-05: "deleted whole store = explicit re-approval, not auto".
#[test]
fn a_deleted_state_leaves_its_servers_known() {
    for empty in [false, true] {
        let mut bench = pinned();
        bench.close();
        let path = bench.path().join(STATE_DB);
        fs::remove_file(&path).unwrap();
        if empty {
            fs::write(&path, b"").unwrap();
        }
        let error = Store::open(bench.path(), "gateway").unwrap_err();
        assert!(matches!(error, StoreError::StateLost { .. }), "{error}");
        recover(bench.path());
        bench.open();
        refused(bench.store());
        let known = bench.store().known_servers().unwrap();
        assert_eq!(known.len(), 1, "another identity under this name is no first use either");
        assert_eq!(known[0].server, "github");
        // The explicit way back.
        bench.store().write_pins(&digest("github"), "github", "2025-11-25", &[pin("read")]).unwrap();
        assert!(bench.store().pins_of(&digest("github")).unwrap().is_some());
        assert_eq!(bench.store().known_servers().unwrap().len(), 1);
    }
}

#[test]
fn an_older_copy_of_the_state_is_noticed() {
    let mut bench = pinned();
    bench.close();
    let path = bench.path().join(STATE_DB);
    let old = fs::read(&path).unwrap();
    bench.open();
    bench.store().write_pins(&digest("github"), "github", "2025-11-25", &[pin("read")]).unwrap();
    bench.close();
    fs::write(&path, old).unwrap();
    bench.open();
    refused(bench.store());
}

#[test]
fn a_second_witness_that_is_behind_is_mended_and_one_that_is_damaged_is_an_error() {
    let mut bench = pinned();
    bench.close();
    let path = bench.path().join(PINS_KNOWN);
    let good = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    bench.open();
    assert_eq!(fs::read(&path).unwrap(), good, "as after a kill between both writes");
    fs::write(&path, &good[..10]).unwrap();
    assert!(matches!(bench.store().pins_of(&digest("github")), Err(StoreError::Damaged { .. })));
    assert!(matches!(Store::open(bench.path(), "cli"), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_forgotten_server_is_a_new_one() {
    let bench = pinned();
    assert!(bench.store().forget_pins(&digest("github")).unwrap());
    assert!(!bench.store().forget_pins(&digest("github")).unwrap());
    assert_eq!(bench.store().pins_of(&digest("github")).unwrap(), None);
    assert!(bench.store().known_servers().unwrap().is_empty());
}

#[test]
fn two_processes_pin_different_servers_at_once() {
    let bench = Bench::new();
    let other = bench.another("cli");
    std::thread::scope(|scope| {
        for (store, name) in [(bench.store(), "one"), (&other, "two")] {
            scope.spawn(move || {
                for round in 0..5 {
                    let pins = vec![pin(&format!("tool{round}"))];
                    store.write_pins(&digest(name), name, "2025-11-25", &pins).unwrap();
                }
            });
        }
    });
    for name in ["one", "two"] {
        let pins = other.pins_of(&digest(name)).unwrap().unwrap();
        assert_eq!((pins.known.revision, pins.definitions[0].name.as_str()), (5, "tool4"));
    }
}
