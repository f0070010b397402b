//! The life of a plugin on the built binary: trusted, installed, updated, denied, put aside, removed,
//! under running calls and across kills.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Run, Sandbox};
use toolgate_signing::{Kind, Release, SigningKey, sign_release};

use crate::guests::{call_policy, release, says};
use crate::operator::with_pin;
use crate::{ECHO, sandbox};

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";
/// Cases of a decision, as guests say them.
const ABSTAIN: u32 = 0;
const DENY: u32 = 3;

fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32])
}

/// A directory with a signed policy `test/guard` that always says the same.
pub(crate) fn guard(
    sandbox: &Sandbox,
    dir: &str,
    sequence: u64,
    component: &[u8],
    change: fn(&mut Release),
) -> String {
    let mut stated = release(Kind::Policy, component);
    "test/guard".clone_into(&mut stated.name);
    stated.sequence = sequence;
    stated.version = semver::Version::new(1, 0, sequence);
    change(&mut stated);
    sandbox.write(&format!("{dir}/component.wasm"), component);
    sandbox.write(&format!("{dir}/release.dsse.json"), sign_release(&stated, component, &key()));
    sandbox.path(dir).display().to_string()
}

pub(crate) fn same(_: &mut Release) {}

/// A gateway with a fixture server whose calls pass, and a rule for the key of the tests.
pub(crate) fn trusting() -> Sandbox {
    let sandbox = sandbox();
    let trusted = key().public().to_string();
    sandbox.configure_fixture(
        &[],
        &format!("{ALLOW}plugins:\n  trust:\n    - {{ plugins: \"test/*\", keys: [\"{trusted}\"] }}\n"),
    );
    sandbox
}

pub(crate) fn install(sandbox: &Sandbox, dir: &str) -> Run {
    sandbox.run(&["plugin", "install", dir, "--yes", "--json"])
}

/// The same call over a session.
fn echo(client: &mut toolgate_e2e::Stdio) -> Value {
    client.call("fix__echo", &json!({ "message": "hi" }))
}

/// Whether a call passes, asked until it is so.
#[track_caller]
fn until_calls(client: &mut toolgate_e2e::Stdio, pass: bool) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let result = echo(client);
        if (result["isError"] != true) == pass {
            return result;
        }
        assert!(Instant::now() < until, "still the old: {result}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn gate_reload_an_install_and_a_removal_reach_a_running_gateway() {
    let sandbox = trusting();
    let dir = guard(&sandbox, "one", 1, &call_policy(&says(DENY)), same);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    until_calls(&mut client, true);
    let installed = install(&sandbox, &dir).exits(0).json();
    assert_eq!(installed["sequence"], 1);
    let denied = until_calls(&mut client, false);
    assert!(denied.to_string().contains("test/guard"), "{denied}");
    sandbox.run(&["plugin", "remove", "test/guard"]).exits(0);
    until_calls(&mut client, true);
    let events = sandbox.events();
    for event in ["plugin_installed", "plugin_removed", "plugins_changed"] {
        assert!(events.contains(&event.to_owned()), "{event}: {events:?}");
    }
}

#[test]
fn fr_50_a_standing_grant_opens_nothing_that_a_policy_denies() {
    let sandbox = trusting();
    sandbox.run(&["mcp", "tools", "fix"]).exits(0);

    sandbox.run(&["mcp", "allow", "fix/echo"]).exits(0);
    sandbox.run(&ECHO).exits(0);
    install(&sandbox, &guard(&sandbox, "one", 1, &call_policy(&says(DENY)), same)).exits(0);
    let run = sandbox.run(&ECHO).exits(3);
    assert!(run.stderr.contains("Denied by Toolgate: yes"), "in the policy's words: {run:?}");
    sandbox.run(&["mcp", "allow", "fix/echo"]).exits(0);
    sandbox.run(&ECHO).exits(3);
}

