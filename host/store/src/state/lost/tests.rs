use std::fs;
use std::path::Path;
use std::sync::Arc;

use toolgate_base::SystemClock;

use crate::testing::{Bench, append, digest, run};
use crate::{
    AUDIT_DB, AUDIT_HEADS, Durability, ErrorClass, Freeze, Frozen, PINS_KNOWN, Recovered, Recovery, STATE_DB,
    Standing, StandingDecision, Store, StoreError,
};

/// Recovers as the operator of a configuration with the server `github`.
pub(crate) fn recover(data_dir: &Path) -> Recovered {
    let recovery = Recovery {
        approver: "uid 1 (pin)".to_owned(),
        servers: vec![(digest("github"), "github".to_owned())],
    };
    run(Store::recover(data_dir, Durability::Process, Arc::new(SystemClock), &recovery)).unwrap()
}

fn freeze(what: Frozen) -> Freeze {
    Freeze { what, reason: "r".to_owned(), frozen_by: "me".to_owned() }
}

fn decided(pattern: &str, decision: Standing) -> StandingDecision {
    StandingDecision {
        persona: "default".to_owned(),
        pattern: pattern.to_owned(),
        decision,
        read_only: false,
        decided_by: "me".to_owned(),
        decided_at_ms: 0,
    }
}

fn delete(data_dir: &Path, database: &str) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(data_dir.join(format!("{database}{suffix}")));
    }
}

fn lost(data_dir: &Path) -> String {
    let error = Store::open(data_dir, "gateway").unwrap_err();
    assert!(matches!(error, StoreError::StateLost { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Integrity);
    error.to_string()
}

#[test]
fn a_state_that_is_gone_is_made_anew_by_nobody_but_the_operator_and_holds_what_was_taken_away() {
    let mut bench = Bench::new();
    run(async {
        let store = bench.store();
        for what in [Frozen::Server("a".to_owned()), Frozen::Server("b".to_owned())] {
            store.freeze(&freeze(what)).await.unwrap();
        }
        store.thaw(&Frozen::Server("b".to_owned()), "me").await.unwrap();
        store.set_standing(&decided("mcp.call:a", Standing::Allow), true).await.unwrap();
        store.set_standing(&decided("mcp.call:b", Standing::Deny), true).await.unwrap();
        store.set_standing(&decided("mcp.call:c", Standing::Deny), true).await.unwrap();
        store.set_standing(&decided("mcp.call:c", Standing::Ask), true).await.unwrap();
    });
    bench.close();
    for empty in [false, true] {
        delete(bench.path(), STATE_DB);
        if empty {
            fs::write(bench.path().join(STATE_DB), b"").unwrap();
        }
        assert!(lost(bench.path()).contains("toolgate operator recover"));
        lost(bench.path());
    }
    let recovered = recover(bench.path());
    assert_eq!((recovered.standing, &recovered.distrusted), (2, &None));
    bench.open();
    let store = bench.store();
    assert_eq!(store.frozen().unwrap(), [freeze(Frozen::Server("a".to_owned()))]);
    let mut standing = store.standing().unwrap();
    for row in &mut standing {
        row.decided_at_ms = 0;
    }
    assert_eq!(standing, [decided("mcp.call:b", Standing::Deny), decided("mcp.call:c", Standing::Ask)]);
    bench.close();
    let again = Recovery { approver: "me".to_owned(), servers: Vec::new() };
    let refused = run(Store::recover(bench.path(), Durability::Process, Arc::new(SystemClock), &again));
    assert!(matches!(refused, Err(StoreError::StateIsThere { .. })), "{refused:?}");
}

#[test]
fn anchors_sealed_rows_and_pinned_servers_tell_of_a_state_too_and_then_everything_is_frozen() {
    let mut bench = Bench::new();
    append(bench.store(), 3);
    bench.close();
    delete(bench.path(), STATE_DB);
    delete(bench.path(), AUDIT_DB);
    assert!(lost(bench.path()).contains(AUDIT_HEADS));
    let recovered = recover(bench.path());
    assert!(recovered.distrusted.is_some());
    assert_eq!(recovered.servers, ["github"], "whatever was pinned, it is no first use");
    bench.open();
    assert_eq!(bench.store().frozen().unwrap()[0].what, Frozen::All);
    assert!(bench.store().pins_of(&digest("github")).is_err());
    bench.close();
    // A directory that nothing speaks of is a new one.
    delete(bench.path(), STATE_DB);
    delete(bench.path(), AUDIT_DB);
    for name in [AUDIT_HEADS, PINS_KNOWN] {
        fs::remove_file(bench.path().join(name)).unwrap();
    }
    bench.open();
    assert!(bench.store().frozen().unwrap().is_empty());
}

#[test]
fn a_process_that_has_the_lost_state_open_still_knows_it() {
    let bench = Bench::new();
    append(bench.store(), 1);
    bench.store().state_version().unwrap();
    delete(bench.path(), STATE_DB);
    assert!(bench.store().frozen().is_err(), "the next process would not see this freeze");
    assert!(bench.store().state_version().is_err());
}
