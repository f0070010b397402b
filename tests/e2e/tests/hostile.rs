//! Components that break the rules, signed by a key that the operator trusts: the signature is no
//! excuse. Each is met by the built binary with its own reason, while the rest goes on.

use serde_json::json;
use toolgate_e2e::Sandbox;
use toolgate_signing::{Kind, Release, SigningKey, sign_release};

use crate::guests::{Source, call_policy, component, release, says};
use crate::{ECHO, sandbox};

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32])
}

/// Writes a plugin that claims what `release` says, signed by the trusted key, and configures it.
fn install(
    sandbox: &Sandbox,
    component: &[u8],
    release: &Release,
    decisions: &str,
    fixture: &[&str],
) -> String {
    sandbox.write("plugin/component.wasm", component);
    sandbox.write("plugin/release.dsse.json", sign_release(release, component, &key()));
    let dir = sandbox.path("plugin").display().to_string();
    let trusted = key().public().to_string();
    sandbox.configure_fixture(
        fixture,
        &format!(
            "{ALLOW}plugins:\n  trust:\n    - {{ plugins: \"test/*\", keys: [\"{trusted}\"] }}\n  load:\n    - {{ plugin: {dir:?}, decisions: [{decisions}] }}\n"
        ),
    );
    dir
}

#[test]
fn gate_import_an_undeclared_import_is_refused() {
    let sandbox = sandbox();
    let guest = component(&Source {
        imports: &["clock"],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/clock@0.1.0" "now-ms" (func $now (result i64)))"#,
        body: r#"(func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
                   (drop (call $now)) (call $drop (local.get 0)) (call $said (i32.const 1) (i32.const 0) (i32.const 0)))"#,
    });
    let honest = release(Kind::Policy, &guest);
    let dir = install(&sandbox, &guest, &honest, "allow", &[]);
    sandbox.run(&["plugin", "verify", &dir]).exits(0);

    let mut lying = honest;
    lying.imports.retain(|import| !import.contains("clock"));
    install(&sandbox, &guest, &lying, "allow", &[]);
    let run = sandbox.run(&["plugin", "verify", &dir]).exits(5);
    assert!(run.stderr.contains("toolgate:plugin/clock@0.1.0"), "{run:?}");
    sandbox.run(&["mcp", "call", "fix.echo", "--json", "{}"]).exits(5);
}

// CARD-013
#[test]
fn gate_limit_a_policy_that_never_ends_denies_within_its_deadline() {
    let sandbox = sandbox();
    let guest = call_policy("(loop $ever (br $ever)) (i32.const 0)");
    let ledger = sandbox.path("ledger").display().to_string();
    install(&sandbox, &guest, &release(Kind::Policy, &guest), "deny", &["--ledger", &ledger]);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for _ in 0..8 {
        let result = client.call("fix__echo", &json!({ "message": "hi" }));
        assert_eq!(result.pointer("/_meta/toolgate~1error/code").unwrap(), "denied", "{result}");
    }
    assert!(!sandbox.read("ledger").contains("tools/call"), "a fault denies");
    assert!(client.tool_names().contains(&"fix__echo".to_owned()), "the gateway goes on");
}

#[test]
fn a_policy_that_traps_denies_and_says_that_the_plugin_misbehaved() {
    let sandbox = sandbox();
    let guest = call_policy("unreachable");
    install(&sandbox, &guest, &release(Kind::Policy, &guest), "deny", &[]);
    let run = sandbox.run(&["mcp", "call", "fix.echo", "--json", "{}"]).exits(3);
    assert!(run.stderr.contains("misbehaved"), "{run:?}");
}

#[test]
fn a_policy_cannot_allow_unless_the_operator_said_that_it_may() {
    let guest = call_policy(&says(1));
    for (decisions, code) in [("deny", 3), ("allow", 0)] {
        let sandbox = sandbox();
        install(&sandbox, &guest, &release(Kind::Policy, &guest), decisions, &[]);
        // Without a label of its own the call is left to this policy and to the fallback.
        let yaml = std::fs::read_to_string(sandbox.config_file()).unwrap().replace(ALLOW, "");
        std::fs::write(sandbox.config_file(), yaml).unwrap();
        sandbox.run(&ECHO).exits(code);
    }
}

