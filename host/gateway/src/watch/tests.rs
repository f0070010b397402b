use toolgate_store::{Freeze, Frozen, Standing, StandingDecision};

use super::*;

fn standing(pattern: &str, decision: Standing, read_only: bool) -> StandingDecision {
    StandingDecision {
        persona: "default".to_owned(),
        pattern: pattern.to_owned(),
        decision,
        read_only,
        decided_at_ms: 0,
        decided_by: "operator".to_owned(),
    }
}

#[test]
fn of_several_standing_decisions_the_narrowest_counts() {
    let current = Current::of(
        Vec::new(),
        vec![
            standing("mcp.call:notes", Standing::Allow, false),
            standing("mcp.call:notes/write", Standing::Ask, false),
            standing("mcp.call:notes/delete", Standing::Deny, false),
        ],
    );
    let decided = |tool: &str, persona: &str| {
        let label = Label::new("mcp", "call", &format!("notes/{tool}")).unwrap();
        current.decided(persona, &[&label], false).map(|decided| decided.decision)
    };
    assert_eq!(decided("read", "default"), Some(Standing::Allow));
    assert_eq!(decided("write", "default"), Some(Standing::Ask));
    assert_eq!(decided("delete", "default"), Some(Standing::Deny));
    assert_eq!(decided("read", "other"), None);
}

#[test]
fn a_decision_for_reading_covers_only_what_says_that_it_reads() {
    let current = Current::of(Vec::new(), vec![standing("mcp.call:notes", Standing::Allow, true)]);
    let label = Label::new("mcp", "call", "notes/read").unwrap();
    assert!(current.decided("default", &[&label], true).is_some());
    assert!(current.decided("default", &[&label], false).is_none());
}

#[test]
fn a_freeze_of_everything_covers_every_server() {
    let freeze = |what| Freeze { what, reason: "why".to_owned(), frozen_by: "operator".to_owned() };
    let one = Current::of(vec![freeze(Frozen::Server("notes".to_owned()))], Vec::new());
    assert_eq!((one.frozen("notes"), one.frozen("wiki")), (Some(("why", "--server notes".to_owned())), None));
    let all = Current::of(vec![freeze(Frozen::All)], Vec::new());
    assert_eq!(all.frozen("wiki"), Some(("why", "--all".to_owned())));
}
