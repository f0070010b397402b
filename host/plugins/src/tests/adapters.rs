use toolgate_plugins::{Adapter, Admission, Change, FaultKind, LoadErrorKind, Plugin, Whose};
use toolgate_signing::Kind;

use super::guests::{Source, component, facts, load};

/// The bodies of an adapter's functions; each may use `$calls`, which counts the calls of its
/// instance, and `$said`. In `arguments` and `content` local 0 is the request.
struct Bodies<'a> {
    configure: &'a str,
    tools: &'a str,
    arguments: &'a str,
}

const FINE: Bodies<'static> = Bodies {
    configure: "(i32.const 128)",
    tools: "(i32.store (i32.const 0) (call $alloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.mul (i32.const 12) (local.get 1))))
            (i32.store (i32.const 4) (local.get 1)) (i32.const 0)",
    arguments: "(call $drop (local.get 0)) (call $said (i32.const 0) (i32.const 0) (i32.const 0))",
};

fn guest(bodies: &Bodies<'_>) -> Vec<u8> {
    let Bodies { configure, tools, arguments } = bodies;
    component(&Source {
        imports: &[],
        exports: &["adapter"],
        core_imports: "",
        body: &format!(
            r#"(data (i32.const 1024) "{{\"a\":1}}") (data (i32.const 1100) "no\07 such root")
            (global $calls (mut i32) (i32.const 0))
            (func (export "toolgate:plugin/adapter@0.1.0#configure") (result i32) {configure})
            (func (export "toolgate:plugin/adapter@0.1.0#tools") (param i32 i32) (result i32) {tools})
            (func (export "toolgate:plugin/adapter@0.1.0#arguments") (param i32) (result i32)
              (global.set $calls (i32.add (global.get $calls) (i32.const 1))) {arguments})
            (func (export "toolgate:plugin/adapter@0.1.0#content") (param i32) (result i32)
              (call $drop (local.get 0)) (call $said (i32.const 3) (i32.const 1100) (i32.const 13)))"#
        ),
    })
}

fn adapter(bodies: &Bodies<'_>) -> Adapter {
    match load(Kind::Adapter, &guest(bodies), &Admission::default()).unwrap() {
        Plugin::Adapter(adapter) => adapter,
        other => panic!("no adapter: {other:?}"),
    }
}

#[test]
fn an_adapter_leaves_replaces_and_refuses() {
    let fine = adapter(&FINE);
    assert_eq!(fine.arguments(&facts()), Ok(Change::Unchanged));
    assert_eq!(fine.content(&facts()), Ok(Change::Fail("no such root".into())));
    let many: Vec<_> = (0..300).map(|_| facts()).collect();
    assert_eq!(fine.tools(&many), Ok(vec![Change::Unchanged; 300]));
    let replaces = adapter(&Bodies {
        arguments: "(call $drop (local.get 0)) (call $said (i32.const 2) (i32.const 1024) (i32.const 7))",
        ..FINE
    });
    assert_eq!(replaces.arguments(&facts()), Ok(Change::Replace("{\"a\":1}".into())));
}

#[test]
fn an_instance_is_kept_warm_and_dropped_on_a_trap() {
    // Fails from its third call on, so that only a fresh instance can answer again.
    let adapter = adapter(&Bodies {
        arguments: "(if (i32.gt_u (global.get $calls) (i32.const 2)) (then unreachable))
                    (call $drop (local.get 0)) (call $said (i32.const 0) (i32.const 0) (i32.const 0))",
        ..FINE
    });
    for _ in 0..3 {
        assert_eq!(adapter.arguments(&facts()), Ok(Change::Unchanged));
        assert_eq!(adapter.arguments(&facts()), Ok(Change::Unchanged));
        let fault = adapter.arguments(&facts()).unwrap_err().0;
        assert_eq!((fault.kind, fault.whose), (FaultKind::Trap, Whose::PluginMisbehaved));
    }
    assert!(!adapter.is_put_aside());
}

#[test]
fn an_adapter_that_keeps_failing_is_put_aside_until_it_is_retried() {
    let adapter = adapter(&Bodies { arguments: "unreachable", ..FINE });
    for _ in 0..toolgate_plugins::MAX_STRIKES {
        assert_eq!(adapter.arguments(&facts()).unwrap_err().0.kind, FaultKind::Trap);
    }
    assert!(adapter.is_put_aside());
    assert_eq!(adapter.content(&facts()).unwrap_err().0.kind, FaultKind::PutAside);
    adapter.retry();
    assert!(adapter.content(&facts()).is_ok());
}

#[test]
fn a_replacement_that_is_no_json_fails_the_call() {
    let adapter = adapter(&Bodies {
        arguments: "(call $drop (local.get 0)) (call $said (i32.const 2) (i32.const 1024) (i32.const 6))",
        ..FINE
    });
    assert_eq!(adapter.arguments(&facts()).unwrap_err().0.kind, FaultKind::BadAnswer);
}

#[test]
fn a_wrong_number_of_changes_fails_the_list() {
    let adapter = adapter(&Bodies { tools: "(i64.store (i32.const 0) (i64.const 0)) (i32.const 0)", ..FINE });
    assert_eq!(adapter.tools(&[facts()]).unwrap_err().0.kind, FaultKind::WrongCount);
    assert_eq!(adapter.tools(&[]), Ok(vec![]));
}

#[test]
fn settings_that_an_adapter_refuses_are_found_at_load() {
    // result: err(invalid(text)).
    let refuses = Bodies {
        configure: "(i32.store8 (i32.const 128) (i32.const 1)) (i32.store8 (i32.const 132) (i32.const 2))
                    (i32.store (i32.const 136) (i32.const 1100)) (i32.store (i32.const 140) (i32.const 13)) (i32.const 128)",
        ..FINE
    };
    let error = load(Kind::Adapter, &guest(&refuses), &Admission::default()).unwrap_err();
    assert!(matches!(&error.kind, LoadErrorKind::NotConfigured(why) if why == "no such root"), "{error}");
    assert_eq!(error.kind.whose(), Whose::OperatorDenied);
}

#[test]
fn an_endless_adapter_ends_at_its_deadline_wa_03() {
    let adapter = adapter(&Bodies { arguments: "(loop $ever (br $ever)) (i32.const 0)", ..FINE });
    let started = std::time::Instant::now();
    assert_eq!(adapter.arguments(&facts()).unwrap_err().0.kind, FaultKind::Deadline);
    let took = started.elapsed();
    assert!(
        took >= std::time::Duration::from_millis(250) && took < std::time::Duration::from_millis(1100),
        "{took:?}"
    );
}

#[test]
fn a_warm_instance_that_keeps_what_it_gets_does_not_fill_its_table() {
    // `tools` never gives its requests back; 600 calls of two would fill a table of 1,024.
    let adapter = adapter(&FINE);
    for _ in 0..500 {
        assert!(adapter.tools(&[facts()]).is_ok());
    }
    assert!(!adapter.is_put_aside());
}

#[test]
fn an_adapter_serves_many_threads() {
    let adapter = adapter(&FINE);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(adapter.arguments(&facts()), Ok(Change::Unchanged));
                }
            });
        }
    });
}
