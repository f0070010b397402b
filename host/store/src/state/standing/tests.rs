use crate::testing::{Bench, NOW_MS, run};
use crate::{Filter, Freeze, Frozen, Standing, StandingDecision, StoreError};

#[test]
fn a_standing_decision_is_replaced_and_seen_by_another_process() {
    let bench = Bench::new();
    let other = bench.another("cli");
    let before = other.state_version().unwrap();
    for decision in [Standing::Allow, Standing::Deny] {
        let standing = StandingDecision {
            persona: "default".to_owned(),
            pattern: "mcp.call:notes/read".to_owned(),
            decision,
            read_only: false,
            decided_by: "operator".to_owned(),
            decided_at_ms: i64::try_from(NOW_MS).unwrap(),
        };
        run(bench.store().set_standing(&standing, true)).unwrap();
        assert_eq!(other.standing().unwrap(), [standing]);
    }
    assert_ne!(other.state_version().unwrap(), before, "a gateway notices that something changed");
}

#[test]
fn what_is_frozen_stays_so_over_a_restart_until_it_is_thawed() {
    let mut bench = Bench::new();
    let freeze = Freeze {
        what: Frozen::Server("notes".to_owned()),
        reason: "looks wrong".to_owned(),
        frozen_by: "operator".to_owned(),
    };
    run(bench.store().freeze(&freeze)).unwrap();
    bench.open();
    assert_eq!(bench.store().frozen().unwrap(), std::slice::from_ref(&freeze));
    assert!(run(bench.store().thaw(&freeze.what, "operator")).unwrap());
    assert!(!run(bench.store().thaw(&freeze.what, "operator")).unwrap());
    assert_eq!(bench.store().frozen().unwrap(), []);
}

fn denied(pattern: &str) -> StandingDecision {
    StandingDecision {
        persona: "default".to_owned(),
        pattern: pattern.to_owned(),
        decision: Standing::Deny,
        read_only: false,
        decided_by: "operator".to_owned(),
        decided_at_ms: 0,
    }
}

/// The events of the log with whether each says that it was not done.
fn told(bench: &Bench) -> Vec<(String, bool)> {
    run(bench.store().flush());
    let rows = bench.store().reader().unwrap().tail(100, &Filter::default()).unwrap();
    rows.iter().map(|row| (row.event().to_owned(), row.details.get("refused").is_some())).collect()
}

#[test]
fn what_is_not_done_leaves_no_row_that_says_it_was() {
    let bench = Bench::new();
    let fill = |table: &str, values: &str, count: u32| {
        bench
            .behind_its_back(crate::STATE_DB)
            .execute_batch(&format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
                 INSERT INTO {table} SELECT {values} FROM n"
            ))
            .unwrap();
    };
    fill("standing", "'p', 'mcp.call:a' || i, 'deny', 0, 'x', 0", 10_000);
    fill("frozen", "'plugin', 'a' || i, 'r', 'x', 0", 999);
    let freeze = Freeze {
        what: Frozen::Server("notes".to_owned()),
        reason: "r".to_owned(),
        frozen_by: "operator".to_owned(),
    };
    assert!(matches!(
        run(bench.store().set_standing(&denied("mcp.call:b"), true)),
        Err(StoreError::TooManyStanding { .. })
    ));
    assert!(matches!(run(bench.store().freeze(&freeze)), Err(StoreError::TooManyStanding { .. })));
    assert!(!run(bench.store().thaw(&freeze.what, "operator")).unwrap());
    assert_eq!(run(bench.store().revoke("grant_0", "operator")).unwrap(), None);
    assert_eq!(run(bench.store().revoke("ask_0", "operator")).unwrap(), None);
    assert_eq!(told(&bench), []);
}

#[test]
fn a_decision_is_taken_back_as_the_one_that_was_seen_and_the_log_says_so() {
    let bench = Bench::new();
    let decision = denied("mcp.call:notes/read");
    run(bench.store().set_standing(&decision, true)).unwrap();
    let other = StandingDecision { decision: Standing::Ask, ..decision.clone() };
    assert!(matches!(run(bench.store().forget_standing(&other, "operator")), Err(StoreError::Overtaken)));
    assert_eq!(bench.store().standing().unwrap().len(), 1);
    run(bench.store().forget_standing(&decision, "operator")).unwrap();
    assert_eq!(bench.store().standing().unwrap(), []);
    assert_eq!(bench.store().standing_of("default", "mcp.call:notes/read").unwrap(), None);
    let set = |refused| ("standing_decision".to_owned(), refused);
    assert_eq!(told(&bench), [set(false), set(false), set(true), set(false)]);
}
