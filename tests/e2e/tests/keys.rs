//! Keys and signing at the command line: no secret in an argument, nothing signed unseen, several
//! signatures on one release.

use std::os::unix::fs::PermissionsExt as _;

use toolgate_e2e::Sandbox;
use toolgate_signing::SigningKey;

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

/// The payloads that wait in a directory, signed where the keys are and the signatures put beside them.
fn signed_elsewhere(sandbox: &Sandbox, directory: &str, keys: &[(&str, &str)]) -> Vec<String> {
    let mut payloads: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .filter(|path| {
            path.ends_with(".payload") && !std::path::Path::new(&path.replace(".payload", ".sig")).exists()
        })
        .collect();
    payloads.sort();
    for payload in &payloads {
        let (_, file) = keys.iter().find(|(id, _)| payload.contains(&format!(".{id}."))).unwrap();
        let run = sandbox.run(&["key", "sign", payload, "--key", file]).exits(0);
        assert!(run.stderr.contains("signing "), "whoever signs is told what: {run:?}");
        std::fs::write(payload.replace(".payload", ".sig"), run.stdout).unwrap();
    }
    let name = |path: &String| path.rsplit('/').next().unwrap().split('.').next().unwrap().to_owned();
    payloads.iter().map(name).collect()
}

#[test]
fn keys_that_are_elsewhere_sign_every_document_of_a_registry_in_steps() {
    let sandbox = sandbox();
    let root = crate::registry::registry(&sandbox);
    let dir = crate::registry::path(&sandbox, "registry");
    let guard = crate::registry::plugin(&sandbox, "1.0.0", 1);
    let key = |name: &str| {
        let file = sandbox.path(&format!("keys/{name}")).display().to_string();
        let shown = sandbox.run(&["key", "show", "--json", &format!("{file}.pub")]).exits(0).json();
        (shown["id"].as_str().unwrap()[..12].to_owned(), file)
    };
    let (admin, publish, refresh) = (key("admin"), key("publish"), key("refresh"));
    let keys = [&admin, &publish, &refresh].map(|(id, file)| (id.as_str(), file.as_str()));
    let status = || sandbox.run(&["registry", "status", &dir, "--json"]).exits(0).json();
    let before = status()["log"].clone();

    // Publishing: the note over the log first, then the snapshot that holds it.
    let verb = ["registry", "publish", &dir, &guard];
    let (wait, public) = (sandbox.path("wait").display().to_string(), format!("{}.pub", publish.1));
    sandbox.run(&[&verb[..], &["--payload-out", &wait]].concat()).exits(2);
    let told =
        sandbox.run(&[&verb[..], &["--payload-out", &wait, "--public-key", &public]].concat()).exits(0);
    assert!(told.stdout.contains("toolgate key sign") && told.stdout.contains("--attach"), "{told:?}");
    assert_eq!(status()["log"], before, "nothing is published by asking for signatures");
    let attach = [&verb[..], &["--attach", &wait]].concat();
    let run = sandbox.run(&attach).exits(3);
    assert!(run.stderr.contains("nothing is published yet"), "{run:?}");
    assert_eq!(signed_elsewhere(&sandbox, &wait, &keys), ["checkpoint"]);
    let run = sandbox.run(&[&attach[..], &["--json"]].concat()).exits(3);
    assert!(run.stdout.contains("snapshot."), "{run:?}");
    assert_eq!(status()["log"], before);
    assert_eq!(signed_elsewhere(&sandbox, &wait, &keys), ["snapshot"]);
    sandbox.run(&attach).exits(0);
    assert_eq!(status()["plugins"], 1);
    sandbox.run(&["registry", "verify", &dir, "--root", &root]).exits(0);

    // Revoking: both keys are elsewhere, and both first signatures are asked for at once.
    let verb = ["registry", "revoke", &dir, "acme/guard@1.0.0", "--reason", "it steals"];
    let wait = sandbox.path("revoke").display().to_string();
    let admin_public = format!("{}.pub", admin.1);
    let begin =
        [&verb[..], &["--payload-out", &wait, "--public-key", &public, "--public-key", &admin_public]];
    sandbox.run(&begin.concat()).exits(0);
    assert_eq!(signed_elsewhere(&sandbox, &wait, &keys), ["checkpoint", "revocations"]);
    let attach = [&verb[..], &["--attach", &wait]].concat();
    sandbox.run(&attach).exits(3);
    // Another change came first: what was signed is no longer what has to be signed, and says so.
    let other = crate::registry::plugin(&sandbox, "1.1.0", 2);
    crate::registry::change(&sandbox, &["publish", &dir, &other], &["publish"]).exits(0);
    let run = sandbox.run(&attach).exits(1);
    assert!(run.stderr.contains("the registry has changed since"), "{run:?}");
    let wait = sandbox.path("again").display().to_string();
    let begin =
        [&verb[..], &["--payload-out", &wait, "--public-key", &public, "--public-key", &admin_public]];
    sandbox.run(&begin.concat()).exits(0);
    let attach = [&verb[..], &["--attach", &wait]].concat();
    for expected in [vec!["checkpoint", "revocations"], vec!["snapshot"]] {
        assert_eq!(signed_elsewhere(&sandbox, &wait, &keys), expected);
        sandbox.run(&attach);
    }
    assert_eq!(status()["revoked"]["releases"], 1);

    // Delegations, and a renewal by the online key, whose signature of something else does not pass.
    let acme = SigningKey::from_seed(&[9; 32]).public().to_string();
    let verb = ["registry", "rotate", &dir, "other/*", "--to", &acme];
    let wait = sandbox.path("rotate").display().to_string();
    let begin = [&verb[..], &["--payload-out", &wait, "--public-key", &admin_public, "--key", &publish.1]];
    sandbox.run(&begin.concat()).exits(0);
    assert_eq!(signed_elsewhere(&sandbox, &wait, &keys), ["delegations"]);
    sandbox.run(&[&verb[..], &["--attach", &wait, "--key", &publish.1]].concat()).exits(0);
    assert_eq!(status()["namespaces"].as_array().unwrap().len(), 2);
    let verb = ["registry", "refresh", &dir];
    let wait = sandbox.path("refresh").display().to_string();
    let refresh_public = format!("{}.pub", refresh.1);
    sandbox.run(&[&verb[..], &["--payload-out", &wait, "--public-key", &refresh_public]].concat()).exits(0);
    assert_eq!(signed_elsewhere(&sandbox, &wait, &keys), ["freshness"]);
    let file = format!("{wait}/freshness.{}.sig", refresh.0);
    let good = std::fs::read(&file).unwrap();
    std::fs::write(&file, "00".repeat(64)).unwrap();
    let attach = [&verb[..], &["--attach", &wait]].concat();
    let run = sandbox.run(&attach).exits(5);
    assert!(run.stderr.contains("does not verify"), "{run:?}");
    std::fs::write(&file, good).unwrap();
    sandbox.run(&attach).exits(0);
    sandbox.run(&["registry", "verify", &dir, "--root", &root]).exits(0);
}

