use crate::testing::{Bench, digest, run};
use crate::{Answer, Ask, AskAbout, AskBinding, AskState, Filter, STATE_DB, Store, StoreError};

fn binding(arguments: &str) -> AskBinding {
    AskBinding {
        caller: "default|stdio".to_owned(),
        session: "s-1".to_owned(),
        server_identity: digest("server"),
        definition: digest("definition"),
        arguments: digest(arguments),
        plugin_set: digest("plugins"),
    }
}

fn about() -> AskAbout {
    AskAbout { server: "github".to_owned(), tool: "create".to_owned(), ..AskAbout::default() }
}

fn answer(store: &Store, id: &str, grant: bool, by: &str) -> Result<Ask, StoreError> {
    run(store.answer_ask(id, &Answer { grant, by: by.to_owned(), surface: "cli" }))
}

fn ask(bench: &Bench, arguments: &str) -> crate::Recorded {
    bench.record_ask(&binding(arguments), &about()).unwrap()
}

/// APR-001, FT-02: an ask opens nothing until it is granted.
#[test]
fn a_pending_ask_opens_nothing() {
    let bench = Bench::new();
    let recorded = ask(&bench, "{}");
    assert!(recorded.is_new);
    assert_eq!(recorded.ask.state, AskState::Pending);
    let digits = recorded.ask.id.strip_prefix("ask_").unwrap();
    assert!(digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digits}");
    assert_eq!(bench.store().spend(&binding("{}")).unwrap(), None);
    assert_eq!(bench.store().ask(&recorded.ask.id).unwrap().unwrap().state, AskState::Pending);
}

#[test]
fn the_same_call_meets_its_open_ask() {
    let bench = Bench::new();
    let first = ask(&bench, "{}");
    bench.clock.advance(1_000);
    let again = ask(&bench, "{}");
    assert!(!again.is_new);
    assert_eq!(again.ask, first.ask);
    assert_ne!(ask(&bench, "{\"a\":1}").ask.id, first.ask.id);
}

#[test]
fn a_grant_is_spent_once() {
    let bench = Bench::new();
    let id = ask(&bench, "{}").ask.id;
    answer(bench.store(), &id, true, "operator").unwrap();
    let spent = bench.store().spend(&binding("{}")).unwrap().unwrap();
    assert_eq!((spent.id.as_str(), spent.state), (id.as_str(), AskState::Spent));
    assert_eq!(bench.store().spend(&binding("{}")).unwrap(), None);
    let kept = bench.store().ask(&id).unwrap().unwrap();
    assert_eq!((kept.state, kept.answered_by.as_deref()), (AskState::Spent, Some("operator")));
    assert!(ask(&bench, "{}").is_new, "the next call asks anew");
}

#[test]
fn of_two_processes_one_spends_the_grant() {
    let bench = Bench::new();
    let other = bench.another("cli");
    for round in 0..20 {
        let call = binding(&round.to_string());
        let id = bench.record_ask(&call, &about()).unwrap().ask.id;
        answer(&other, &id, true, "operator").unwrap();
        let spent = std::thread::scope(|scope| {
            let spenders: Vec<_> =
                [bench.store(), &other].map(|store| scope.spawn(|| store.spend(&call).unwrap())).into();
            spenders.into_iter().filter_map(|spender| spender.join().unwrap()).count()
        });
        assert_eq!(spent, 1, "round {round}");
    }
}

/// SE-14 for grants: any difference in the binding is another call.
#[test]
fn a_grant_opens_no_other_call() {
    let bench = Bench::new();
    let id = ask(&bench, "{}").ask.id;
    answer(bench.store(), &id, true, "operator").unwrap();
    let granted = binding("{}");
    let others = [
        AskBinding { caller: "default|token:tok_1".to_owned(), ..granted.clone() },
        AskBinding { server_identity: digest("other"), ..granted.clone() },
        AskBinding { definition: digest("other"), ..granted.clone() },
        AskBinding { arguments: digest("other"), ..granted.clone() },
        AskBinding { plugin_set: digest("other"), ..granted.clone() },
    ];
    for other in others {
        assert_eq!(bench.store().spend(&other).unwrap(), None, "{other:?}");
    }
    assert!(bench.store().spend(&granted).unwrap().is_some());
}

#[test]
fn a_denied_ask_opens_nothing_and_is_answered_once() {
    let bench = Bench::new();
    let id = ask(&bench, "{}").ask.id;
    assert_eq!(answer(bench.store(), &id, false, "operator").unwrap().state, AskState::Denied);
    assert_eq!(bench.store().spend(&binding("{}")).unwrap(), None);
    let error = answer(bench.store(), &id, true, "operator").unwrap_err();
    assert!(matches!(&error, StoreError::AskClosed { state, .. } if state == "denied"), "{error}");
    assert!(matches!(answer(bench.store(), "ask_0", true, "x"), Err(StoreError::AskClosed { .. })));
}