// CARD-009
#[test]
fn a_plugin_signed_by_a_key_without_a_rule_is_refused() {
    let sandbox = sandbox();
    let guest = call_policy(&says(1));
    let dir = install(&sandbox, &guest, &release(Kind::Policy, &guest), "allow", &[]);
    let other = sign_release(&release(Kind::Policy, &guest), &guest, &SigningKey::from_seed(&[8; 32]));
    sandbox.write("plugin/release.dsse.json", other);
    sandbox.run(&["plugin", "verify", &dir]).exits(5);
    sandbox.configure_fixture(&[], ALLOW);
    sandbox.run(&["plugin", "verify", &dir]).exits(5);
}

/// A policy on calls with more in its module than its hook.
fn with_module(module: &str, check: &str) -> Vec<u8> {
    component(&Source {
        imports: &[],
        exports: &["call-hook"],
        core_imports: "",
        body: &format!(
            r#"{module} (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32) {check})"#
        ),
    })
}

/// Installs a guest that may deny and redact, calls, and gives the denial's text with the fixture untouched.
fn denied_by(guest: &[u8]) -> String {
    let sandbox = sandbox();
    let ledger = sandbox.path("ledger").display().to_string();
    install(&sandbox, guest, &release(Kind::Policy, guest), "deny, redact", &["--ledger", &ledger]);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let result = client.call("fix__echo", &json!({ "message": "hi" }));
    assert_eq!(result["isError"], true, "{result}");
    assert!(!sandbox.read("ledger").contains("tools/call"), "nothing reached the server");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_trap_in_the_start_of_a_guest_is_refused_and_a_trap_after_another_denies_and_the_gateway_goes_on() {
    let guest = with_module("(func $boom unreachable) (start $boom)", &says(1));
    let start = sandbox();
    let dir = install(&start, &guest, &release(Kind::Policy, &guest), "deny", &[]);
    let run = start.run(&["plugin", "verify", &dir]).exits(5);
    assert!(run.stderr.contains("does not start"), "{run:?}");
    assert_eq!(start.serve_stdio(&[]).close(), 5);
    // The second call meets a fresh instance, not the one that trapped.
    let sandbox = sandbox();
    let guest = call_policy("unreachable");
    install(&sandbox, &guest, &release(Kind::Policy, &guest), "deny", &[]);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for _ in 0..2 {
        let result = client.call("fix__echo", &json!({ "message": "hi" }));
        assert!(result.to_string().contains("failed (trap)"), "{result}");
    }
    assert!(client.tool_names().contains(&"fix__echo".to_owned()));
}

#[test]
fn control_characters_in_what_a_guest_says_reach_nobody() {
    let guest = with_module(
        r#"(data (i32.const 1024) "\1b[31mred\07 \e2\80\ae evil \e2\80\8b!")"#,
        "(call $drop (local.get 0)) (call $said (i32.const 3) (i32.const 1024) (i32.const 22))",
    );
    let said = denied_by(&guest);
    assert!(said.contains("red") && said.contains("evil"), "the reason itself is there: {said:?}");
    let hidden = |character: char| character.is_control() || "\u{202e}\u{200b}".contains(character);
    assert!(!said.trim_end().chars().any(hidden), "{said:?}");
}

#[test]
fn a_reason_of_megabytes_is_no_reason() {
    let guest = with_module(
        "",
        "(drop (memory.grow (i32.const 64))) (call $drop (local.get 0)) (call $said (i32.const 3) (i32.const 0) (i32.const 4000000))",
    );
    let said = denied_by(&guest);
    assert!(said.len() < 4096, "{} bytes", said.len());
}

/// A policy on results that says the same edit of the text so often.
fn edits(pointer: &str, value: &str, count: u32) -> Vec<u8> {
    let text = |text: &str| text.replace('"', "\\\"");
    let (end, pointer_end, value_end) = (4096 + 20 * count, pointer.len(), value.len());
    let (pointer, value) = (text(pointer), text(value));
    component(&Source {
        imports: &[],
        exports: &["result-hook"],
        core_imports: "",
        body: &format!(
            r#"(data (i32.const 1024) "{pointer}") (data (i32.const 1050) "{value}")
            (func (export "toolgate:plugin/result-hook@0.1.0#check") (param i32) (result i32) (local $at i32)
              (call $drop (local.get 0))
              (local.set $at (i32.const 4096))
              (loop $more
                (i32.store (local.get $at) (i32.const 1024))
                (i32.store offset=4 (local.get $at) (i32.const {pointer_end}))
                (i32.store offset=8 (local.get $at) (i32.const 1))
                (i32.store offset=12 (local.get $at) (i32.const 1050))
                (i32.store offset=16 (local.get $at) (i32.const {value_end}))
                (local.set $at (i32.add (local.get $at) (i32.const 20)))
                (br_if $more (i32.lt_u (local.get $at) (i32.const {end}))))
              (i32.store8 (i32.const 16) (i32.const 4))
              (i32.store8 (i32.const 20) (i32.const 0))
              (i32.store (i32.const 24) (i32.const 4096))
              (i32.store (i32.const 28) (i32.const {count}))
              (i32.const 16))"#
        ),
    })
}

#[test]
fn gate_edits_a_policy_changes_256_places_of_a_result_and_no_more() {
    for (count, passes) in [(256, true), (257, false)] {
        let sandbox = sandbox();
        let guest = edits("/content/0/text", "\"x\"", count);
        install(&sandbox, &guest, &release(Kind::Policy, &guest), "deny, redact", &[]);
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        let result = client.call("fix__echo", &json!({ "message": "hi" }));
        let text = result["content"][0]["text"].as_str().unwrap();
        if passes {
            assert_eq!(text, "x", "{result}");
        } else {
            assert!(result["isError"] == true && text.contains("failed (bad-answer)"), "{result}");
        }
    }
}

// ELI-001, ELI-013
#[test]
fn gate_kind_again_what_a_policy_left_is_looked_at_like_what_the_server_said() {
    let sandbox = sandbox();
    let guest = edits("/resultType", "\"input_required\"", 1);
    install(&sandbox, &guest, &release(Kind::Policy, &guest), "deny, redact", &[]);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let result = client.call("fix__echo", &json!({ "message": "hi" }));
    assert_eq!(result.pointer("/_meta/toolgate~1error/code").unwrap(), "server_misbehaved", "{result}");
}

#[test]
fn a_wrong_number_of_decisions_hides_the_list() {
    let sandbox = sandbox();
    let guest = component(&Source {
        imports: &[],
        exports: &["list-hook"],
        core_imports: "",
        body: r#"(func (export "toolgate:plugin/list-hook@0.1.0#check") (param i32 i32) (result i32)
            (i32.store (i32.const 0) (i32.const 0)) (i32.store (i32.const 4) (i32.const 0)) (i32.const 0))"#,
    });
    install(&sandbox, &guest, &release(Kind::Policy, &guest), "deny, redact", &[]);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert!(client.tool_names().is_empty(), "no decision about an entry is a denial of it");
}

