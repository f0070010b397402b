//! `cargo xtask gates`: shows for each gate that its end-to-end test goes red without it.
//!
//! A gate whose test stays green without it is a check that nobody calls, the classic failure of this field.
//! The gates stand in `tests/gates.toml`; `cargo xtask check` sees to it that what stands there is in the
//! source and can be switched.
//!
//! The tree is copied, so that the one being worked on is never touched, and in the copy each gate gets a
//! switch (`switch`). One build serves them all: each test runs once with every gate, and once for each of
//! its gates with that one off. A test has a time limit, and what it started ends with it (`trial`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::Outcome;
use crate::project::Project;

pub(crate) mod switch;
mod tree;
mod trial;

use tree::Tree;
use trial::{Ended, Trials};

/// The file of the gates.
pub(crate) const GATES: &str = "tests/gates.toml";

/// What each run found, with the words of each failed test.
const REPORT: &str = "target/gates/report.txt";

/// One gate: where it is called, what is left when it is not, and the test that must notice.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gate {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) call: String,
    pub(crate) without: String,
    /// A test of the binary, by its name or a part of it that no other test has.
    pub(crate) test: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gates {
    gate: Vec<Gate>,
}

/// The profile of the build.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Release,
    Dev,
}

/// Every gate of the project.
pub(crate) fn load(project: &Project) -> Outcome<Vec<Gate>> {
    let gates: Gates = toml::from_str(&fs::read_to_string(project.path(GATES))?)
        .map_err(|error| format!("{GATES}: {error}"))?;
    Ok(gates.gate)
}

/// The gates of each file, in the order of the files.
pub(crate) fn by_file(gates: &[Gate]) -> BTreeMap<&str, Vec<&Gate>> {
    let mut files: BTreeMap<&str, Vec<&Gate>> = BTreeMap::new();
    for gate in gates {
        files.entry(&gate.file).or_default().push(gate);
    }
    files
}

/// What was found out about a gate.
enum Verdict {
    /// The test goes red without it.
    Proven,
    /// The test stays green without it, or does not end.
    NotProven(&'static str),
    /// The test is not green with every gate in place, so that nothing can be shown.
    RedBefore,
}

/// Tries the gates of these names, or all; true if each one's test was green and went red without it.
pub(crate) fn run(project: &Project, profile: Profile, names: &[&str]) -> Outcome<bool> {
    let begun = Instant::now();
    let gates = load(project)?;
    if let Some(unknown) = names.iter().find(|name| gates.iter().all(|gate| gate.name != **name)) {
        return Err(format!("there is no gate `{unknown}` in {GATES}").into());
    }
    let chosen: Vec<&Gate> =
        gates.iter().filter(|gate| names.is_empty() || names.contains(&gate.name.as_str())).collect();
    let tree = Tree::copy(project, &gates)?;
    let trials = Trials::of(tree.build(profile)?)?;
    let tests = chosen.iter().map(|gate| trials.test_of(gate)).collect::<Outcome<Vec<&str>>>()?;
    println!("built in {} s; the tests with every gate in place", begun.elapsed().as_secs());
    let before = trials.with_every_gate(&tests)?;
    let mut report = Report::default();
    for (gate, test) in chosen.into_iter().zip(tests) {
        let tried = Instant::now();
        let (verdict, words) = match before.get(test) {
            Some(Ended::Green) => verdict(trials.run(test, Some(&gate.name))?),
            Some(Ended::Red(words) | Ended::Broken(words)) => (Verdict::RedBefore, words.clone()),
            Some(Ended::Never) | None => (Verdict::RedBefore, "it does not end".to_owned()),
        };
        report.add(gate, test, &verdict, tried.elapsed(), &words);
    }
    report.end(project, begun.elapsed())
}

fn verdict(ended: Ended) -> (Verdict, String) {
    match ended {
        Ended::Red(words) => (Verdict::Proven, words),
        Ended::Green => (Verdict::NotProven("the test stays green without it"), String::new()),
        Ended::Never => (Verdict::NotProven("the test does not end without it"), String::new()),
        Ended::Broken(words) => (Verdict::NotProven("the test could not be run"), words),
    }
}

/// What is printed, and written down in more words.
#[derive(Default)]
struct Report {
    proven: usize,
    not_proven: usize,
    red_before: usize,
    text: String,
}

impl Report {
    fn add(&mut self, gate: &Gate, test: &str, verdict: &Verdict, took: Duration, words: &str) {
        let (said, why) = match verdict {
            Verdict::Proven => {
                self.proven += 1;
                ("proven", "")
            }
            Verdict::NotProven(why) => {
                self.not_proven += 1;
                ("NOT PROVEN", *why)
            }
            Verdict::RedBefore => {
                self.red_before += 1;
                ("RED BEFORE", "the test fails with every gate in place")
            }
        };
        let line = format!("{said:<10} {:>5.1} s  {:<26} {test} {why}", took.as_secs_f64(), gate.name);
        println!("{}", line.trim_end());
        let first: String = words.lines().take(4).collect::<Vec<_>>().join(" ").chars().take(200).collect();
        if !first.is_empty() {
            println!("{:>20} {first}", "");
        }
        // A string takes whatever is written to it.
        let _ = writeln!(self.text, "{}\n{words}", line.trim_end());
    }

    fn end(self, project: &Project, took: Duration) -> Outcome<bool> {
        let Self { proven, not_proven, red_before, text } = self;
        let counts = format!(
            "{proven} proven, {not_proven} not proven, {red_before} with a test that was red before, in {} s",
            took.as_secs()
        );
        println!("\n{counts}; the words of each failed test are in {REPORT}");
        fs::write(project.path(REPORT), format!("{text}{counts}\n"))?;
        Ok(not_proven == 0 && red_before == 0)
    }
}