#[test]
fn an_installed_plugin_says_in_plain_words_what_it_may_do_and_nobody_says_yes_for_the_operator() {
    let sandbox = trusting();
    let dir = guard(&sandbox, "one", 1, &call_policy(&says(DENY)), same);
    let alone = sandbox.run_detached(&sandbox.command(&["plugin", "install", &dir]), "yes\n");
    assert_eq!(alone.code, 3, "a pipe is nobody: {alone:?}");
    assert!(alone.stderr.contains("see who asks for what"), "{alone:?}");
    let asked = sandbox.type_to(&["plugin", "install", &dir], &[("Type yes: ", "no")]);
    assert_eq!(asked.code, 3, "{asked:?}");
    sandbox.type_to(&["plugin", "install", &dir], &[("Type yes: ", "yes")]).exits(0);
    sandbox.run(&["plugin", "remove", "test/guard"]).exits(0);
    with_pin(&sandbox);
    let yes = sandbox.command(&["plugin", "install", &dir, "--yes"]);
    let refused = sandbox.run_detached(&yes, "");
    assert_eq!(refused.code, 3, "--yes is no proof: {refused:?}");
    assert!(!sandbox.data().join("plugins.d/test.guard.toml").exists());
}

#[test]
fn what_is_not_signed_by_a_trusted_key_is_never_installed() {
    let sandbox = trusting();
    let dir = guard(&sandbox, "one", 1, &call_policy(&says(DENY)), same);
    sandbox.configure_fixture(&[], ALLOW);
    let run = install(&sandbox, &dir).exits(5);
    assert!(run.stderr.contains("plugins.trust"), "{run:?}");
    assert!(!sandbox.data().join("plugins").join("sequences.toml").exists(), "nothing was written");
}

#[test]
fn gate_sequence_an_older_release_comes_back_only_by_an_explicit_word() {
    let sandbox = trusting();
    let (old, new) = (
        guard(&sandbox, "old", 1, &call_policy(&says(DENY)), same),
        guard(&sandbox, "new", 2, &call_policy(&says(ABSTAIN)), same),
    );
    install(&sandbox, &new).exits(0);
    let run = install(&sandbox, &old).exits(5);
    assert!(run.stderr.contains("sequence 1") && run.stderr.contains('2'), "{run:?}");
    sandbox.run(&["plugin", "remove", "test/guard"]).exits(0);
    install(&sandbox, &old).exits(5);
    sandbox.run(&["plugin", "install", &old, "--yes", "--allow-older"]).exits(0);
}

#[test]
fn gate_widening_an_update_that_may_do_more_shows_the_difference_and_wants_proof() {
    let sandbox = trusting();
    let first = guard(&sandbox, "place", 1, &call_policy(&says(DENY)), |stated| {
        stated.decisions = vec!["deny".to_owned()];
    });
    install(&sandbox, &first).exits(0);
    with_pin(&sandbox);
    let yes = ["plugin", "update", "test/guard", "--any-age", "--yes"];
    // The same powers: taken without proof, because it may do no more.
    guard(&sandbox, "place", 2, &call_policy(&says(ABSTAIN)), |stated| {
        stated.decisions = vec!["deny".to_owned()];
    });
    let run = sandbox.run_detached(&sandbox.command(&yes), "");
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("may do no more"), "{run:?}");
    guard(&sandbox, "place", 3, &call_policy(&says(ABSTAIN)), |stated| {
        stated.decisions = vec!["allow".to_owned(), "deny".to_owned()];
    });
    let run = sandbox.run_detached(&sandbox.command(&yes), "");
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stdout.contains("LET something pass"), "the difference is shown: {run:?}");
    let list = sandbox.run(&["plugin", "list", "--json"]).exits(0).json();
    let version = list["plugins"].as_array().unwrap().iter().find(|row| row["name"] == "test/guard").unwrap();
    assert_eq!(version["version"], "1.0.2", "the old one is still there: {list}");
}