#[test]
fn a_wrong_version_of_an_interface_a_core_module_and_native_code_are_refused_with_their_reasons() {
    let sandbox = sandbox();
    let guest = call_policy(&says(1));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (old, new) = (b"toolgate:plugin/requests@0.1.0", b"toolgate:plugin/requests@0.9.0");
    let mut newer = guest.clone();
    for at in 0..newer.len().saturating_sub(old.len()) {
        if newer[at..].starts_with(old) {
            newer[at..at + new.len()].copy_from_slice(new);
        }
    }
    assert!(text(&newer).contains("@0.9.0"));
    let mut stated = release(Kind::Policy, &guest);
    stated.imports =
        stated.imports.iter().map(|name| name.replace("requests@0.1.0", "requests@0.9.0")).collect();
    stated.imports.sort();
    let dir = install(&sandbox, &newer, &stated, "deny", &[]);
    let run = sandbox.run(&["plugin", "verify", &dir]).exits(5);
    assert!(run.stderr.contains("requests@0.9.0") && run.stderr.contains("0.1.0"), "{run:?}");
    let honest = release(Kind::Policy, &guest);
    for (bytes, said) in [
        (&b"\0asm\x01\0\0\0"[..], "core WebAssembly module"),
        (b"\x7fELF\x02\x01\x01 a .cwasm", "native code"),
        (b"", "empty"),
        (b"<html>", "no WebAssembly component"),
    ] {
        let dir = install(&sandbox, bytes, &honest, "deny", &[]);
        let run = sandbox.run(&["plugin", "verify", &dir]).exits(5);
        assert!(run.stderr.contains(said), "{said}: {run:?}");
        assert_eq!(sandbox.serve_stdio(&[]).close(), 5);
    }
}
