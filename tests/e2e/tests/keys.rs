//! Keys and signing at the command line: no secret in an argument, nothing signed unseen, several
//! signatures on one release.

use std::os::unix::fs::PermissionsExt as _;

use toolgate_e2e::Sandbox;

use crate::guests::{call_policy, says};
use crate::sandbox;

const MANIFEST: &str = "manifest = 1\nname = \"test/guard\"\nversion = \"1.2.3\"\nsequence = 1\nkind = \"policy\"\ndecisions = [\"deny\"]\nmin-host = \"0.1.0\"\n";

/// A plugin that is built and not signed; its directory.
fn unsigned(sandbox: &Sandbox) -> String {
    sandbox.write("guard/component.wasm", call_policy(&says(3)));
    sandbox.write("guard/plugin.toml", MANIFEST);
    sandbox.path("guard").display().to_string()
}

/// A seed key `name` and its public half as text.
fn seed_key(sandbox: &Sandbox, name: &str) -> (String, String) {
    let file = sandbox.path(name).display().to_string();
    let made = sandbox.run(&["key", "new", "--seed", "--json", &file]).exits(0).json();
    (file, made["public"].as_str().unwrap().to_owned())
}

/// Only these keys may sign, and so many of them.
fn trust(sandbox: &Sandbox, keys: &[&str], minimum: usize) {
    let keys: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
    sandbox.configure(&format!(
        "plugins:\n  trust:\n    - {{ plugins: \"test/*\", any_of: {{ minimum: {minimum}, keys: [{}] }} }}\n",
        keys.join(", ")
    ));
}

#[test]
fn a_new_key_is_sealed_private_and_never_replaces_another() {
    let sandbox = sandbox();
    let (file, pass) = (sandbox.path("author.key"), sandbox.write("pass", "correct horse battery\n"));
    std::fs::set_permissions(&pass, std::fs::Permissions::from_mode(0o600)).unwrap();
    let name = file.display().to_string();
    let run = sandbox.run(&["key", "new", &name, "--passphrase-file", &pass]).exits(0);
    assert!(run.stdout.contains("fingerprint") && run.stdout.contains("words"), "{run:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----"), "{text}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    sandbox.run(&["key", "new", "--seed", &name]).exits(2);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "nothing was replaced");

    let whole = sandbox.run(&["key", "show", "--json", &name, "--passphrase-file", &pass]).exits(0).json();
    let public = sandbox.run(&["key", "show", "--json", &format!("{name}.pub")]).exits(0).json();
    assert_eq!(whole, public, "both halves name one key");
    let wrong = sandbox.write("wrong", "another passphrase");
    std::fs::set_permissions(&wrong, std::fs::Permissions::from_mode(0o600)).unwrap();
    let run = sandbox.run(&["key", "show", &name, "--passphrase-file", &wrong]).exits(2);
    assert!(run.stderr.contains("does not open"), "{run:?}");
    // Without a terminal and without a file there is no passphrase, and no flag takes one.
    sandbox.run(&["key", "show", &name, "--passphrase", "correct horse battery"]).exits(2);
}

#[test]
fn an_open_secret_that_others_can_read_is_not_used() {
    let sandbox = sandbox();
    let (file, _) = seed_key(&sandbox, "author.seed");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let run = sandbox.run(&["plugin", "sign", &unsigned(&sandbox), "--key", &file]).exits(2);
    assert!(run.stderr.contains("chmod 600"), "{run:?}");
}

#[test]
fn a_signed_release_says_what_the_binary_imports_and_verifies_under_the_key_that_is_trusted() {
    let sandbox = sandbox();
    let (dir, (file, public)) = (unsigned(&sandbox), seed_key(&sandbox, "author.seed"));
    let signed = sandbox.run(&["plugin", "sign", &dir, "--key", &file, "--json"]).exits(0).json();
    assert_eq!(signed["name"], "test/guard");
    sandbox.configure("");
    sandbox.run(&["plugin", "verify", &dir]).exits(5);
    trust(&sandbox, &[&public], 1);
    sandbox.run(&["plugin", "verify", &dir]).exits(0);
    let stated = sandbox.run(&["plugin", "inspect", &dir, "--json"]).exits(0).json();
    let text = stated.to_string();
    assert!(text.contains("toolgate:plugin/call-hook@0.1.0"), "{text}");
    assert!(text.contains("toolgate:plugin/requests@0.1.0"), "{text}");
}

