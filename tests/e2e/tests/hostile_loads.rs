//! Components that are refused before they judge anything: each with its own reason, while a gateway that
//! runs goes on answering, and with nothing of them left behind.

use serde_json::{Value, json};
use toolgate_signing::{Kind, Release, SigningKey, sign_release};

use crate::guests::{Source, call_policy, component, hook_beside, release, says};
use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

/// A component, the release that comes with it, and words of the reason.
struct Hostile {
    name: &'static str,
    component: Vec<u8>,
    /// What was signed; another component than the one that is given where the digest lies.
    envelope: Vec<u8>,
    reason: &'static str,
}

fn signed(
    name: &'static str,
    component: Vec<u8>,
    change: impl FnOnce(&mut Release),
    reason: &'static str,
) -> Hostile {
    let mut stated = release(Kind::Policy, &component);
    change(&mut stated);
    let envelope = sign_release(&stated, &component, &SigningKey::from_seed(&[7; 32]));
    Hostile { name, component, envelope, reason }
}

fn same(_: &mut Release) {}

fn hostile() -> Vec<Hostile> {
    let instances = |count: usize| "(core instance (instantiate $m))".repeat(count);
    let clock = component(&Source {
        imports: &["clock"],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/clock@0.1.0" "now-ms" (func $now (result i64)))"#,
        body: r#"(func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
                   (drop (call $now)) (call $drop (local.get 0)) (call $said (i32.const 1) (i32.const 0) (i32.const 0)))"#,
    });
    let start = component(&Source {
        imports: &[],
        exports: &["call-hook"],
        core_imports: "",
        body: r#"(func $boom unreachable) (start $boom)
            (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32) unreachable)"#,
    });
    let exports = |stated: &mut Release| stated.exports = vec!["toolgate:plugin/read-hook@0.1.0".into()];
    let mut lying = signed("a lying digest", call_policy(&says(3)), same, "was named");
    lying.component = call_policy(&says(1));
    vec![
        lying,
        signed("an instance bomb", hook_beside("", &instances(50)), same, "51 core module instances"),
        signed(
            "a table bomb",
            hook_beside(&"(table 1 funcref)".repeat(20), &instances(1)),
            same,
            "tables count of 20 exceeds",
        ),
        signed("many memories", hook_beside("(memory 1)", &instances(4)), same, "4 Wasm linear memories"),
        signed(
            "a memory of 128 MB",
            hook_beside("(memory 2000)", &instances(1)),
            same,
            "minimum byte size of 131072000 which exceeds",
        ),
        signed(
            "a table of 30,000",
            hook_beside("(table 30000 funcref)", &instances(1)),
            same,
            "minimum element size of 30000 which exceeds",
        ),
        signed(
            "an undeclared import",
            clock,
            |stated| stated.imports.retain(|import| !import.contains("clock")),
            "toolgate:plugin/clock@0.1.0, which its signed release does not declare",
        ),
        signed(
            "an undeclared export",
            call_policy(&says(1)),
            exports,
            "which its signed release does not declare",
        ),
        signed("a trap in its start", start, same, "does not start"),
        signed("another type of a hook", hook_beside("", ""), same, "does not fit the contract"),
        signed("a core module", b"\0asm\x01\0\0\0".to_vec(), exports, "core WebAssembly module"),
        signed("native code", b"\x7fELF\x02\x01\x01 a .cwasm".to_vec(), exports, "native code"),
        signed("no WebAssembly", b"<html>".to_vec(), exports, "no WebAssembly component"),
    ]
}

#[test]
fn what_is_refused_at_load_is_refused_for_its_own_reason_while_others_are_served() {
    let sandbox = sandbox();
    let trusted = SigningKey::from_seed(&[7; 32]).public();
    sandbox.configure_fixture(
        &[],
        &format!("{ALLOW}plugins:\n  trust:\n    - {{ plugins: \"test/*\", keys: [\"{trusted}\"] }}\n"),
    );
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for (number, Hostile { name, component, envelope, reason }) in hostile().into_iter().enumerate() {
        sandbox.write("bad/component.wasm", &component);
        sandbox.write("bad/release.dsse.json", &envelope);
        let dir = sandbox.path("bad").display().to_string();
        let run = std::thread::scope(|scope| {
            let installing = scope.spawn(|| sandbox.run(&["plugin", "install", &dir, "--yes"]));
            loop {
                let last = installing.is_finished();
                let served = client.call("fix__echo", &json!({ "message": "on" }));
                assert_eq!(served["content"][0]["text"], "on", "beside {name}: {served}");
                if last {
                    break installing.join().unwrap();
                }
            }
        });
        assert_eq!(run.code, 5, "{name}: {run:?}");
        assert!(run.stderr.contains(reason), "{name}: {run:?}");
        assert!(!sandbox.data().join("plugins.d/test.guest.toml").exists(), "{name}: nothing was installed");
        if number == 0 {
            // The same lie, told to the verb that only looks.
            let run = sandbox.run(&["plugin", "verify", &dir]).exits(5);
            assert!(run.stderr.contains("was signed"), "{name}: {run:?}");
        }
    }
}

#[test]
fn a_decision_that_the_release_does_not_declare_is_a_denial_and_the_rest_is_served() {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    let guest = call_policy(&says(2));
    let mut stated = release(Kind::Policy, &guest);
    stated.decisions = vec!["deny".to_owned()];
    let key = SigningKey::from_seed(&[7; 32]);
    sandbox.write("plugin/component.wasm", &guest);
    sandbox.write("plugin/release.dsse.json", sign_release(&stated, &guest, &key));
    let (dir, trusted) = (sandbox.path("plugin").display().to_string(), key.public());
    sandbox.configure_fixture(
        &["--ledger", &ledger],
        &format!(
            "{ALLOW}plugins:\n  trust:\n    - {{ plugins: \"test/*\", keys: [\"{trusted}\"] }}\n  load:\n    - {{ plugin: {dir:?}, decisions: [ask, deny] }}\n"
        ),
    );
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let replies = client.requests(&[
        ("tools/call", json!({ "name": "fix__echo", "arguments": { "message": "hi" } })),
        ("tools/list", json!({})),
    ]);
    let said = replies[0].to_string();
    assert!(said.contains("failed (unauthorised)"), "an ask that was not declared asks nobody: {said}");
    let tools = replies[1]["result"]["tools"].as_array().map_or(0, Vec::len);
    assert!(tools > 0 && replies[1]["error"] == Value::Null, "{}", replies[1]);
    assert!(!sandbox.read("ledger").contains("tools/call"), "nothing reached the server");
}
