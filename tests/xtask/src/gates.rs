//! `cargo xtask gates`: removes the call site of each gate in turn and shows that its test goes red.
//!
//! The tree is copied, so that the one being worked on is never touched. A gate whose test stays
//! green without it is a check that nobody calls, the classic failure of this field. The gates stand in
//! `tests/gates.toml`; `cargo xtask check` sees to it that what stands there is in the source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::Outcome;
use crate::project::Project;

/// The file of the gates.
pub(crate) const GATES: &str = "tests/gates.toml";

/// One gate: where it is called, what is left when it is not, and the test that must notice.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gate {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) call: String,
    pub(crate) without: String,
    /// A test of the binary, by its name or the beginning of its name.
    pub(crate) test: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gates {
    gate: Vec<Gate>,
}

/// Every gate of the project.
pub(crate) fn load(project: &Project) -> Outcome<Vec<Gate>> {
    let gates: Gates = toml::from_str(&fs::read_to_string(project.path(GATES))?)
        .map_err(|error| format!("{GATES}: {error}"))?;
    Ok(gates.gate)
}

/// Removes each gate in turn; true if every test went red, and was green before.
pub(crate) fn run(project: &Project, only: Option<&str>) -> Outcome<bool> {
    let copy = project.path("target/gates");
    copy_tree(&project.path("."), &copy)?;
    let gates = load(project)?;
    let chosen: Vec<&Gate> = gates.iter().filter(|gate| only.is_none_or(|name| name == gate.name)).collect();
    if chosen.is_empty() {
        return Err(format!("there is no gate {}", only.unwrap_or_default()).into());
    }
    build(project, &copy)?;
    if !passes(project, &copy, &chosen.iter().map(|gate| gate.test.as_str()).collect::<Vec<_>>())? {
        return Err("a gate's test fails with every gate in place, so nothing can be proven".into());
    }
    let mut proven = true;
    for gate in chosen {
        let path = copy.join(&gate.file);
        let whole = fs::read_to_string(&path)?;
        if whole.matches(&gate.call).count() != 1 {
            return Err(format!(
                "{}: the call site of gate {} is not there exactly once",
                gate.file, gate.name
            )
            .into());
        }
        fs::write(&path, whole.replace(&gate.call, &gate.without))?;
        let built = build(project, &copy);
        let red = built.is_ok() && !passes(project, &copy, &[&gate.test])?;
        fs::write(&path, &whole)?;
        built?;
        let verdict = if red {
            "proven: the test goes red without it"
        } else {
            "NOT PROVEN: the test stays green without it"
        };
        println!("{:<10} {:<26} {verdict}", gate.name, gate.test);
        proven &= red;
    }
    Ok(proven)
}

/// Builds the binary, the fixture and the tests from the copy. What does not compile is no proof.
fn build(project: &Project, copy: &Path) -> Outcome<()> {
    for arguments in [
        ["build", "--release", "--quiet", "--workspace", "--bins"].as_slice(),
        &["test", "--release", "--quiet", "--workspace", "--test", "e2e", "--no-run"],
    ] {
        if !cargo(project, copy).args(arguments).status()?.success() {
            return Err(format!("the copy does not compile: cargo {}", arguments.join(" ")).into());
        }
    }
    Ok(())
}

/// Whether these tests pass on the binary of the copy.
fn passes(project: &Project, copy: &Path, tests: &[&str]) -> Outcome<bool> {
    let fixed = ["test", "--release", "--quiet", "--workspace", "--test", "e2e", "--"];
    Ok(cargo(project, copy).args(fixed).args(tests).output()?.status.success())
}

fn cargo(project: &Project, copy: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let shared = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project.path("target"), PathBuf::from);
    command.current_dir(copy).env("CARGO_TARGET_DIR", shared);
    command
}

/// Copies what git tracks, as it is in the working tree.
fn copy_tree(from: &Path, to: &Path) -> Outcome<()> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(from).output()?;
    let names = String::from_utf8(listed.stdout)?;
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        let target = to.join(name);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let source = from.join(name);
        let same = match (fs::read(&source), fs::read(&target)) {
            (Ok(new), Ok(old)) => new == old,
            _ => false,
        };
        if !same && source.exists() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
