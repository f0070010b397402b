use std::fs;

use crate::testing::Bench;
use crate::{ErrorClass, STATE_DB};

#[test]
fn a_token_opens_its_persona_until_it_is_revoked() {
    let bench = Bench::new();
    let one = bench.store().issue_token("default", "main").unwrap();
    let other = bench.store().issue_token("guest", "main").unwrap();
    assert_ne!(one.secret.expose(), other.secret.expose());
    let owner = bench.store().persona_of(one.secret.expose()).unwrap().unwrap();
    assert_eq!((owner.id.as_str(), owner.persona.as_str()), (one.id.as_str(), "default"));
    assert!(bench.store().revoke_token(&one.id).unwrap());
    assert!(!bench.store().revoke_token(&one.id).unwrap(), "once");
    assert_eq!(bench.store().persona_of(one.secret.expose()).unwrap(), None);
    assert_eq!(bench.store().persona_of(other.secret.expose()).unwrap().unwrap().persona, "guest");
    let list = bench.store().tokens().unwrap();
    assert_eq!(list.len(), 2);
    assert_eq!(list.iter().filter(|token| token.revoked_at_ms.is_some()).count(), 1);
}

/// Design section 9a: a token works at once in a running gateway, and ends at once.
#[test]
fn a_token_of_another_process_works_and_ends_at_once() {
    let bench = Bench::new();
    let cli = bench.another("cli");
    let token = cli.issue_token("default", "main").unwrap();
    assert!(bench.store().persona_of(token.secret.expose()).unwrap().is_some());
    cli.revoke_token(&token.id).unwrap();
    assert!(bench.store().persona_of(token.secret.expose()).unwrap().is_none());
}

#[test]
fn what_is_no_token_opens_nothing() {
    let bench = Bench::new();
    let token = bench.store().issue_token("default", "main").unwrap();
    let secret = token.secret.expose();
    for wrong in
        ["", "tgt_", &secret[1..], &secret[..secret.len() - 1], &format!("{secret} "), &"x".repeat(10_000)]
    {
        assert_eq!(bench.store().persona_of(wrong).unwrap(), None);
    }
}

/// SE-12: neither the files nor what is printed hold the secret.
#[test]
fn the_secret_is_nowhere_in_the_files() {
    let mut bench = Bench::new();
    let token = bench.store().issue_token("default", "main").unwrap();
    assert!(!format!("{token:?}").contains(token.secret.expose()));
    bench.close();
    let needle = token.secret.expose().as_bytes();
    let bytes = fs::read(bench.path().join(STATE_DB)).unwrap();
    assert!(!bytes.windows(needle.len()).any(|window| window == needle));
}

#[test]
fn a_state_of_a_newer_format_is_refused() {
    let mut bench = Bench::new();
    bench.close();
    bench.behind_its_back(STATE_DB).execute_batch("PRAGMA user_version = 99").unwrap();
    let error = crate::Store::open(bench.path(), "gateway").unwrap_err();
    assert_eq!(error.class(), ErrorClass::Usage);
    assert!(error.to_string().contains("format 99"), "{error}");
}

#[test]
fn the_era_of_a_server_is_remembered() {
    let mut bench = Bench::new();
    let identity = crate::testing::digest("server");
    assert_eq!(bench.store().era(&identity).unwrap(), None);
    bench.store().remember_era(&identity, "legacy").unwrap();
    bench.store().remember_era(&identity, "modern").unwrap();
    bench.open();
    assert_eq!(bench.store().era(&identity).unwrap().as_deref(), Some("modern"));
}
