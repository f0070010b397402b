use std::time::Duration;

use crate::testing::{Bench, digest, run};
use crate::{Answer, AskAbout, AskBinding, AskState, GrantQuery, GrantScope, StoreError};

fn binding() -> AskBinding {
    AskBinding {
        caller: "default|stdio".to_owned(),
        session: "s-1".to_owned(),
        server_identity: digest("server"),
        definition: digest("definition"),
        arguments: digest("{}"),
        plugin_set: digest("plugins"),
    }
}

fn about() -> AskAbout {
    AskAbout {
        persona: "default".to_owned(),
        server: "github".to_owned(),
        tool: "create".to_owned(),
        action: "call".to_owned(),
        session: "s-1".to_owned(),
        ..AskAbout::default()
    }
}

fn granted(bench: &Bench, scope: GrantScope, ttl: Option<Duration>) -> crate::Grant {
    let id = bench.record_ask(&binding(), &about()).unwrap().ask.id;
    let answer = Answer { grant: true, by: "operator".to_owned(), surface: "cli" };
    let grant = run(bench.store().grant_wider(&id, &answer, scope, ttl)).unwrap();
    assert_eq!(bench.store().ask(&id).unwrap().unwrap().state, AskState::Granted, "the open call passes too");
    bench.store().spend(&binding()).unwrap().unwrap();
    grant
}

fn finds(bench: &Bench, change: impl FnOnce(&mut Wanted)) -> bool {
    let mut wanted = Wanted {
        persona: "default",
        session: "s-1",
        server: digest("server"),
        action: "call",
        tool: "create",
        definition: digest("definition"),
    };
    change(&mut wanted);
    let query = GrantQuery {
        persona: wanted.persona,
        session: wanted.session,
        server_identity: &wanted.server,
        action: wanted.action,
        tool: wanted.tool,
        definition: &wanted.definition,
    };
    bench.store().grant_for(&query).unwrap().is_some()
}

struct Wanted {
    persona: &'static str,
    session: &'static str,
    server: toolgate_signing::Digest,
    action: &'static str,
    tool: &'static str,
    definition: toolgate_signing::Digest,
}

#[test]
fn a_wider_grant_opens_what_it_names_and_nothing_beside_it() {
    let bench = Bench::new();
    granted(&bench, GrantScope::Persona, None);
    assert!(finds(&bench, |_| {}));
    assert!(finds(&bench, |wanted| wanted.session = "another"));
    assert!(!finds(&bench, |wanted| wanted.persona = "other"));
    assert!(!finds(&bench, |wanted| wanted.server = digest("another server")));
    assert!(!finds(&bench, |wanted| wanted.action = "read"));
    assert!(!finds(&bench, |wanted| wanted.tool = "delete"));
    assert!(!finds(&bench, |wanted| wanted.definition = digest("changed")));
}

#[test]
fn a_grant_for_a_session_ends_at_the_session_at_its_time_and_when_it_is_revoked() {
    let mut bench = Bench::new();
    let grant = granted(&bench, GrantScope::Session, Some(Duration::from_mins(1)));
    assert!(finds(&bench, |_| {}));
    assert!(!finds(&bench, |wanted| wanted.session = "another"));
    bench.open();
    assert!(finds(&bench, |_| {}), "it survives a restart");
    bench.clock.advance(60_000);
    assert!(!finds(&bench, |_| {}));
    let grant = {
        drop(grant);
        granted(&bench, GrantScope::Session, None)
    };
    assert!(run(bench.store().revoke(&grant.id, "operator")).unwrap().is_some());
    assert!(!finds(&bench, |_| {}));
}

/// APR-020: a server that can leave its sandbox is granted a session at most.
#[test]
fn apr_020_a_server_with_host_escape_gets_no_grant_for_a_persona() {
    let bench = Bench::new();
    let binding = AskBinding {
        caller: "default|stdio".to_owned(),
        session: "s-1".to_owned(),
        server_identity: digest("server"),
        definition: digest("definition"),
        arguments: digest("{}"),
        plugin_set: digest("plugins"),
    };
    let about = AskAbout { host_escape: true, ..AskAbout::default() };
    let id = bench.record_ask(&binding, &about).unwrap().ask.id;
    let answer = Answer { grant: true, by: "operator".to_owned(), surface: "cli" };
    let refused = run(bench.store().grant_wider(&id, &answer, GrantScope::Persona, None));
    assert!(matches!(refused, Err(StoreError::GrantTooWide { .. })));
    assert_eq!(bench.store().ask(&id).unwrap().unwrap().state, AskState::Pending);
    run(bench.store().grant_wider(&id, &answer, GrantScope::Session, None)).unwrap();
}

/// A wider grant comes with a yes for its call: whichever is taken back, both end, in one row that names both.
#[test]
fn what_was_granted_together_is_taken_back_together_by_either_name() {
    for by_grant in [true, false] {
        let bench = Bench::new();
        let grant = granted(&bench, GrantScope::Persona, None);
        let again = bench.record_ask(&binding(), &about()).unwrap().ask;
        assert_ne!(again.id, grant.ask, "the first is spent");
        let answer = Answer { grant: true, by: "operator".to_owned(), surface: "cli" };
        let second = run(bench.store().grant_wider(&again.id, &answer, GrantScope::Persona, None)).unwrap();
        let id = if by_grant { &second.id } else { &again.id };
        let ended = run(bench.store().revoke(id, "operator")).unwrap().unwrap();
        assert_eq!(ended.ids(), [&*again.id, &*second.id]);
        assert_eq!(bench.store().spend(&binding()).unwrap(), None);
        assert!(finds(&bench, |_| {}), "the first grant is another one");
        let row = bench.store().reader().unwrap().tail(1, &crate::Filter::default()).unwrap().remove(0);
        assert_eq!(row.details["ended"], serde_json::json!([again.id, second.id]));
        // Its ask is spent, and a name of it takes the grant back all the same.
        let ended = run(bench.store().revoke(&grant.ask, "operator")).unwrap().unwrap();
        assert_eq!(ended.ids(), [&*grant.id]);
        assert!(!finds(&bench, |_| {}));
        for id in [&grant.ask, &grant.id, &again.id, &second.id] {
            assert_eq!(run(bench.store().revoke(id, "operator")).unwrap(), None);
        }
    }
}