#[test]
fn a_key_that_is_elsewhere_signs_in_two_steps() {
    let sandbox = sandbox();
    let (dir, (file, public)) = (unsigned(&sandbox), seed_key(&sandbox, "author.seed"));
    let payload = sandbox.path("to-sign").display().to_string();
    sandbox.run(&["plugin", "sign", &dir, "--payload-out", &payload]).exits(0);
    assert!(!sandbox.path("guard/release.dsse.json").exists(), "nothing is signed yet");
    let signature = sandbox.run(&["key", "sign", &payload, "--key", &file]).exits(0).stdout;
    let signature = sandbox.write("signature", signature);
    let attach = ["plugin", "sign", &dir, "--attach", &signature, "--payload", &payload, "--public-key"];
    let (_, other) = seed_key(&sandbox, "other.seed");
    let run = sandbox.run(&[&attach[..], &[&other]].concat()).exits(5);
    assert!(run.stderr.contains("does not verify"), "{run:?}");
    sandbox.run(&[&attach[..], &[&public]].concat()).exits(0);
    trust(&sandbox, &[&public], 1);
    sandbox.run(&["plugin", "verify", &dir]).exits(0);
    // A key signs what waits for a signature, and nothing that somebody hands it.
    let anything = sandbox.write("anything", "pay 1000 to mallory");
    sandbox.run(&["key", "sign", &anything, "--key", &file]).exits(2);
}

#[test]
fn a_program_in_front_of_a_device_signs_and_a_wrong_answer_is_found() {
    let sandbox = sandbox();
    let (dir, (file, public)) = (unsigned(&sandbox), seed_key(&sandbox, "device.seed"));
    let device = format!("'{}' key sign --key '{file}'", crate::TOOLGATE);
    sandbox.run(&["plugin", "sign", &dir, "--signer", &device, "--public-key", &public]).exits(0);
    trust(&sandbox, &[&public], 1);
    sandbox.run(&["plugin", "verify", &dir]).exits(0);
    let (_, other) = seed_key(&sandbox, "other.seed");
    sandbox.run(&["plugin", "sign", &dir, "--signer", &device, "--public-key", &other]).exits(5);
    for (broken, code) in [("false", 1), ("yes", 1), ("/nowhere/program", 1), ("'", 2)] {
        let run = sandbox.run(&["plugin", "sign", &dir, "--signer", broken, "--public-key", &public]);
        assert_eq!(run.code, code, "{broken}: {run:?}");
    }
    sandbox.run(&["plugin", "verify", &dir]).exits(0);
}

#[test]
fn a_rule_for_two_keys_wants_two_signatures_and_a_key_counts_once() {
    let sandbox = sandbox();
    let dir = unsigned(&sandbox);
    let (first, first_public) = seed_key(&sandbox, "first.seed");
    let (second, second_public) = seed_key(&sandbox, "second.seed");
    trust(&sandbox, &[&first_public, &second_public], 2);
    sandbox.run(&["plugin", "sign", &dir, "--key", &first]).exits(0);
    let run = sandbox.run(&["plugin", "verify", &dir]).exits(5);
    assert!(run.stderr.contains("signed by 1"), "one of two: {run:?}");
    let run = sandbox.run(&["plugin", "sign", &dir, "--key", &first, "--add"]).exits(2);
    assert!(run.stderr.contains("counts once"), "{run:?}");
    sandbox.run(&["plugin", "sign", &dir, "--key", &second, "--add"]).exits(0);
    sandbox.run(&["plugin", "verify", &dir]).exits(0);
    // Another component is another release: no signature is carried over.
    sandbox.write("guard/component.wasm", call_policy(&says(2)));
    sandbox.run(&["plugin", "sign", &dir, "--key", &second, "--add"]).exits(5);
    sandbox.run(&["plugin", "verify", &dir]).exits(5);
}
