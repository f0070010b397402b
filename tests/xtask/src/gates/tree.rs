//! A copy of the tree in which every gate has its switch, and its build.
//!
//! The copy and its binaries are below `target/gates`: nothing that was built for use, or for the tests of
//! the tree itself, is ever replaced by a binary whose gates can be switched off, and its packages have a
//! version of their own, which the binary tells. Dependencies are shared with the tree (cargo's build
//! directory), because compiling them again would take most of the time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{GATES, Gate, Profile, by_file, switch};
use crate::Outcome;
use crate::project::{self, Project};

/// The manifest of the workspace.
const WORKSPACE: &str = "Cargo.toml";
/// The package of the binary, in whose directory cargo runs its tests.
const PACKAGE: &str = "host/cli";
/// The test of the binary.
const TEST: &str = "e2e";
/// Has cargo say which programs it built.
const JSON: &str = "--message-format=json-render-diagnostics";

/// The copy.
pub(super) struct Tree {
    root: PathBuf,
    /// Where its binaries go.
    built: PathBuf,
    /// What is compiled once for the tree and the copy.
    shared: PathBuf,
}

/// The built tests.
pub(super) struct Built {
    /// The program that has them.
    pub(super) program: PathBuf,
    /// Where it is run.
    pub(super) directory: PathBuf,
}

impl Tree {
    /// Copies what git tracks or would track, with a switch for each gate. What is the same already is left
    /// alone, so that a second run compiles only what changed.
    pub(super) fn copy(project: &Project, gates: &[Gate]) -> Outcome<Self> {
        let root = project.path("target/gates/tree");
        let gates = by_file(gates);
        let mut kept = BTreeSet::new();
        for name in project.files(&[""])? {
            write(&project.path(&name), &root.join(&name), || changed(project, &gates, &name))?;
            kept.insert(root.join(&name));
        }
        sweep(&root, &kept)?;
        let shared =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project.path("target"), PathBuf::from);
        Ok(Self { root, built: project.path("target/gates/built"), shared })
    }

    /// Builds the binary, the fixture and the tests.
    pub(super) fn build(&self, profile: Profile) -> Outcome<Built> {
        self.cargo(&["build", "--quiet", "--workspace", "--bins"], profile)?;
        let said = self.cargo(&["test", "--workspace", "--test", TEST, "--no-run", JSON], profile)?;
        let program = said.lines().find_map(program_of);
        let program = program.ok_or("cargo does not say where it built the tests of the binary")?;
        Ok(Built { program, directory: self.root.join(PACKAGE) })
    }

    /// What cargo says on standard output. Its warnings are about code that stands there twice, and nobody
    /// needs them; errors are told.
    fn cargo(&self, arguments: &[&str], profile: Profile) -> Outcome<String> {
        let mut command = Command::new(project::cargo());
        let done = command
            .args(arguments)
            .args((profile == Profile::Release).then_some("--release"))
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.built)
            .env("CARGO_BUILD_BUILD_DIR", &self.shared)
            .output()?;
        if done.status.success() {
            return Ok(String::from_utf8(done.stdout)?);
        }
        let said = String::from_utf8_lossy(&done.stderr);
        let errors =
            said.split_inclusive("\n\n").filter(|part| !part.starts_with("warning")).collect::<String>();
        Err(format!(
            "the tree with its switches does not compile; what {GATES} leaves without a gate has to:\n{errors}"
        )
        .into())
    }
}

/// What a file of the copy has in place of what it has in the tree; none where it is the same.
fn changed(project: &Project, gates: &BTreeMap<&str, Vec<&Gate>>, name: &str) -> Outcome<Option<Vec<u8>>> {
    let source = || fs::read_to_string(project.path(name));
    let text = match gates.get(name) {
        Some(gates) => switch::switched(&source()?, gates).map_err(|error| format!("{name}: {error}"))?,
        None if name == WORKSPACE => of_another_version(&source()?)?,
        None => return Ok(None),
    };
    Ok(Some(text.into_bytes()))
}

/// The workspace with another version of its packages. Cargo tells packages apart by name, version and their
/// place in the workspace: under one version, the packages of the tree and of the copy would be the same.
fn of_another_version(workspace: &str) -> Outcome<String> {
    let mut all: toml::Table = toml::from_str(workspace)?;
    let package = all.get_mut("workspace").and_then(|workspace| workspace.get_mut("package"));
    let version = package.and_then(|package| package.get_mut("version"));
    let Some(toml::Value::String(version)) = version else {
        return Err(format!("{WORKSPACE} names no version of its packages").into());
    };
    version.push_str("+switched");
    Ok(toml::to_string(&all)?)
}

/// Writes a file of the copy where it is not what it has to be, with the mode of the original.
fn write(from: &Path, to: &Path, changed: impl FnOnce() -> Outcome<Option<Vec<u8>>>) -> Outcome<()> {
    let bytes = match changed()? {
        Some(bytes) => bytes,
        None => fs::read(from)?,
    };
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(to, bytes)?;
    Ok(fs::set_permissions(to, fs::metadata(from)?.permissions())?)
}

/// Removes files that the tree has no more: a test or a binary among them would still be built.
fn sweep(directory: &Path, kept: &BTreeSet<PathBuf>) -> Outcome<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sweep(&entry.path(), kept)?;
        } else if !kept.contains(&entry.path()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The program of the tests, in a message of cargo about it.
fn program_of(line: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    if message.pointer("/target/name")?.as_str()? != TEST {
        return None;
    }
    message.get("executable")?.as_str().map(PathBuf::from)
}
