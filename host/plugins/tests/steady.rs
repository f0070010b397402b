//! Memory and time of many policy calls. A program of its own, so that nothing else moves the numbers.

#![cfg(test)]

#[path = "../src/tests/guests.rs"]
#[allow(dead_code)]
mod guests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use toolgate_plugins::{Decision, Facts, Hook, Policy};

use guests::{call_policy, facts, policy, says};

/// Resident memory of this process in KiB.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Facts that no call before had, so that the policy is asked in a fresh store and does not answer from
/// what it said before.
fn new_facts() -> Arc<Facts> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Arc::new(Facts { name: format!("tool_{number}"), ..Facts::clone(&facts()) })
}

fn calls_from_four_threads(policy: &Policy, count: usize) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..count / 4 {
                    let said = policy.check(Hook::Call, &new_facts());
                    assert_eq!(said, Decision::Allow { reason: "yes".into() });
                }
            });
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_calls_from_four_threads_take_no_more_memory_than_one_thousand_wa_06() {
    let policy = policy(&call_policy(&says(1)));
    calls_from_four_threads(&policy, 1_000);
    let before = resident();
    calls_from_four_threads(&policy, 9_000);
    let after = resident();
    println!("resident after 1,000 calls {before} KiB, after 10,000 calls {after} KiB");
    assert!(after * 5 <= before * 6, "{before} KiB became {after} KiB");
}

/// An adapter that changes nothing; its result hook gets the handles back.
fn adapter() -> toolgate_plugins::Adapter {
    let unchanged = "(call $drop (local.get 0)) (call $said (i32.const 0) (i32.const 0) (i32.const 0))";
    let guest = guests::component(&guests::Source {
        imports: &[],
        exports: &["adapter"],
        core_imports: "",
        body: &format!(
            r#"(func (export "toolgate:plugin/adapter@0.1.0#configure") (result i32) (i32.const 128))
            (func (export "toolgate:plugin/adapter@0.1.0#tools") (param i32 i32) (result i32)
              (i64.store (i32.const 0) (i64.const 0)) (i32.const 0))
            (func (export "toolgate:plugin/adapter@0.1.0#arguments") (param i32) (result i32) {unchanged})
            (func (export "toolgate:plugin/adapter@0.1.0#content") (param i32) (result i32) {unchanged})"#
        ),
    });
    match guests::load(toolgate_signing::Kind::Adapter, &guest, &toolgate_plugins::Admission::default())
        .unwrap()
    {
        toolgate_plugins::Plugin::Adapter(adapter) => adapter,
        other => panic!("{other:?}"),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_calls_through_an_adapter_and_three_policies_from_four_tasks_take_no_more_memory_wa_06() {
    let adapter = Arc::new(adapter());
    let policies = Arc::new([says(0), says(2), says(1)].map(|said| policy(&call_policy(&said))));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let calls = |count: usize| {
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let (adapter, policies) = (Arc::clone(&adapter), Arc::clone(&policies));
                runtime.spawn(async move {
                    for _ in 0..count / 4 {
                        let facts = new_facts();
                        adapter.arguments(&facts).unwrap();
                        for policy in policies.iter() {
                            assert!(!matches!(policy.check(Hook::Call, &facts), Decision::Deny { .. }));
                        }
                        adapter.content(&facts).unwrap();
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
    };
    calls(1_000);
    let before = resident();
    calls(9_000);
    let after = resident();
    println!("resident after 1,000 calls {before} KiB, after 10,000 calls {after} KiB");
    assert!(after * 5 <= before * 6, "{before} KiB became {after} KiB");
}

/// Prints and never fails: a timing is no verdict (design.md 7).
#[test]
fn the_price_of_a_fresh_store_is_printed() {
    const CALLS: u32 = 20_000;
    let started = Instant::now();
    let host = toolgate_plugins::PluginHost::new(toolgate_plugins::HostOptions::default());
    println!(
        "{:.1} ms to make the engine, where this is the first test",
        started.elapsed().as_secs_f64() * 1e3
    );
    drop(host);
    let policy = policy(&call_policy(&says(1)));
    policy.check(Hook::Call, &new_facts());
    let started = Instant::now();
    for _ in 0..CALLS {
        policy.check(Hook::Call, &new_facts());
    }
    println!(
        "{:.1} µs a policy call in a fresh store",
        started.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
    );
}
