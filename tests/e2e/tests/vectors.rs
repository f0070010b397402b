//! The published vectors of keys and releases, on the built binary: each is refused for its own reason,
//! and nothing of a refused release is looked at.

use serde_json::Value;
use toolgate_e2e::Sandbox;

use crate::sandbox;

fn vectors(file: &str) -> Value {
    let path = format!("{}/../signing/vectors/{file}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn trust(sandbox: &Sandbox, keys: &Value, minimum: &Value) {
    sandbox.configure(&format!(
        "plugins:\n  trust:\n    - {{ plugins: \"acme/*\", any_of: {{ minimum: {minimum}, keys: {keys} }} }}\n"
    ));
}

#[test]
fn every_release_of_the_vectors_is_refused_by_the_binary_with_its_own_reason() {
    let sandbox = sandbox();
    let all = vectors("releases");
    sandbox.write("plugin/component.wasm", b"never looked at");
    let dir = sandbox.path("plugin").display().to_string();
    let (mut tried, mut reasons) = (0, std::collections::BTreeSet::new());
    for vector in all["refused"].as_array().unwrap() {
        let (name, reason) = (vector["name"].as_str().unwrap(), vector["reason"].as_str().unwrap());
        sandbox.write("plugin/release.dsse.json", vector["envelope"].as_str().unwrap());
        trust(&sandbox, &vector["rule"]["keys"], &vector["rule"]["minimum"]);
        if name == "no-rule" {
            sandbox.configure("");
        }
        let run = sandbox.run(&["plugin", "verify", "--json", &dir]);
        if reason == "rule" {
            // A rule that cannot be met is found in the configuration.
            assert_eq!(run.code, 2, "{name}: {run:?}");
            continue;
        }
        assert_eq!(run.code, 5, "{name}: {run:?}");
        // A name that no rule can cover finds none before anything else of it is judged.
        let reason =
            if ["name-without-namespace", "name-in-capitals"].contains(&name) { "no-rule" } else { reason };
        assert_eq!(run.json()["code"], reason, "{name}: {run:?}");
        reasons.insert(reason.to_owned());
        tried += 1;
    }
    assert!(tried > 90 && reasons.len() > 12, "{tried}: {reasons:?}");
}

#[test]
fn weak_and_non_canonical_keys_reach_no_rule() {
    let sandbox = sandbox();
    for vector in vectors("keys")["refused"].as_array().unwrap() {
        let (name, key) = (vector["name"].as_str().unwrap(), vector["key"].as_str().unwrap());
        sandbox.configure(&format!(
            "plugins:\n  trust:\n    - {{ plugins: \"acme/*\", keys: [{}] }}\n",
            Value::from(key)
        ));
        let run = sandbox.run(&["config", "check"]).exits(2);
        let said = match vector["reason"].as_str().unwrap() {
            "weak" => "weak",
            "non-canonical" => "canonical encoding",
            "not-a-point" => "no Ed25519 key",
            _ => "key",
        };
        assert!(run.stderr.contains(said), "{name}: {run:?}");
        sandbox.configure("");
        if key.starts_with("ed25519:") {
            let run = sandbox.run(&["key", "show", key]).exits(2);
            assert!(run.stderr.contains(said), "{name}: {run:?}");
        }
    }
}
