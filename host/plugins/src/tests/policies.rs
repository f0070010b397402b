use toolgate_plugins::{Admission, Decision, DecisionSet, Facts, FaultKind, Hook, Redaction, Whose};

use super::guests::{Source, TEXTS, call_policy, component, facts, policy, policy_with, says};
use std::sync::Arc;

fn fault_kind(decision: &Decision) -> Option<FaultKind> {
    match decision {
        Decision::Deny { fault: Some(fault), .. } => Some(fault.kind),
        _ => None,
    }
}

/// A policy with the list hook, whose body leaves on the stack where the list of decisions is.
fn list_policy(check: &str) -> Vec<u8> {
    component(&Source {
        imports: &[],
        exports: &["list-hook"],
        core_imports: "",
        body: &format!(
            r#"{TEXTS} (func (export "toolgate:plugin/list-hook@0.1.0#check") (param $at i32) (param $count i32) (result i32) {check})"#
        ),
    })
}

/// Answers `count` decisions that are all zero: abstain.
fn abstains(count: &str) -> String {
    format!(
        "(i32.store (i32.const 0) (call $alloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.mul (i32.const 16) {count})))
         (i32.store (i32.const 4) {count}) (i32.const 0)"
    )
}

#[test]
fn a_policy_says_each_of_its_decisions() {
    let say = |case| policy(&call_policy(&says(case))).check(Hook::Call, &facts());
    assert_eq!(say(0), Decision::Abstain);
    assert_eq!(say(1), Decision::Allow { reason: "yes".into() });
    assert_eq!(say(2), Decision::Ask { reason: "yes".into() });
    assert_eq!(say(3), Decision::Deny { reason: "yes".into(), fault: None });
}

#[test]
fn a_hook_that_a_policy_does_not_have_it_abstains_from() {
    let policy = policy(&call_policy(&says(3)));
    assert!(policy.has(Hook::Call) && !policy.has(Hook::Read) && !policy.has(Hook::List));
    assert_eq!(policy.check(Hook::Read, &facts()), Decision::Abstain);
    assert_eq!(policy.check_list(&[facts(), facts()]), vec![Decision::Abstain; 2]);
}

#[test]
fn an_allow_that_was_not_granted_counts_as_abstain() {
    let policy = policy_with(&call_policy(&says(1)), &Admission::default());
    assert!(!policy.authority().allow);
    assert_eq!(policy.check(Hook::Call, &facts()), Decision::Abstain);
}

#[test]
fn an_ask_that_was_not_granted_denies_and_says_that_the_operator_did() {
    let admission = Admission { decisions: DecisionSet::parse(["deny"]).unwrap(), ..Admission::default() };
    let said = policy_with(&call_policy(&says(2)), &admission).check(Hook::Call, &facts());
    let Decision::Deny { fault: Some(fault), .. } = said else { panic!("{said:?}") };
    assert_eq!((fault.kind, fault.whose), (FaultKind::Unauthorised, Whose::OperatorDenied));
}

#[test]
fn a_redaction_outside_list_and_result_denies() {
    // Case 4 with an empty list of edits.
    let check = "(call $drop (local.get 0)) (i64.store (i32.const 16) (i64.const 4)) (i64.store (i32.const 24) (i64.const 0)) (i32.const 16)";
    let said = policy(&call_policy(check)).check(Hook::Call, &facts());
    assert_eq!(fault_kind(&said), Some(FaultKind::Unauthorised));
}

#[test]
fn hidden_characters_leave_a_reason_and_it_is_cut() {
    let text = r#"(data (i32.const 2048) "no\1b[31m\e2\80\ae\00 way")"#;
    let check = "(call $drop (local.get 0)) (call $said (i32.const 3) (i32.const 2048) (i32.const 15))";
    let guest = component(&Source {
        imports: &[],
        exports: &["call-hook"],
        core_imports: "",
        body: &format!(
            r#"{text} (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32) {check})"#
        ),
    });
    let said = policy(&guest).check(Hook::Call, &facts());
    assert_eq!(said, Decision::Deny { reason: "no way".into(), fault: None });
    let long = call_policy(
        "(call $drop (local.get 0)) (memory.fill (i32.const 4096) (i32.const 65) (i32.const 50000)) (call $said (i32.const 3) (i32.const 4096) (i32.const 50000))",
    );
    let Decision::Deny { reason, fault: None } = policy(&long).check(Hook::Call, &facts()) else { panic!() };
    assert_eq!(reason.len(), 1024);
}