#[test]
fn an_update_waits_until_the_release_has_its_age() {
    let sandbox = trusting();
    let young = |stated: &mut Release| stated.published = "2099-01-01T00:00:00Z".to_owned();
    install(&sandbox, &guard(&sandbox, "place", 1, &call_policy(&says(DENY)), same)).exits(0);
    guard(&sandbox, "place", 2, &call_policy(&says(DENY)), young);
    let run = sandbox.run(&["plugin", "update", "--yes", "--json"]).exits(0).json();
    assert_eq!(run["plugins"][0]["state"], "waits", "{run}");
    let run =
        sandbox.run(&["plugin", "update", "test/guard", "--any-age", "--yes", "--json"]).exits(0).json();
    assert_eq!(run["plugins"][0]["state"], "updated", "{run}");
}

#[test]
fn gate_deny_a_denied_digest_stops_a_running_gateway_and_every_start() {
    let sandbox = trusting();
    let dir = guard(&sandbox, "one", 1, &call_policy(&says(ABSTAIN)), same);
    let installed = install(&sandbox, &dir).exits(0).json();
    let digest = installed["component"].as_str().unwrap().to_owned();
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    until_calls(&mut client, true);
    sandbox.run(&["plugin", "deny", &digest]).exits(2);
    sandbox.run(&["plugin", "deny", &digest, "--reason", "its author lost the key"]).exits(0);
    let denied = until_calls(&mut client, false);
    assert!(denied.to_string().contains("its author lost the key"), "{denied}");
    assert!(client.tool_names().is_empty(), "nothing passes without a policy that belongs there");
    let run = sandbox.run(&["mcp", "call", "fix.echo", "--json", "{}"]).exits(5);
    assert!(run.stderr.contains("its author lost the key"), "{run:?}");
    sandbox.run(&["plugin", "verify", &dir]).exits(5);
    install(&sandbox, &dir).exits(5);
    // A damaged list of denials lets nothing through either.
    let file = sandbox.data().join("plugins/denied.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, "denied = 1").unwrap();
    sandbox.run(&["mcp", "call", "fix.echo", "--json", "{}"]).exits(5);
    std::fs::write(&file, text).unwrap();
    sandbox.run(&["plugin", "deny", "--lift", &digest]).exits(0);
    until_calls(&mut client, true);
}

#[test]
fn a_plugin_of_the_bundle_can_be_denied_too() {
    let sandbox = trusting();
    let list = sandbox.run(&["plugin", "list", "--json"]).exits(0).json();
    let digest = list["plugins"][0]["component"].as_str().unwrap();
    sandbox.run(&["plugin", "deny", digest, "--reason", "test"]).exits(0);
    assert_eq!(sandbox.serve_stdio(&[]).close(), 5);
}

#[test]
fn a_plugin_that_fails_on_every_call_is_put_aside_and_comes_back_by_retry_or_replacement() {
    let sandbox = trusting();
    install(&sandbox, &guard(&sandbox, "bad", 1, &call_policy("unreachable"), same)).exits(0);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let call = |client: &mut toolgate_e2e::Stdio| {
        let result = echo(client);
        assert_eq!(result["isError"], true, "{result}");
        result.to_string()
    };
    for _ in 0..5 {
        let said = call(&mut client);
        assert!(said.contains("failed (trap)"), "{said}");
    }
    let aside = call(&mut client);
    assert!(aside.contains("put aside") && aside.contains("plugin retry"), "{aside}");
    sandbox.run(&["plugin", "retry", "test/guard"]).exits(0);
    let until = Instant::now() + PATIENCE;
    while call(&mut client).contains("put aside") {
        assert!(Instant::now() < until, "it gets another try");
        std::thread::sleep(Duration::from_millis(50));
    }
    install(&sandbox, &guard(&sandbox, "good", 2, &call_policy(&says(ABSTAIN)), same)).exits(0);
    until_calls(&mut client, true);
    let aside = sandbox.events().iter().filter(|event| *event == "plugin_put_aside").count();
    assert!(aside >= 1, "it is in the log");
}

#[test]
fn gate_trust_add_a_key_is_trusted_only_by_the_fingerprint_that_somebody_compared() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let dir = guard(&sandbox, "one", 1, &call_policy(&says(DENY)), same);
    let public = key().public().to_string();
    let fingerprint = key().public().id().to_string();
    let add = ["plugin", "trust", "add", "test/*", &public];
    let alone = sandbox.run_detached(&sandbox.command(&add), "yes\n");
    assert_eq!(alone.code, 3, "never a silent first use: {alone:?}");
    let wrong = "0".repeat(64);
    sandbox.run(&[&add[..], &["--fingerprint", &wrong]].concat()).exits(5);
    install(&sandbox, &dir).exits(5);
    for pattern in ["test*", "*", "test/", "toolgate/*", "test/gu*"] {
        let run = sandbox.run(&["plugin", "trust", "add", pattern, &public, "--fingerprint", &fingerprint]);
        assert_eq!(run.code, 2, "{pattern}: {run:?}");
    }
    let shown = sandbox.type_to(&add, &[("Type yes: ", "yes")]).exits(0);
    assert!(shown.stdout.contains(&key().public().id().words()), "{shown:?}");
    install(&sandbox, &dir).exits(0);
    sandbox.run(&["plugin", "trust", "remove", "test/*"]).exits(0);
    assert_eq!(sandbox.serve_stdio(&[]).close(), 5, "what nobody may sign any more is not loaded");
    with_pin(&sandbox);
    let proven = sandbox.command(&[&add[..], &["--fingerprint", &fingerprint]].concat());
    assert_eq!(sandbox.run_detached(&proven, "").code, 3, "a fingerprint is no proof");
}