/// APR-006, APR-007, AUD-019: an ask and a grant end by the clock, and the end is told once.
#[test]
fn an_expired_grant_opens_nothing_and_is_reported_once() {
    let bench = Bench::new();
    let granted = ask(&bench, "{}").ask.id;
    let pending = ask(&bench, "[]").ask.id;
    answer(bench.store(), &granted, true, "operator").unwrap();
    bench.clock.advance(299_999);
    assert!(bench.store().report_expired_asks().unwrap().is_empty());
    bench.clock.advance(1);
    assert_eq!(bench.store().spend(&binding("{}")).unwrap(), None);
    assert_eq!(bench.store().ask(&pending).unwrap().unwrap().state, AskState::Expired);
    assert!(answer(bench.store(), &pending, true, "late").is_err());
    let mut expired: Vec<String> =
        bench.store().report_expired_asks().unwrap().into_iter().map(|ask| ask.id).collect();
    expired.sort();
    let mut expected = vec![granted, pending];
    expected.sort();
    assert_eq!(expired, expected);
    assert!(bench.store().report_expired_asks().unwrap().is_empty());
    assert!(ask(&bench, "{}").is_new);
    run(bench.store().flush());
    let filter = Filter { event_prefix: Some("approval.timeout".to_owned()), ..Filter::default() };
    let rows = bench.store().reader().unwrap().tail(10, &filter).unwrap();
    assert_eq!(rows.len(), 2, "each expiry is in the log once");
    assert_eq!((rows[0].action.as_str(), rows[0].server()), ("approval.timeout", Some("github")));
}

#[test]
fn a_caller_has_at_most_eight_pending_asks() {
    let bench = Bench::new();
    for number in 0..8 {
        ask(&bench, &number.to_string());
    }
    let ninth = bench.record_ask(&binding("9"), &about());
    let error = ninth.unwrap_err();
    assert!(matches!(error, StoreError::TooManyAsks { pending: 8, limit: 8, of: "client" }), "{error}");
    assert!(error.to_string().contains("limit 8"), "{error}");
    assert!(!ask(&bench, "3").is_new, "an open one is met all the same");
    let stranger = AskBinding { caller: "guest|stdio".to_owned(), ..binding("9") };
    bench.record_ask(&stranger, &about()).unwrap();
    // Another client of the same credential has its own, and all of them together an end.
    for number in 8..32 {
        let session = format!("s-{}", number / 8 + 1);
        let other = AskBinding { session, ..binding(&number.to_string()) };
        bench.record_ask(&other, &about()).unwrap();
    }
    let more = AskBinding { session: "s-9".to_owned(), ..binding("32") };
    let error = bench.record_ask(&more, &about()).unwrap_err();
    assert!(matches!(error, StoreError::TooManyAsks { pending: 32, limit: 32, of: "credential" }), "{error}");
    bench.clock.advance(300_000);
    assert!(ask(&bench, "9").is_new, "expired ones take no place");
}

/// Design 3.6: a yes in a client is for the session that was asked, one of the operator's for the credential.
#[test]
fn an_answer_in_a_client_opens_the_call_of_no_other_session() {
    let bench = Bench::new();
    let other = AskBinding { session: "s-2".to_owned(), ..binding("{}") };
    let own = ask(&bench, "{}").ask.id;
    let theirs = bench.record_ask(&other, &about()).unwrap();
    assert!(theirs.is_new, "each session is asked");
    let by_client = Answer { grant: true, by: "client of stdio (s-1)".to_owned(), surface: "client" };
    run(bench.store().answer_ask(&own, &by_client)).unwrap();
    assert_eq!(bench.store().spend(&other).unwrap(), None);
    assert_eq!(bench.store().spend(&binding("{}")).unwrap().map(|ask| ask.id), Some(own));
    // The operator's: the client that was started again spends it, its own ask first.
    let first = ask(&bench, "{}").ask.id;
    answer(bench.store(), &first, true, "operator").unwrap();
    answer(bench.store(), &theirs.ask.id, true, "operator").unwrap();
    assert_eq!(bench.store().spend(&other).unwrap().map(|ask| ask.id), Some(theirs.ask.id));
    let third = AskBinding { session: "s-3".to_owned(), ..binding("{}") };
    assert_eq!(bench.store().spend(&third).unwrap().map(|ask| ask.id), Some(first));
    assert_eq!(bench.store().spend(&third).unwrap(), None);
}

