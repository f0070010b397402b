use std::time::Duration;

use crate::testing::{Bench, digest, run};
use crate::{Answer, AskAbout, AskBinding, AskState, GrantQuery, GrantScope, StoreError};

fn granted(bench: &Bench, scope: GrantScope, ttl: Option<Duration>) -> crate::Grant {
    let binding = AskBinding {
        caller: "default|stdio".to_owned(),
        session: "s-1".to_owned(),
        server_identity: digest("server"),
        definition: digest("definition"),
        arguments: digest("{}"),
        plugin_set: digest("plugins"),
    };
    let about = AskAbout {
        persona: "default".to_owned(),
        server: "github".to_owned(),
        tool: "create".to_owned(),
        action: "call".to_owned(),
        session: "s-1".to_owned(),
        ..AskAbout::default()
    };
    let id = bench.store().record_ask(&binding, &about, Duration::from_mins(5), 8).unwrap().ask.id;
    let answer = Answer { grant: true, by: "operator".to_owned(), surface: "cli" };
    let grant = run(bench.store().grant_wider(&id, &answer, scope, ttl)).unwrap();
    assert_eq!(bench.store().ask(&id).unwrap().unwrap().state, AskState::Granted, "the open call passes too");
    bench.store().spend(&binding).unwrap().unwrap();
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
    assert!(run(bench.store().revoke(&grant.id, "operator")).unwrap());
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
    let id = bench.store().record_ask(&binding, &about, Duration::from_mins(5), 8).unwrap().ask.id;
    let answer = Answer { grant: true, by: "operator".to_owned(), surface: "cli" };
    let refused = run(bench.store().grant_wider(&id, &answer, GrantScope::Persona, None));
    assert!(matches!(refused, Err(StoreError::GrantTooWide { .. })));
    assert_eq!(bench.store().ask(&id).unwrap().unwrap().state, AskState::Pending);
    run(bench.store().grant_wider(&id, &answer, GrantScope::Session, None)).unwrap();
}