#[test]
fn the_cli_adds_only_where_the_operators_file_does_not_decide() {
    let sandbox = trusting();
    let (public, fingerprint) = (key().public().to_string(), key().public().id().to_string());
    let run = sandbox
        .run(&["plugin", "trust", "add", "test/guard", &public, "--fingerprint", &fingerprint])
        .exits(2);
    assert!(run.stderr.contains("toolgate.yaml has a rule"), "{run:?}");
    let yaml = std::fs::read_to_string(sandbox.config_file()).unwrap();
    std::fs::write(sandbox.config_file(), format!("{yaml}  managed: off\n")).unwrap();
    let dir = guard(&sandbox, "one", 1, &call_policy(&says(DENY)), same);
    let run = install(&sandbox, &dir).exits(2);
    assert!(run.stderr.contains("managed: off"), "{run:?}");
    sandbox.run(&["plugin", "trust", "add", "other/*", &public, "--fingerprint", &fingerprint]).exits(2);
}

#[test]
fn a_rule_with_all_of_wants_that_very_key() {
    let sandbox = sandbox();
    let (one, two, must) = (key(), SigningKey::from_seed(&[8; 32]), SigningKey::from_seed(&[9; 32]));
    sandbox.configure(&format!(
        "plugins:\n  trust:\n    - plugins: test/*\n      any_of: {{ minimum: 1, keys: [\"{}\", \"{}\"] }}\n      all_of: [\"{}\"]\n",
        one.public(),
        two.public(),
        must.public()
    ));
    let dir = guard(&sandbox, "one", 1, &call_policy(&says(DENY)), same);
    let statement = std::fs::read(sandbox.path("one/release.dsse.json")).unwrap();
    let (kind, payload) = toolgate_signing::unverified_payload(&statement).unwrap();
    for (keys, code, said) in [
        (vec![&one], 5, "signed by 1"),
        (vec![&one, &two], 5, "must have signed it"),
        (vec![&must], 5, "signed by 1"),
        (vec![&one, &must], 0, ""),
    ] {
        sandbox.write("one/release.dsse.json", toolgate_signing::sign_payload(&kind, &payload, &keys));
        let run = sandbox.run(&["plugin", "verify", &dir]).exits(code);
        assert!(run.stderr.contains(said), "{said}: {run:?}");
    }
}