#[test]
fn all_of_a_long_ask_is_kept_while_it_is_open_and_no_longer() {
    let bench = Bench::new();
    let long = AskAbout { arguments: "ä".repeat(100_000), beside: "{\"x\":1}".to_owned(), ..about() };
    let record = |arguments: &str, about: &AskAbout| bench.record_ask(&binding(arguments), about);
    let ask = record("1", &long).unwrap().ask;
    assert!(ask.about.is_cut() && ask.about.arguments_bytes == 200_000);
    let document = bench.store().ask_document(&ask.id).unwrap().unwrap();
    assert!(document.arguments == long.arguments && document.beside == long.beside);
    answer(bench.store(), &ask.id, true, "operator").unwrap();
    assert!(bench.store().ask_document(&ask.id).unwrap().is_some(), "a grant can still be read");
    bench.store().spend(&binding("1")).unwrap().unwrap();
    assert_eq!(bench.store().ask_document(&ask.id).unwrap(), None);
    let kept = || -> i64 {
        let database = bench.behind_its_back(STATE_DB);
        database.query_row("SELECT count(*) FROM ask_documents", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(kept(), 0, "nothing of it is left behind");
    let huge = AskAbout { arguments: "a".repeat(17 * 1024 * 1024), ..about() };
    record("2", &huge).unwrap();
    let error = record("3", &huge).unwrap_err();
    assert!(matches!(error, StoreError::AsksTooLong { .. }), "{error}");
    assert_eq!((kept(), bench.store().asks(Some(AskState::Pending)).unwrap().len()), (1, 1));
    bench.clock.advance(300_000);
    bench.store().report_expired_asks().unwrap();
    assert_eq!(kept(), 0);
}

#[test]
fn an_expiry_moved_by_hand_opens_nothing() {
    let bench = Bench::new();
    let id = ask(&bench, "{}").ask.id;
    answer(bench.store(), &id, true, "operator").unwrap();
    bench
        .behind_its_back(STATE_DB)
        .execute_batch("UPDATE asks SET expires_at_ms = expires_at_ms + 1000000000")
        .unwrap();
    assert_eq!(bench.store().spend(&binding("{}")).unwrap(), None);
}

#[test]
fn a_row_that_cannot_be_read_is_an_error() {
    let bench = Bench::new();
    let id = ask(&bench, "{}").ask.id;
    answer(bench.store(), &id, true, "operator").unwrap();
    bench.behind_its_back(STATE_DB).execute_batch("UPDATE asks SET definition = 'x'").unwrap();
    assert!(matches!(bench.store().spend(&binding("{}")), Err(StoreError::Damaged { .. })));
}

#[test]
fn what_is_shown_is_bounded_and_listed_by_state() {
    let bench = Bench::new();
    let long = AskAbout { arguments: "ä".repeat(100_000), ..about() };
    let recorded = bench.record_ask(&binding("{}"), &long).unwrap();
    assert!(recorded.ask.about.arguments.len() < 4_200);
    assert_eq!(bench.store().asks(None).unwrap().len(), 1);
    assert_eq!(bench.store().asks(Some(AskState::Pending)).unwrap()[0].id, recorded.ask.id);
    assert!(bench.store().asks(Some(AskState::Granted)).unwrap().is_empty());
}

/// AUD-019: a rejection is written as completely as a grant, and before it counts.
#[test]
fn a_grant_and_a_rejection_name_the_approver_and_the_surface() {
    let bench = Bench::new();
    for (arguments, grant, event) in [("{}", true, "approval.grant"), ("[]", false, "approval.reject")] {
        let id = ask(&bench, arguments).ask.id;
        answer(bench.store(), &id, grant, "uid 7 (pin)").unwrap();
        let rows = bench.store().reader().unwrap().tail(1, &Filter::default()).unwrap();
        assert_eq!(rows[0].event(), event);
        assert_eq!(rows[0].details["approver"], "uid 7 (pin)");
        assert_eq!(rows[0].details["surface"], "cli");
        assert_eq!(rows[0].details["ask"], id.as_str());
    }
}

#[test]
fn an_unspent_grant_can_be_taken_back_and_a_spent_one_cannot() {
    let bench = Bench::new();
    let id = ask(&bench, "{}").ask.id;
    answer(bench.store(), &id, true, "operator").unwrap();
    assert!(run(bench.store().revoke(&id, "operator")).unwrap().is_some());
    assert_eq!(bench.store().spend(&binding("{}")).unwrap(), None);
    assert_eq!(run(bench.store().revoke(&id, "operator")).unwrap(), None);
}

/// AUD-001: no ask without its row, and none that could be granted where the row cannot be written.
#[test]
fn an_ask_whose_row_cannot_be_written_is_none() {
    let bench = Bench::new();
    let held = bench.behind_its_back(crate::AUDIT_DB);
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = bench.record_ask(&binding("{}"), &about()).unwrap_err();
    assert!(error.is_unrecorded(), "{error}");
    assert_eq!(bench.store().asks(None).unwrap(), []);
    held.execute_batch("ROLLBACK").unwrap();
    assert!(ask(&bench, "{}").is_new);
    let rows = bench.store().reader().unwrap().tail(9, &Filter::default()).unwrap();
    assert_eq!(rows.iter().map(crate::StoredRow::event).collect::<Vec<_>>(), ["approval.request"]);
}
