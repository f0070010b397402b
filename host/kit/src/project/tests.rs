//! What a new project holds.

use super::{Project, ProjectError};
use crate::names::{Kind, Name};

fn project(kind: Kind) -> Project {
    Project::new(kind, &Name::parse("acme/github-guard").unwrap(), "0.1.0")
}

fn text(project: &Project, name: &str) -> String {
    project.files().find(|(have, _)| *have == name).unwrap_or_else(|| panic!("no {name}")).1.to_owned()
}

#[test]
fn a_project_of_each_kind_has_the_contract_the_sdk_and_an_example_with_documents() {
    for kind in [Kind::Policy, Kind::Installer, Kind::Adapter] {
        let project = project(kind);
        for name in ["wit/types.wit", "wit/worlds.wit", "sdk/Cargo.toml", "sdk/src/lib.rs", "Cargo.lock"] {
            assert!(!text(&project, name).is_empty(), "{kind:?}: {name}");
        }
        let library = text(&project, "src/lib.rs");
        assert!(library.contains("GithubGuard"), "{kind:?}");
        let documents: Vec<&str> =
            project.files().map(|(name, _)| name).filter(|name| name.starts_with("documents/")).collect();
        assert!(documents.len() >= 6, "{documents:?}");
        for (name, text) in project.files() {
            let ours = !name.starts_with("sdk/") && !name.starts_with("wit/");
            assert!(!(ours && text.contains("{{")), "{kind:?}: {name} has a placeholder left");
        }
    }
}

#[test]
fn the_sdk_of_a_project_finds_the_contract_of_the_project() {
    let project = project(Kind::Policy);
    let bindings = text(&project, "sdk/src/bindings.rs");
    assert!(bindings.contains("path: \"../wit\""), "{bindings}");
    assert!(!bindings.contains("../../wit"), "{bindings}");
}

#[test]
fn a_project_takes_versions_profile_and_lints_from_our_own_plugins_and_no_crate_it_does_not_need() {
    let manifest = text(&project(Kind::Adapter), "Cargo.toml");
    for part in [
        "[workspace]",
        "[package]",
        "[workspace.package]",
        "toolgate-sdk = { path = \"sdk\" }",
        "wit-bindgen = { version = \"=",
        "[profile.release]",
        "panic = \"abort\"",
        "[workspace.lints.clippy]",
    ] {
        assert!(manifest.contains(part), "{part} is missing in:\n{manifest}");
    }
    let tables = manifest.split("[workspace.dependencies]").nth(1).unwrap();
    let dependencies =
        tables.split("\n[").next().unwrap().lines().filter(|line| line.contains(" = ")).count();
    assert_eq!(dependencies, 4, "{tables}");
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mine.txt"), "mine").unwrap();
    let error = project(Kind::Policy).write(directory.path()).unwrap_err();
    assert!(matches!(error, ProjectError::NotEmpty(_)), "{error}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let new = directory.path().join("deep/new");
    project(Kind::Policy).write(&new).unwrap();
    assert!(new.join("src/lib.rs").is_file() && new.join("sdk/src/report.rs").is_file());
}
