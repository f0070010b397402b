//! The lines of a plugin in the index: releases, and what became of them. Lines are only ever added.
//!
//! Each is canonical JSON and is a leaf of the log at the place that it names itself, so that a line
//! that is shown to one client and not to another shows up as a fork.

use std::collections::BTreeMap;

use semver::Version;
use serde::{Deserialize, Serialize};
use toolgate_signing::{Digest, Kind};

use crate::document::{canonical, is_words, read_canonical};
use crate::error::RegistryError;
use crate::merkle::{self, Hash};
use crate::names::lines;
use crate::time::Time;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase", deny_unknown_fields)]
pub enum Line {
    /// A release was published.
    Release(ReleaseLine),
    /// A release is hidden from resolution; what is locked still loads.
    Yank(YankLine),
    /// A release is shown again.
    Unyank(YankLine),
}

/// A release was published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseLine {
    /// The format of the line: 1.
    pub v: u32,
    /// The plugin.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Goes up with every release of the plugin.
    pub sequence: u64,
    /// Policy, installer or adapter.
    pub kind: Kind,
    /// The component.
    pub component: Digest,
    /// Its size in bytes.
    pub component_size: u64,
    /// The envelope of the release.
    pub release: Digest,
    /// Its size in bytes.
    pub release_size: u64,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// The oldest host that can load it.
    pub min_host: Version,
    /// When it came into the index.
    pub published: Time,
    /// The place of this line in the log.
    pub log: u64,
}

/// A release was yanked, or shown again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct YankLine {
    /// The format of the line: 1.
    pub v: u32,
    /// The plugin.
    pub name: String,
    /// The version.
    pub version: Version,
    /// The sequence of the release.
    pub sequence: u64,
    /// Why, for people.
    pub reason: String,
    /// When.
    pub at: Time,
    /// The place of this line in the log.
    pub log: u64,
}

/// A release as the lines of its plugin leave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its line.
    pub line: ReleaseLine,
    /// Why it was yanked, if it is.
    pub yanked: Option<String>,
}

impl Line {
    /// The plugin that it is about.
    pub fn name(&self) -> &str {
        match self {
            Self::Release(line) => &line.name,
            Self::Yank(line) | Self::Unyank(line) => &line.name,
        }
    }

    /// Its place in the log.
    pub fn log(&self) -> u64 {
        match self {
            Self::Release(line) => line.log,
            Self::Yank(line) | Self::Unyank(line) => line.log,
        }
    }

    /// The line as it stands in the file, without its line feed.
    pub(crate) fn to_text(&self) -> String {
        canonical(self)
    }

    /// The hash of the line in the log.
    pub(crate) fn leaf(&self) -> Hash {
        merkle::leaf(self.to_text().as_bytes())
    }
}

/// Reads the lines of a plugin, checks that they are in order, and that each is about it.
pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<Vec<Line>, RegistryError> {
    let what = format!("index of {name}");
    let refused = |detail: &str| RegistryError::malformed(what.clone(), detail);
    let mut read: Vec<Line> = Vec::new();
    let mut releases: BTreeMap<Version, u64> = BTreeMap::new();
    for text in lines(bytes).ok_or_else(|| refused("it does not end with a line feed"))? {
        let line: Line = read_canonical(&what, text)?;
        if line.name() != name {
            return Err(refused("it has a line about another plugin"));
        }
        if read.last().is_some_and(|last| last.log() >= line.log()) {
            return Err(refused("its lines are not in the order of the log"));
        }
        match &line {
            Line::Release(release) => {
                if release.v != 1 || releases.values().any(|sequence| *sequence >= release.sequence) {
                    return Err(refused("the sequence of a release does not go up, or its format is not 1"));
                }
                // Build metadata does not count in the order of versions, and one version is one release.
                if releases.keys().any(|version| version.cmp_precedence(&release.version).is_eq()) {
                    return Err(refused("a version comes twice"));
                }
                releases.insert(release.version.clone(), release.sequence);
            }
            Line::Yank(yank) | Line::Unyank(yank) => {
                if yank.v != 1
                    || releases.get(&yank.version) != Some(&yank.sequence)
                    || !is_words(&yank.reason)
                {
                    return Err(refused("it yanks what is not there, or without a reason of one line"));
                }
            }
        }
        read.push(line);
    }
    Ok(read)
}

/// The releases of a plugin in the order in which they were published.
pub(crate) fn listed(lines: &[Line]) -> Vec<Listed> {
    let mut listed: Vec<Listed> = Vec::new();
    for line in lines {
        match line {
            Line::Release(line) => listed.push(Listed { line: line.clone(), yanked: None }),
            Line::Yank(yank) | Line::Unyank(yank) => {
                let reason = matches!(line, Line::Yank(_)).then(|| yank.reason.clone());
                let about = listed.iter_mut().find(|release| release.line.sequence == yank.sequence);
                if let Some(release) = about {
                    release.yanked = reason;
                }
            }
        }
    }
    listed
}
