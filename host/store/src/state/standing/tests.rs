use crate::testing::{Bench, run};
use crate::{Freeze, Frozen, Standing, StandingDecision};

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
