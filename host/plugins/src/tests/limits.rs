use std::time::{Duration, Instant};

use toolgate_plugins::{Decision, Fault, FaultKind, Hook, Policy};

use super::guests::{Source, TEXTS, call_policy, component, facts, policy, says};

/// The fault of one call.
fn fault_of(policy: &Policy) -> Fault {
    match policy.check(Hook::Call, &facts()) {
        Decision::Deny { fault: Some(fault), .. } => fault,
        other => panic!("no fault: {other:?}"),
    }
}

fn fault_in(check: &str) -> Fault {
    fault_of(&policy(&call_policy(check)))
}

#[test]
fn an_endless_loop_ends_at_its_deadline_wa_03() {
    let looping = policy(&call_policy("(loop $ever (br $ever)) (i32.const 0)"));
    for _ in 0..3 {
        let started = Instant::now();
        let fault = fault_of(&looping);
        assert_eq!(fault.kind, FaultKind::Deadline, "{fault}");
        // 5 ms and one slice by the clock of an idle machine; the wall on a busy one.
        assert!(started.elapsed() < Duration::from_millis(400), "{:?}", started.elapsed());
    }
    let other = policy(&call_policy(&says(1)));
    assert_eq!(other.check(Hook::Call, &facts()), Decision::Allow { reason: "yes".into() });
}

#[test]
fn an_endless_loop_of_host_calls_ends_too_wa_03() {
    let guest = component(&Source {
        imports: &[],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/requests@0.1.0" "[method]request.kind" (func $kind (param i32) (result i32)))"#,
        body: r#"(func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
                   (loop $ever (drop (call $kind (local.get 0))) (br $ever)) (i32.const 0))"#,
    });
    let started = Instant::now();
    assert_eq!(fault_of(&policy(&guest)).kind, FaultKind::Deadline);
    assert!(started.elapsed() < Duration::from_millis(400), "{:?}", started.elapsed());
}

#[test]
fn memory_does_not_grow_beyond_its_limit_wa_07() {
    // Grows by 1 MiB until it fails, then traps, as an allocator does.
    let fault = fault_in(
        "(loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable",
    );
    assert_eq!(fault.kind, FaultKind::Limit, "{fault}");
    assert!(fault.detail.contains("memory"), "{fault}");
    // A guest that takes the refusal lives on.
    let modest = format!("(drop (memory.grow (i32.const 16384))) {}", says(1));
    assert_eq!(
        policy(&call_policy(&modest)).check(Hook::Call, &facts()),
        Decision::Allow { reason: "yes".into() }
    );
}

#[test]
fn deep_recursion_is_a_limit_wa_07() {
    let guest = component(&Source {
        imports: &[],
        exports: &["call-hook"],
        core_imports: "",
        body: r#"(func $down (param i32) (result i32) (i32.add (call $down (local.get 0)) (i32.const 1)))
                 (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32) (call $down (i32.const 0)))"#,
    });
    let fault = fault_of(&policy(&guest));
    assert_eq!(fault.kind, FaultKind::Limit, "{fault}");
    assert!(fault.detail.contains("stack"), "{fault}");
}

#[test]
fn tables_do_not_grow_beyond_their_limit_wa_07() {
    let guest = component(&Source {
        imports: &[],
        exports: &["call-hook"],
        core_imports: "",
        body: r#"(table $t 1 funcref)
                 (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
                   (loop $more (br_if $more (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1)))) unreachable)"#,
    });
    let fault = fault_of(&policy(&guest));
    assert_eq!(fault.kind, FaultKind::Limit, "{fault}");
    assert!(fault.detail.contains("table"), "{fault}");
}

#[test]
fn many_tables_memories_or_instances_are_refused_at_load_wa_07() {
    let many = "(core instance (instantiate $m))";
    for (what, module, instances, reason) in [
        (
            "tables",
            "(table 1 funcref)".repeat(20),
            many.to_owned(),
            "tables count of 20 exceeds the per-instance limit of 8",
        ),
        ("tables of several instances", "(table 1 funcref)".repeat(4), many.repeat(4), "contains 16 tables"),
        ("instances", String::new(), many.repeat(50), "contains 51 core module instances"),
        ("memories", "(memory 1)".to_owned(), many.repeat(4), "contains 4 Wasm linear memories"),
        (
            "a large memory",
            "(memory 2000)".to_owned(),
            many.to_owned(),
            "minimum byte size of 131072000 which exceeds",
        ),
        (
            "a large table",
            "(table 30000 funcref)".to_owned(),
            many.to_owned(),
            "minimum element size of 30000 which exceeds",
        ),
    ] {
        let guest = super::guests::hook_beside(&module, &instances);
        let error = super::guests::load(
            toolgate_signing::Kind::Policy,
            &guest,
            &toolgate_plugins::Admission::default(),
        )
        .unwrap_err();
        assert!(error.to_string().contains(reason), "{what}: {error}");
    }
}

#[test]
fn handles_are_limited_wa_07() {
    let guest = component(&Source {
        imports: &[],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/requests@0.1.0" "[method]request.document" (func $document (param i32 i32)))"#,
        body: r#"(func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
                   (loop $ever (call $document (local.get 0) (i32.const 64)) (br $ever)) (i32.const 0))"#,
    });
    let fault = fault_of(&policy(&guest));
    assert_eq!(fault.kind, FaultKind::Limit, "{fault}");
}

#[test]
fn a_huge_string_is_not_copied_wa_07() {
    // 100 MB, which is beyond its memory; then 40 MB, which is there.
    let beyond = fault_in(
        "(call $drop (local.get 0)) (call $said (i32.const 3) (i32.const 1024) (i32.const 100000000))",
    );
    assert!(matches!(beyond.kind, FaultKind::Trap | FaultKind::BadAnswer | FaultKind::Limit), "{beyond}");
    let there = fault_in(
        "(call $drop (local.get 0)) (drop (memory.grow (i32.const 700))) (call $said (i32.const 3) (i32.const 1024) (i32.const 40000000))",
    );
    assert_eq!(there.kind, FaultKind::Limit, "{there}");
}

#[test]
fn text_that_is_no_unicode_is_a_fault() {
    let guest = component(&Source {
        imports: &[],
        exports: &["call-hook"],
        core_imports: "",
        body: &format!(
            r#"(data (i32.const 1024) "\ff\fe\fd") (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32) {})"#,
            says(3)
        ),
    });
    assert!(matches!(fault_of(&policy(&guest)).kind, FaultKind::BadAnswer | FaultKind::Trap));
}

#[test]
fn log_lines_are_dropped_beyond_their_number_and_do_not_fail_the_call() {
    let guest = component(&Source {
        imports: &["log"],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32)))"#,
        body: &format!(
            r#"{TEXTS} (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32) (local $n i32)
              (loop $again (call $log (i32.const 1) (i32.const 1024) (i32.const 3))
                (local.set $n (i32.add (local.get $n) (i32.const 1)))
                (br_if $again (i32.lt_u (local.get $n) (i32.const 200)))) {})"#,
            says(1)
        ),
    });
    assert_eq!(policy(&guest).check(Hook::Call, &facts()), Decision::Allow { reason: "yes".into() });
}