#[test]
fn a_list_is_asked_in_batches_and_answered_in_order() {
    let policy = policy(&list_policy(&abstains("(local.get $count)")));
    let many: Vec<_> = (0..700).map(|_| facts()).collect();
    assert_eq!(policy.check_list(&many), vec![Decision::Abstain; 700]);
    assert_eq!(policy.check(Hook::List, &facts()), Decision::Abstain);
}

#[test]
fn a_wrong_number_of_list_decisions_denies_them_all() {
    for count in ["(i32.const 0)", "(i32.const 1)", "(i32.add (local.get $count) (i32.const 1))"] {
        let decisions = policy(&list_policy(&abstains(count))).check_list(&[facts(), facts()]);
        assert_eq!(decisions.len(), 2);
        assert!(
            decisions.iter().all(|decision| fault_kind(decision) == Some(FaultKind::WrongCount)),
            "{decisions:?}"
        );
    }
}

#[test]
fn a_list_may_be_redacted_by_edits_and_by_the_hidden_text_filter() {
    // Two decisions: the filter (4, 1), then edits (4, 0) with one edit: pointer "/a", no value.
    let body = r#"(data (i32.const 2048) "/a")
        (i32.store8 (i32.const 512) (i32.const 4)) (i32.store8 (i32.const 516) (i32.const 1))
        (i32.store8 (i32.const 528) (i32.const 4)) (i32.store8 (i32.const 532) (i32.const 0))
        (i32.store (i32.const 536) (i32.const 600)) (i32.store (i32.const 540) (i32.const 1))
        (i32.store (i32.const 600) (i32.const 2048)) (i32.store (i32.const 604) (i32.const 2)) (i32.store8 (i32.const 608) (i32.const 0))
        (i32.store (i32.const 0) (i32.const 512)) (i32.store (i32.const 4) (i32.const 2)) (i32.const 0)"#;
    let (data, check) = body.split_at(body.find('\n').unwrap());
    let guest = component(&Source {
        imports: &[],
        exports: &["list-hook"],
        core_imports: "",
        body: &format!(
            r#"{data} (func (export "toolgate:plugin/list-hook@0.1.0#check") (param i32 i32) (result i32) {check})"#
        ),
    });
    let decisions = policy(&guest).check_list(&[facts(), facts()]);
    assert_eq!(decisions.first(), Some(&Decision::Redact(Redaction::HiddenText)));
    let Some(Decision::Redact(Redaction::Edits(edits))) = decisions.get(1) else { panic!("{decisions:?}") };
    assert_eq!(edits.first().map(|edit| (edit.pointer.as_str(), edit.value.as_deref())), Some(("/a", None)));
}