#[test]
fn programs_in_front_of_devices_sign_every_document_of_a_registry() {
    let sandbox = sandbox();
    let dir = crate::registry::path(&sandbox, "registry");
    std::fs::create_dir_all(sandbox.path("devices")).unwrap();
    let device = |name: &str| {
        let (file, public) = seed_key(&sandbox, &format!("devices/{name}"));
        (format!("'{}' key sign --key '{file}'", crate::TOOLGATE), public)
    };
    let (root, admin, publish, refresh) =
        (device("root"), device("admin"), device("publish"), device("refresh"));
    let with = |verb: &[&str], devices: &[&(String, String)]| {
        let mut all = verb.to_vec();
        for (command, public) in devices {
            all.extend(["--signer", command.as_str(), "--public-key", public.as_str()]);
        }
        sandbox.run(&all)
    };
    let role = |role: &str, device: &(String, String)| format!("{role}={}", device.1);
    let roles = [
        role("root", &root),
        role("delegate", &admin),
        role("revoke", &admin),
        role("snapshot", &publish),
        role("refresh", &refresh),
    ];
    let mut init = vec!["registry", "init", &dir, "--origin", "plugins.example/main"];
    init.extend(roles.iter().flat_map(|role| ["--role", role.as_str()]));
    with(&init, &[&root, &admin, &publish]).exits(0);
    let acme = SigningKey::from_seed(&crate::registry::ACME).public().to_string();
    with(&["registry", "rotate", &dir, "acme/*", "--to", &acme], &[&admin, &publish]).exits(0);
    let guard = crate::registry::plugin(&sandbox, "1.0.0", 1);
    with(&["registry", "publish", &dir, &guard], &[&publish]).exits(0);
    with(&["registry", "revoke", &dir, "acme/guard@1.0.0", "--reason", "x"], &[&publish, &admin]).exits(0);
    with(&["registry", "refresh", &dir], &[&refresh]).exits(0);
    sandbox.run(&["registry", "verify", &dir]).exits(0);
    // Each device needs its key, and a wrong pairing is found before anything is written.
    let run = with(&["registry", "refresh", &dir], &[&(refresh.0.clone(), publish.1.clone())]);
    assert_ne!(run.code, 0, "{run:?}");
    let run = sandbox.run(&["registry", "refresh", &dir, "--public-key", &refresh.1]).exits(2);
    assert!(run.stderr.contains("without its --signer"), "{run:?}");

    // A proposed root, signed by a key elsewhere and by a device.
    let next = device("next");
    let roles = [role("root", &root), role("root", &next)];
    let propose = [
        "registry",
        "root",
        "propose",
        &dir,
        "--role",
        &roles[0],
        "--role",
        &roles[1],
        "--threshold",
        "root=2",
    ];
    sandbox.run(&propose).exits(0);
    let sign = ["registry", "root", "sign", &dir];
    with(&sign, &[&root]).exits(0);
    let (payload, signature) = (sandbox.path("root.payload"), sandbox.path("root.sig"));
    let (payload, signature) = (payload.display().to_string(), signature.display().to_string());
    sandbox.run(&[&sign[..], &["--payload-out", &payload]].concat()).exits(0);
    let made =
        sandbox.run(&["key", "sign", &payload, "--key", &sandbox.path("devices/next").display().to_string()]);
    std::fs::write(&signature, made.exits(0).stdout).unwrap();
    let attach = [&sign[..], &["--attach", &signature, "--public-key"]].concat();
    sandbox.run(&[&attach[..], &[&root.1]].concat()).exits(5);
    sandbox.run(&[&attach[..], &[&next.1]].concat()).exits(0);
    with(&["registry", "root", "finish", &dir], &[&publish]).exits(0);
    sandbox.run(&["registry", "verify", &dir]).exits(0);
}
