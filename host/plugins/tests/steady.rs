//! Memory and time of many policy calls. A program of its own, so that nothing else moves the numbers.

#![cfg(test)]

#[path = "../src/tests/guests.rs"]
#[allow(dead_code)]
mod guests;

use std::time::Instant;

use toolgate_plugins::{Decision, Hook, Policy};

use guests::{call_policy, facts, policy, says};

/// Resident memory of this process in KiB.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

fn calls_from_four_threads(policy: &Policy, count: usize) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..count / 4 {
                    assert_eq!(policy.check(Hook::Call, &facts()), Decision::Allow { reason: "yes".into() });
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
    let facts = facts();
    policy.check(Hook::Call, &facts);
    let started = Instant::now();
    for _ in 0..CALLS {
        policy.check(Hook::Call, &facts);
    }
    println!(
        "{:.1} µs a policy call in a fresh store",
        started.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
    );
}