#[test]
fn a_trap_is_a_denial_and_the_next_call_starts_afresh() {
    // Traps where the document's title is asked for; says yes otherwise. The request decides, so
    // the same policy does both, in turns.
    let guest = component(&Source {
        imports: &[],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/requests@0.1.0" "[method]request.auto-approved" (func $approved (param i32) (result i32)))"#,
        body: &format!(
            r#"{TEXTS} (global $calls (mut i32) (i32.const 0))
            (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
              (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
              (if (i32.ne (global.get $calls) (i32.const 1)) (then unreachable))
              (if (i32.eqz (call $approved (local.get 0))) (then unreachable))
              {})"#,
            says(1)
        ),
    });
    let policy = policy(&guest);
    let mut approved = (*facts()).clone();
    approved.auto_approved = true;
    let approved = Arc::new(approved);
    for _ in 0..3 {
        assert_eq!(policy.check(Hook::Call, &approved), Decision::Allow { reason: "yes".into() });
        let said = policy.check(Hook::Call, &facts());
        let Decision::Deny { fault: Some(fault), .. } = said else { panic!("{said:?}") };
        assert_eq!((fault.kind, fault.whose), (FaultKind::Trap, Whose::PluginMisbehaved));
        assert_eq!(fault.plugin, "test/guest");
    }
}

#[test]
fn a_policy_that_keeps_failing_is_put_aside_and_denies_cheaply() {
    let policy = policy(&call_policy("unreachable"));
    for _ in 0..toolgate_plugins::MAX_STRIKES {
        assert!(!policy.is_put_aside());
        assert_eq!(fault_kind(&policy.check(Hook::Call, &facts())), Some(FaultKind::Trap));
    }
    assert!(policy.is_put_aside());
    assert_eq!(fault_kind(&policy.check(Hook::Call, &facts())), Some(FaultKind::PutAside));
    assert_eq!(policy.check(Hook::Read, &facts()), Decision::Abstain);
}

#[test]
fn a_borrowed_request_that_is_not_given_back_is_a_fault() {
    let check = "(call $said (i32.const 1) (i32.const 1024) (i32.const 3))";
    assert!(fault_kind(&policy(&call_policy(check)).check(Hook::Call, &facts())).is_some());
}

#[test]
fn a_made_up_handle_or_case_is_a_fault() {
    assert!(
        fault_kind(
            &policy(&call_policy("(call $drop (i32.const 99)) (i32.const 0)")).check(Hook::Call, &facts())
        )
        .is_some()
    );
    assert!(fault_kind(&policy(&call_policy(&says(77))).check(Hook::Call, &facts())).is_some());
}

#[test]
fn the_digest_of_a_set_follows_order_settings_and_authority() {
    let load = |settings: &str, decisions| {
        policy_with(
            &call_policy(&says(0)),
            &Admission { decisions, settings: settings.into(), ..Admission::default() },
        )
    };
    let digest = |policies| toolgate_plugins::PluginSet::new(policies, vec![]).set_digest();
    let base = digest(vec![load("{}", DecisionSet::ALL)]);
    assert_eq!(base, digest(vec![load("{}", DecisionSet::ALL)]));
    assert_ne!(base, digest(vec![load(r#"{"a":1}"#, DecisionSet::ALL)]));
    assert_ne!(base, digest(vec![load("{}", DecisionSet::default())]));
    assert_ne!(base, digest(vec![]));
    assert_ne!(
        base,
        toolgate_plugins::PluginSet::new(vec![], vec![load("{}", DecisionSet::ALL)]).set_digest()
    );
}

#[test]
fn the_clock_is_noticed() {
    let guest = component(&Source {
        imports: &["clock"],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/clock@0.1.0" "now-ms" (func $now (result i64)))"#,
        body: &format!(
            r#"{TEXTS} (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
              (if (i64.lt_u (call $now) (i64.const 1700000000000)) (then unreachable)) {})"#,
            says(1)
        ),
    });
    let policy = policy(&guest);
    assert!(policy.uses_clock());
    assert_eq!(policy.check(Hook::Call, &facts()), Decision::Allow { reason: "yes".into() });
}

/// A policy that looks at something before it says yes. `$looks` has the handle of the request in local 0.
fn looking(imports: &[&str], core_imports: &str, looks: &str) -> toolgate_plugins::Policy {
    let check = says(1);
    policy(&component(&Source {
        imports,
        exports: &["call-hook"],
        core_imports,
        body: &format!(
            r#"{TEXTS} (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32) {looks} {check})"#
        ),
    }))
}

#[test]
fn a_decision_about_plain_facts_is_kept_and_one_that_saw_more_is_asked_for_each_time() {
    const TEXT: &str =
        r#"(import "toolgate:plugin/requests@0.1.0" "[method]request.WHAT" (func $look (param i32 i32)))"#;
    let look = "(call $look (local.get 0) (i32.const 64))";
    let kept = |policy: &toolgate_plugins::Policy| {
        for _ in 0..3 {
            assert_eq!(policy.check(Hook::Call, &facts()), Decision::Allow { reason: "yes".into() });
        }
        policy.remembered_decisions()
    };
    assert_eq!(kept(&looking(&[], "", "")), 1);
    assert_eq!(kept(&looking(&[], &TEXT.replace("WHAT", "persona"), look)), 1);
    for more in ["session", "definition"] {
        assert_eq!(kept(&looking(&[], &TEXT.replace("WHAT", more), look)), 0, "{more}");
    }
    let document = TEXT.replace("WHAT", "document");
    assert_eq!(kept(&looking(&[], &document, look)), 1, "that there is a document is a plain fact");
    let size = r#"(import "toolgate:plugin/documents@0.1.0" "[method]document.size" (func $size (param i32) (result i64)))"#;
    let into = format!("{look} (drop (call $size (i32.load (i32.const 68))))");
    assert_eq!(
        kept(&looking(&["documents"], &format!("{document} {size}"), &into)),
        0,
        "what is in it is not"
    );
    let hidden = r#"(import "toolgate:plugin/matching@0.1.0" "hidden-text" (func $hidden (param i32 i32)))"#;
    let through = format!("{look} (call $hidden (i32.load (i32.const 68)) (i32.const 80))");
    assert_eq!(
        kept(&looking(&["matching"], &format!("{document} {hidden}"), &through)),
        1,
        "it hides nothing"
    );
    let clock = r#"(import "toolgate:plugin/clock@0.1.0" "now-ms" (func $now (result i64)))"#;
    assert_eq!(kept(&looking(&["clock"], clock, "(drop (call $now))")), 0, "the clock");
    let log = r#"(import "toolgate:plugin/log@0.1.0" "write" (func $write (param i32 i32 i32)))"#;
    let line = "(call $write (i32.const 1) (i32.const 1024) (i32.const 3))";
    assert_eq!(kept(&looking(&["log"], log, line)), 0, "a line in the log is written for each call");
}

#[test]
fn what_was_said_about_one_request_is_not_said_about_another() {
    let policy = looking(&[], "", "");
    let about = |change: &dyn Fn(&mut Facts)| {
        let mut facts = Facts::clone(&facts());
        change(&mut facts);
        policy.check(Hook::Call, &Arc::new(facts));
    };
    let changes: [&dyn Fn(&mut Facts); 18] = [
        &|_| {},
        &|facts| facts.persona = "other".into(),
        &|facts| facts.lane = "automation".into(),
        &|facts| facts.server = "other".into(),
        &|facts| facts.server_identity = "other".into(),
        &|facts| facts.kind = toolgate_plugins::SurfaceKind::Prompt,
        &|facts| facts.name = "other".into(),
        &|facts| facts.label = "other".into(),
        &|facts| facts.has_capabilities = true,
        &|facts| facts.matched_allow = Some("mcp.call:*".into()),
        &|facts| facts.matched_approval = Some("mcp.call:*".into()),
        &|facts| facts.auto_approved = true,
        &|facts| facts.host_escape = true,
        &|facts| facts.digest = Some("sha256:1".into()),
        &|facts| facts.pin = toolgate_plugins::PinState::Differs,
        &|facts| facts.surface_pin = toolgate_plugins::PinState::Differs,
        &|facts| facts.read_only_hint = Some(true),
        &|facts| facts.destructive_hint = Some(false),
    ];
    for (number, change) in changes.iter().enumerate() {
        about(change);
        assert_eq!(policy.remembered_decisions(), number + 1, "change {number}");
    }
    about(&|facts| facts.session = "other".into());
    assert_eq!(policy.remembered_decisions(), changes.len(), "it was told no session");
}

#[test]
fn a_failure_is_not_remembered() {
    let policy = looking(&[], "", "(unreachable)");
    for _ in 0..2 {
        assert_eq!(fault_kind(&policy.check(Hook::Call, &facts())), Some(FaultKind::Trap));
    }
    assert_eq!(policy.remembered_decisions(), 0);
}
