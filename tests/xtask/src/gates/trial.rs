//! Runs of single tests, each with every gate or with one of them off.
//!
//! Bounds: a test has [`LIMIT`], all of them together before that have [`LIMIT_OF_ALL`]. Every run has a
//! temporary directory of its own, and every process that still knows it when the run is over is killed:
//! gateways and servers outlive the client that started them, and leave its process group too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use super::tree::Built;
use super::{Gate, switch};
use crate::Outcome;

/// The longest that one test may take.
const LIMIT: Duration = Duration::from_mins(3);
/// The longest that the tests of all gates may take, with every gate in place.
const LIMIT_OF_ALL: Duration = Duration::from_mins(30);
/// How often is looked whether a run is over.
const LOOK: Duration = Duration::from_millis(20);

/// How the run of a test ended.
pub(super) enum Ended {
    /// It passed.
    Green,
    /// It failed, with these words.
    Red(String),
    /// Not within its time.
    Never,
    /// It neither passed nor failed; this was printed.
    Broken(String),
}

/// The tests of the binary.
pub(super) struct Trials {
    built: Built,
    /// The full names of all tests.
    names: Vec<String>,
}

impl Trials {
    /// The tests that were built.
    pub(super) fn of(built: Built) -> Outcome<Self> {
        let listed = Command::new(&built.program).args(["--list", "--format=terse"]).output()?;
        let text = String::from_utf8(listed.stdout)?;
        let names = text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect();
        Ok(Self { built, names })
    }

    /// The one test of a gate.
    pub(super) fn test_of(&self, gate: &Gate) -> Outcome<&str> {
        let mut found = self.names.iter().filter(|name| name.contains(&gate.test));
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(format!("gate `{}`: there is no test `{}`", gate.name, gate.test).into()),
            (Some(_), Some(_)) => {
                Err(format!("gate `{}`: several tests have `{}` in their name", gate.name, gate.test).into())
            }
        }
    }

    /// How each of these tests ends with every gate in place. One that fails among the others, where the
    /// machine is busiest, may try once more by itself.
    pub(super) fn with_every_gate(&self, tests: &[&str]) -> Outcome<BTreeMap<String, Ended>> {
        let tests: BTreeSet<&str> = tests.iter().copied().collect();
        let all: Vec<&str> = tests.iter().copied().collect();
        let (_, printed) = self.start(&all, None, LIMIT_OF_ALL)?;
        let mut ended = BTreeMap::new();
        for test in tests {
            let passed = printed.contains(&format!("test {test} ... ok"));
            ended.insert(test.to_owned(), if passed { Ended::Green } else { self.run(test, None)? });
        }
        Ok(ended)
    }

    /// Runs one test, with this gate off.
    pub(super) fn run(&self, test: &str, without: Option<&str>) -> Outcome<Ended> {
        let (status, printed) = self.start(&[test], without, LIMIT)?;
        Ok(match status {
            None => Ended::Never,
            Some(status) if status.success() && printed.contains(&format!("test {test} ... ok")) => {
                Ended::Green
            }
            Some(_) if printed.contains(&format!("test {test} ... FAILED")) => Ended::Red(words(&printed)),
            Some(_) => Ended::Broken(printed),
        })
    }

    /// Runs tests within a time; gives what they printed, and no status where it has passed.
    fn start(
        &self,
        tests: &[&str],
        without: Option<&str>,
        limit: Duration,
    ) -> Outcome<(Option<ExitStatus>, String)> {
        let place = tempfile::Builder::new().prefix("toolgate-gates-").tempdir()?;
        let output = place.path().join("output");
        let file = File::create(&output)?;
        let mut command = Command::new(&self.built.program);
        command
            .arg("--exact")
            .args(tests)
            .current_dir(&self.built.directory)
            .env("TMPDIR", place.path())
            .env("RUST_BACKTRACE", "0")
            .env_remove(switch::VARIABLE)
            .envs(without.map(|gate| (switch::VARIABLE, gate)))
            .stdin(std::process::Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        let mut child = command.spawn()?;
        let until = Instant::now() + limit;
        let status = loop {
            match child.try_wait()? {
                None if Instant::now() < until => std::thread::sleep(LOOK),
                ended => break ended,
            }
        };
        if status.is_none() {
            child.kill()?;
            child.wait()?;
        }
        end_all(place.path());
        Ok((status, String::from_utf8_lossy(&fs::read(output)?).into_owned()))
    }
}

/// What a failed test said, from its first panic on.
fn words(printed: &str) -> String {
    let said = printed.split_once(" panicked at ").map_or(printed, |(_, said)| said);
    let said = said.split("\nnote: run with").next().unwrap_or_default();
    said.lines().take(30).collect::<Vec<_>>().join("\n")
}

/// Kills every process that has a path below a directory in its arguments, environment or as its own.
fn end_all(directory: &Path) {
    let is_of_run = |process: &Path| {
        let has = |bytes: &[u8]| {
            let wanted = directory.as_os_str().as_bytes();
            bytes.windows(wanted.len()).any(|part| part == wanted)
        };
        ["cmdline", "environ"].iter().any(|name| fs::read(process.join(name)).is_ok_and(|it| has(&it)))
            || fs::read_link(process.join("cwd")).is_ok_and(|it| it.starts_with(directory))
    };
    // One that is started while the others are looked at is found the next time.
    for _ in 0..5 {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        let left: Vec<String> = processes
            .filter(|process| is_of_run(process))
            .filter_map(|process| Some(process.file_name()?.to_str()?.to_owned()))
            .filter(|id| id.bytes().all(|digit| digit.is_ascii_digit()))
            .collect();
        if left.is_empty() {
            return;
        }
        let _ = Command::new("kill").arg("-KILL").args(&left).output();
    }
}

#[cfg(test)]
mod tests;
