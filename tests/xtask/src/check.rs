//! `cargo xtask check`: what the compiler cannot see and a reviewer should not have to.
//!
//! Each check is a function from the tree to findings; all of them run, so that one round shows
//! everything. A finding says where and what.

use toolgate_kit::TARGET;

use crate::Outcome;
use crate::project::Project;

mod contract;
mod dependencies;
mod floors;
mod gates;
mod licences;
mod releases;
mod requirements;
mod tidy;

/// One thing that is wrong.
#[derive(Debug, PartialEq)]
pub(crate) struct Finding {
    /// A file, a crate or a directory.
    pub(crate) place: String,
    /// What is wrong there, and where it is not plain, what to do.
    pub(crate) what: String,
}

impl Finding {
    /// A finding at a place.
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }
}

/// The platform whose graph of the host is checked.
const HOST_PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Runs every check and prints what each found; true when nothing was.
pub(crate) fn run(project: &Project, for_release: bool) -> Outcome<bool> {
    let host = project.metadata(".", HOST_PLATFORM)?;
    let guests = project.metadata("plugins", TARGET)?;
    let checks = [
        ("floors of the house", floors::check(&host)),
        ("bans and sources", dependencies::check(&host, &guests)),
        ("licences", licences::check(&host, &guests)),
        ("the plugin contract", contract::check(project)?),
        ("signed first-party blobs", releases::check(project, &guests, for_release)?),
        ("requirements and their tests", requirements::check(project)?),
        ("gates and their call sites", gates::check(project)?),
        ("tidiness", tidy::check(project)?),
    ];
    let mut clean = true;
    for (name, findings) in checks {
        clean &= findings.is_empty();
        println!("{}: {name}", if findings.is_empty() { "ok  " } else { "FAIL" });
        for finding in findings {
            println!("      {}: {}", finding.place, finding.what);
        }
    }
    Ok(clean)
}
