//! Components that break the rules, signed by a key that the operator trusts: the signature is no
//! excuse. Each is met by the built binary with its own reason, while the rest goes on.

use serde_json::json;
use toolgate_e2e::Sandbox;
use toolgate_signing::{Kind, Release, SigningKey, sign_release};

use crate::guests::{Source, call_policy, component, release, says};
use crate::sandbox;

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
        sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(code);
    }
}

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
