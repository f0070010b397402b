//! `cargo xtask test`: everything that has to hold, in the order in which it fails fastest.
//!
//! Contract: it installs nothing outside the project, never uses sudo, and says what is missing. A
//! stage that cannot run is in the table with its reason, and is an error where `CI` is set.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::project::Project;

/// How a stage ended.
enum Ended {
    Passed,
    Failed(String),
    Skipped(String),
}

struct Stage {
    name: &'static str,
    ended: Ended,
    took: Duration,
}

/// Runs every stage, whatever the others say, and prints the table.
pub(crate) fn run(project: &Project) -> bool {
    let in_ci = std::env::var_os("CI").is_some();
    let mut stages = Vec::new();
    let mut stage = |name: &'static str, work: &dyn Fn() -> Outcome<Ended>| {
        println!("\n== {name}");
        let begun = Instant::now();
        let ended = work().unwrap_or_else(|fault| Ended::Failed(fault.to_string()));
        stages.push(Stage { name, ended, took: begun.elapsed() });
    };
    stage("format", &|| cargo(project, &["fmt", "--all", "--check"]));
    stage("lints", &|| {
        // In the profile of the tests: build scripts and macros are compiled once and take disk once.
        cargo(
            project,
            &["clippy", "--release", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
        )
    });
    stage("tests", &|| cargo(project, &["test", "--release", "--workspace", "--quiet", "--no-fail-fast"]));
    stage("plugins, natively", &|| plugins(project));
    stage("project checks", &|| {
        let whole = crate::check::run(project, false)?;
        Ok(if whole { Ended::Passed } else { Ended::Failed("see above".to_owned()) })
    });
    stage("quickstart, twice", &|| quickstart(project));
    stage("official conformance suite", &|| conformance(project));
    stage("real clients and servers", &|| peers(project));
    table(&stages, in_ci)
}

/// The workspace of the guests: what judges is tested natively, without a guest toolchain.
fn plugins(project: &Project) -> Outcome<Ended> {
    for args in [
        ["fmt", "--all", "--check"].as_slice(),
        &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
        &["test", "--workspace", "--quiet", "--no-fail-fast"],
    ] {
        if let failed @ Ended::Failed(_) = cargo_in(project, "plugins", args)? {
            return Ok(failed);
        }
    }
    Ok(Ended::Passed)
}

fn cargo(project: &Project, args: &[&str]) -> Outcome<Ended> {
    cargo_in(project, ".", args)
}

/// A guest never goes into the target directory of the host.
fn cargo_in(project: &Project, workspace: &str, args: &[&str]) -> Outcome<Ended> {
    let mut run = Command::new(crate::project::cargo());
    if workspace != "." {
        run.env_remove("CARGO_TARGET_DIR");
    }
    command(run.args(args).current_dir(project.path(workspace)))
}

fn command(command: &mut Command) -> Outcome<Ended> {
    let status = command.status()?;
    Ok(if status.success() { Ended::Passed } else { Ended::Failed(status.to_string()) })
}

/// The binary that the tests were run on.
fn binary(project: &Project) -> std::path::PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project.path("target"), Into::into);
    target.join("release/toolgate")
}

fn quickstart(project: &Project) -> Outcome<Ended> {
    let dir = tempfile::tempdir()?;
    for _ in 0..2 {
        let mut run = Command::new(binary(project));
        run.arg("quickstart").arg("--dir").arg(dir.path().join("quickstart"));
        if let failed @ Ended::Failed(_) = command(&mut run)? {
            return Ok(failed);
        }
    }
    Ok(Ended::Passed)
}

/// The suite brings its own Node.js; the one of the machine only installs it.
fn conformance(project: &Project) -> Outcome<Ended> {
    python(project, "tests/conformance/run.py", &[NODE, NPM, PYTHON])
}

fn peers(project: &Project) -> Outcome<Ended> {
    python(project, "tests/peers/run.py", &[("git", "git"), NODE, NPM, PYTHON])
}

/// Programs of the machine, and what they are called in a message.
const NODE: (&str, &str) = ("node", "Node 20");
const NPM: (&str, &str) = ("npm", "npm");
const PYTHON: (&str, &str) = ("python3", "Python 3.11");

/// Runs a suite that is written in Python, if the machine has what it needs.
fn python(project: &Project, suite: &str, needs: &[(&str, &str)]) -> Outcome<Ended> {
    for (program, why) in needs {
        if Command::new(program).arg("--version").output().is_err() {
            return Ok(Ended::Skipped(format!("{why} is missing")));
        }
    }
    let mut run = Command::new("python3");
    run.arg(suite).arg("--toolgate").arg(binary(project)).current_dir(project.path("."));
    command(&mut run)
}

/// Prints what happened; true if nothing failed, and in CI if nothing was skipped either.
fn table(stages: &[Stage], in_ci: bool) -> bool {
    println!("\n{:<28} {:>6}  RESULT", "STAGE", "TIME");
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for stage in stages {
        let result = match &stage.ended {
            Ended::Passed => {
                passed += 1;
                "passed".to_owned()
            }
            Ended::Failed(why) => {
                failed += 1;
                format!("FAILED: {why}")
            }
            Ended::Skipped(why) => {
                skipped += 1;
                format!("skipped: {why}")
            }
        };
        println!("{:<28} {:>5}s  {result}", stage.name, stage.took.as_secs());
    }
    if in_ci && skipped > 0 {
        println!("\nin CI a skipped stage is an error");
    }
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    failed == 0 && !(in_ci && skipped > 0)
}
