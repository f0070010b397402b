//! What the project was asked to be: the rows of its card that no other test names.

use std::fs;
use std::path::Path;

use toolgate_signing::{Kind, SigningKey, sign_release};

use crate::guests::{call_policy, release, says};
use crate::{ECHO, sandbox};

#[test]
fn card_001_card_005_a_signed_policy_that_the_binary_never_saw_is_loaded_and_judges() {
    let sandbox = sandbox();
    let guest = call_policy(&says(3));
    let key = SigningKey::from_seed(&[7; 32]);
    sandbox.write("plugin/component.wasm", &guest);
    let signed = sign_release(&release(Kind::Policy, &guest), &guest, &key);
    let file = sandbox.write("plugin/release.dsse.json", signed);

    let allow = "    capabilities: { allow: [\"mcp.call:fix\"] }\n";
    sandbox.configure_fixture(&[], allow);
    sandbox.run(&ECHO).exits(0);
    let plugins = format!(
        "{allow}plugins:\n  trust:\n    - {{ plugins: \"test/*\", keys: [\"{}\"] }}\n  load:\n    - {{ plugin: {:?} }}\n",
        key.public(),
        Path::new(&file).parent().unwrap()
    );
    sandbox.configure_fixture(&[], &plugins);
    let denied = sandbox.run(&ECHO).exits(3);
    assert!(denied.stderr.contains("yes"), "{denied:?}");
}

#[test]
fn card_002_the_packages_of_the_card_are_what_the_host_is_built_from() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifests: Vec<String> = fs::read_dir(host)
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).ok())
        .map(|text| text.split("[dev-dependencies]").next().unwrap().to_owned())
        .collect();
    for name in [
        "wasmtime",
        "wasmtime-wasi",
        "tokio",
        "rmcp",
        "serde",
        "cap-std",
        "semver",
        "reqwest",
        "ed25519-dalek",
    ] {
        let used = manifests
            .iter()
            .flat_map(|text| text.lines())
            .any(|line| line.split(['.', ' ']).next() == Some(name));
        assert!(used, "no crate of the host depends on {name}");
    }
}

#[test]
fn card_003_the_top_level_is_that_of_the_card() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["Cargo.toml", "host", "wit", "plugins", "registry", "tests", "README.md"] {
        assert!(root.join(name).exists(), "{name} is missing");
    }
}

#[test]
fn card_004_the_plugin_host_has_no_transport_no_token_and_no_log_of_its_own() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let (dependencies, _) = manifest.split_once("[dev-dependencies]").unwrap();
    for never in
        ["rmcp", "hyper", "reqwest", "rusqlite", "toolgate-upstream", "toolgate-oauth", "toolgate-store"]
    {
        let held = dependencies.lines().any(|line| line.split(['.', ' ']).next() == Some(never));
        assert!(!held, "host/plugins depends on {never}");
    }
}
