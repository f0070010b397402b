use std::collections::BTreeMap;

use toolgate_signing::Digest;

use super::{AddedRule, Installed, PluginsLayer, UpdateMode};
use crate::error::ConfigError;
use crate::expand::Variables;
use crate::model::Plugins;

fn installed(name: &str) -> Installed {
    Installed {
        name: name.to_owned(),
        version: semver::Version::new(1, 2, 3),
        sequence: 4,
        kind: "policy".to_owned(),
        component: Digest::of(b"component"),
        release: Digest::of(b"release"),
        index: None,
        log: None,
        source: "/somewhere".to_owned(),
        decisions: vec!["deny".to_owned()],
        update: UpdateMode::Ask,
        installed: "2026-11-29T12:00:00Z".to_owned(),
        settings: r#"{"a":1}"#.to_owned(),
        grants: "{}".to_owned(),
    }
}

fn rule(plugins: &str) -> AddedRule {
    let key = "ed25519:k37zuwX709oXY1pEqeeNG6r4Um8Nl0n+HvdY0lLNcTA=".parse().unwrap();
    AddedRule {
        plugins: plugins.to_owned(),
        keys: vec![key],
        minimum: 1,
        all_of: Vec::new(),
        added: "2026-11-29T12:00:00Z".to_owned(),
    }
}

/// No variable has a value.
fn nothing() -> Variables<'static> {
    Variables { process: &|_| None, secrets: BTreeMap::default(), dotenv: BTreeMap::default() }
}

#[test]
fn what_is_written_is_read_back_and_becomes_entries_after_those_of_the_operator() {
    let dir = tempfile::tempdir().unwrap();
    let layer = PluginsLayer::of(dir.path());
    let lock = layer.lock().unwrap();
    layer.write_installed(&lock, &installed("acme/guard")).unwrap();
    layer.write_rules(&lock, &[rule("acme/*")]).unwrap();
    assert_eq!(layer.installed().unwrap(), [installed("acme/guard")]);
    let mut plugins = Plugins::default();
    layer.add_to(&mut plugins, &mut Vec::new(), &nothing()).unwrap();
    assert_eq!(plugins.load[0].dir, Some(layer.files_of(&Digest::of(b"release"))));
    assert!(plugins.trust[0].added);
    assert!(layer.remove_installed(&lock, "acme/guard").unwrap());
    assert!(!layer.remove_installed(&lock, "acme/guard").unwrap());
}

#[test]
fn no_rule_gives_away_the_names_of_toolgate() {
    let dir = tempfile::tempdir().unwrap();
    let layer = PluginsLayer::of(dir.path());
    let lock = layer.lock().unwrap();
    let refused = layer.write_rules(&lock, &[rule("toolgate/*")]);
    assert!(matches!(refused, Err(ConfigError::Refused(_))));
}

#[test]
fn a_file_that_cannot_be_used_is_an_error_and_not_a_policy_less() {
    let dir = tempfile::tempdir().unwrap();
    let layer = PluginsLayer::of(dir.path());
    let lock = layer.lock().unwrap();
    layer.write_installed(&lock, &installed("acme/guard")).unwrap();
    let file = layer.directory().join("acme.guard.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    for damaged in [
        "",
        "format = 1",
        &text.replace("format = 1", "format = 2"),
        &text.replace("acme/guard", "acme/other"),
    ] {
        std::fs::write(&file, damaged).unwrap();
        assert!(layer.add_to(&mut Plugins::default(), &mut Vec::new(), &nothing()).is_err(), "{damaged}");
    }
}
