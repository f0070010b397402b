//! The components that come with Toolgate, as they are committed and signed: guests written in
//! another workspace against the same contract.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use toolgate_plugins::{
    Adapter, Admission, Change, Decision, DecisionSet, Document, Edit, Facts, Hook, HostOptions,
    LoadErrorKind, PinState, Plugin, PluginHost, Policy, Redaction,
};
use toolgate_signing::{PublicKey, Threshold, VerifiedRelease, verify_release};

use super::guests::facts;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../registry/first-party")
}

/// Component and verified release of a first-party plugin.
fn files(name: &str) -> (Vec<u8>, VerifiedRelease) {
    let keys = std::fs::read_to_string(directory().join("keys.txt")).unwrap();
    let keys: Vec<_> = keys
        .lines()
        .filter(|line| line.starts_with("ed25519:"))
        .map(|line| PublicKey::parse(line).unwrap())
        .collect();
    let mut versions: Vec<_> =
        std::fs::read_dir(directory().join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    versions.sort();
    let version = versions.pop().unwrap();
    let component = std::fs::read(version.join("component.wasm")).unwrap();
    let envelope = std::fs::read(version.join("release.dsse.json")).unwrap();
    let release = verify_release(&envelope, &|_| Some(Threshold { keys: keys.clone(), minimum: 1 })).unwrap();
    (component, release)
}

fn load(name: &str, settings: &str) -> Result<Plugin, toolgate_plugins::LoadError> {
    let (component, release) = files(name);
    let admission =
        Admission { decisions: DecisionSet::ALL, settings: settings.into(), ..Admission::default() };
    PluginHost::new(HostOptions::default()).unwrap().load(&component, &release, &admission)
}

fn policy(name: &str) -> Policy {
    match load(name, "{}").unwrap() {
        Plugin::Policy(policy) => policy,
        other => panic!("no policy: {other:?}"),
    }
}

fn filesystem(settings: &str) -> Result<Adapter, toolgate_plugins::LoadError> {
    match load("filesystem", settings)? {
        Plugin::Adapter(adapter) => Ok(adapter),
        other => panic!("no adapter: {other:?}"),
    }
}

fn with(change: impl FnOnce(&mut Facts)) -> Arc<Facts> {
    let mut all = (*facts()).clone();
    change(&mut all);
    Arc::new(all)
}

#[test]
fn ask_asks_and_declares_no_authority_to_allow() {
    let ask = policy("ask");
    assert_eq!(ask.authority().words(), ["ask"]);
    assert!(matches!(ask.check(Hook::Call, &facts()), Decision::Ask { .. }));
}

#[test]
fn capabilities_decides_by_labels() {
    let capabilities = policy("capabilities");
    assert_eq!(capabilities.check(Hook::Call, &facts()), Decision::Abstain);
    let none = with(|facts| facts.has_capabilities = true);
    assert!(matches!(capabilities.check(Hook::Call, &none), Decision::Deny { fault: None, .. }));
    let allowed = with(|facts| {
        facts.has_capabilities = true;
        facts.matched_allow = Some("mcp.call:github".into());
    });
    assert!(matches!(capabilities.check(Hook::Call, &allowed), Decision::Allow { .. }));
    let decisions = capabilities.check_list(&[facts(), none, allowed]);
    assert!(
        matches!(
            decisions.as_slice(),
            [Decision::Abstain, Decision::Deny { fault: None, .. }, Decision::Allow { .. }]
        ),
        "{decisions:?}"
    );
}

#[test]
fn trust_denies_a_definition_that_differs_from_its_pin() {
    let trust = policy("trust");
    let drifted = with(|facts| facts.pin = PinState::Differs);
    assert!(matches!(trust.check(Hook::Call, &drifted), Decision::Deny { fault: None, .. }));
}

#[test]
fn hidden_text_blocks_definitions_and_strips_results_se_01() {
    let hidden = policy("hidden-text");
    let document = Document::new("{\"description\":\"adds\u{200b} numbers\"}");
    let tool = with(|facts| facts.definition = Some(document.clone()));
    assert!(matches!(hidden.check(Hook::List, &tool), Decision::Deny { fault: None, .. }));
    let result = with(|facts| facts.document = Some(document));
    assert_eq!(hidden.check(Hook::Result, &result), Decision::Redact(Redaction::HiddenText));
    assert_eq!(hidden.check(Hook::Result, &facts()), Decision::Abstain);
}

/// A policy that asks only whether a document hides text is asked once about all that hide none (SE-01).
#[test]
fn se_01_a_result_that_hides_text_never_gets_the_decision_about_one_that_does_not() {
    let hidden = policy("hidden-text");
    let judged =
        |text: &str| hidden.check(Hook::Result, &with(|facts| facts.document = Some(Document::new(text))));
    for text in ["{}", "{\"a\":\"plain\"}", "{\"content\":[{\"text\":\"other\"}]}"] {
        assert_eq!(judged(text), Decision::Abstain);
        assert_eq!(hidden.remembered_decisions(), 1);
    }
    for text in ["{\"a\":\"b\u{200b}\"}", "{\"a\u{200b}\":1}", "[\"\u{202e}\"]"] {
        assert_eq!(judged(text), Decision::Redact(Redaction::HiddenText));
        assert_eq!(hidden.remembered_decisions(), 1, "what hides something is judged each time");
    }
    assert_eq!(judged("{}"), Decision::Abstain);
}

#[test]
fn filesystem_keeps_paths_within_its_roots() {
    let adapter = filesystem(r#"{"roots":["/data"]}"#).unwrap();
    let call = |arguments: &str| {
        let arguments = Document::new(arguments);
        adapter.arguments(&with(|facts| facts.document = Some(arguments)))
    };
    assert_eq!(call(r#"{"path":"/data/a","text":"../x"}"#), Ok(Change::Unchanged));
    let normal = Edit { pointer: "/path".into(), value: Some("\"/data/b\"".into()) };
    assert_eq!(call(r#"{"path":"a/../b"}"#), Ok(Change::Patch(vec![normal])));
    assert!(
        matches!(call(r#"{"path":"/data/../etc/passwd"}"#), Ok(Change::Fail(why)) if why.contains("/data"))
    );
    let error = filesystem("{}").unwrap_err();
    assert!(matches!(error.kind, LoadErrorKind::NotConfigured(_)), "{error}");
}

#[test]
fn a_large_result_is_judged_where_it_is_and_in_time() {
    let hidden = policy("hidden-text");
    let text =
        format!("{{\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}", "é and more ".repeat(900_000));
    let result = with(|facts| facts.document = Some(Document::new(text)));
    let started = Instant::now();
    assert_eq!(hidden.check(Hook::Result, &result), Decision::Abstain);
    println!("{:?} for a result of {} bytes", started.elapsed(), result.document.as_ref().unwrap().len());
}

/// Prints and never fails on a time.
#[test]
fn a_full_batch_of_definitions_is_judged_in_time() {
    let definition = Document::new(format!(
        "{{\"name\":\"t\",\"description\":\"{}\"}}",
        "words and more words ".repeat(200)
    ));
    let many: Vec<_> = (0..256).map(|_| with(|facts| facts.definition = Some(definition.clone()))).collect();
    for name in ["ask", "capabilities", "trust", "hidden-text"] {
        let policy = policy(name);
        policy.check_list(&many);
        let started = Instant::now();
        let decisions = policy.check_list(&many);
        println!("{name}: {:?} for 256 tools", started.elapsed());
        assert!(
            decisions.iter().all(|said| !matches!(said, Decision::Deny { fault: Some(_), .. })),
            "{decisions:?}"
        );
        let started = Instant::now();
        for _ in 0..1_000 {
            policy.check(Hook::Call, &facts());
        }
        println!("{name}: {:?} for one call", started.elapsed() / 1_000);
    }
}
