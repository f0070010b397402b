//! Newer releases that were not taken by themselves and wait for a person: one small file for each plugin, so
//! that `plugin list` and `doctor` show what the log said once.
//!
//! Contract: a note is about one installed release. It goes when that release is replaced or removed, or when
//! the index has nothing to say any more; a note about a release that is not installed is not shown. It decides
//! nothing: what an update may do is worked out anew by `plugin update`, from the signed statement.
//!
//! Bounds: 64 KiB a file. A file that cannot be read is one note less, with a line in the log.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolgate_base::files::{create_private_dir, read_bounded, write_private};
use toolgate_base::{Clock as _, SystemClock, clock};
use toolgate_config::Config;
use toolgate_config::plugins_layer::{Installed, PluginsLayer, STORE};
use toolgate_signing::Digest;

use super::Left;

/// Where the notes are, below the directory of installed plugins.
const DIRECTORY: &str = "waiting";
const FORMAT: u32 = 1;
const MAX_BYTES: u64 = 64 * 1024;

/// A newer release of an installed plugin that nobody took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingUpdate {
    format: u32,
    /// The plugin.
    pub plugin: String,
    /// The version that is installed.
    pub version: String,
    /// The release that is installed.
    pub release: Digest,
    /// The index that has the newer one.
    pub index: String,
    /// The version of the newer one, where it could be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<String>,
    /// What it may do that the installed one may not, in plain words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wider: Vec<String>,
    /// Why it is not taken, where it may do no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was first seen, as `2026-11-29T12:00:00Z`.
    pub since: String,
}

impl WaitingUpdate {
    /// What is there and why it waits, in one line.
    pub fn told(&self) -> String {
        let (plugin, version) = (&self.plugin, &self.version);
        match (&self.offered, &self.reason) {
            (Some(offered), None) => {
                format!("{plugin} {offered} is there and may do what {version} may not, so it waits for you")
            }
            (_, Some(reason)) => format!("no update of {plugin} {version} is taken: {reason}"),
            (None, None) => format!("an update of {plugin} {version} waits"),
        }
    }

    /// The command that looks at it with a person.
    pub fn next(&self) -> String {
        format!("toolgate plugin update {}", self.plugin)
    }
}

/// Every note about a release that is installed, by the name of the plugin. Nothing is fetched.
pub fn waiting(config: &Config) -> Vec<WaitingUpdate> {
    let installed = PluginsLayer::of(&config.data_dir).installed().unwrap_or_default();
    let mut notes: Vec<WaitingUpdate> =
        installed.iter().filter_map(|one| read(&file(&config.data_dir, &one.name), one)).collect();
    notes.sort_by(|left, right| left.plugin.cmp(&right.plugin));
    notes
}

/// Writes down that a release was left, once.
pub(super) fn note(data_dir: &Path, old: &Installed, index: &str, left: &Left) {
    let path = file(data_dir, &old.name);
    let (offered, wider, reason) = match left {
        Left::Wider(offer) => (
            Some(offer.release().release().version.to_string()),
            offer.wider.iter().map(|power| power.words.clone()).collect(),
            None,
        ),
        other => (None, Vec::new(), Some(other.key())),
    };
    let mut note = WaitingUpdate {
        format: FORMAT,
        plugin: old.name.clone(),
        version: old.version.to_string(),
        release: old.release,
        index: index.to_owned(),
        offered,
        wider,
        reason,
        since: clock::utc_text(SystemClock.now_ms()),
    };
    if let Some(before) = read(&path, old) {
        note.since.clone_from(&before.since);
        if note == before {
            return;
        }
        if note.offered != before.offered || note.reason != before.reason {
            note.since = clock::utc_text(SystemClock.now_ms());
        }
    }
    let written = serde_json::to_string_pretty(&note).map_err(std::io::Error::other).and_then(|text| {
        create_private_dir(&data_dir.join(STORE).join(DIRECTORY))?;
        write_private(&path, text.as_bytes())
    });
    if let Err(error) = written {
        tracing::warn!(%error, plugin = %old.name, "that an update waits is not written down");
    }
}

/// Nothing waits for this plugin any more.
pub(super) fn forget(data_dir: &Path, plugin: &str) {
    // What is not there, or cannot be removed, is about a release that is not installed soon enough.
    let _ = std::fs::remove_file(file(data_dir, plugin));
}

/// The note, if it is about the release that is installed.
fn read(path: &Path, installed: &Installed) -> Option<WaitingUpdate> {
    let bytes = read_bounded(path, MAX_BYTES).ok().flatten()?;
    match serde_json::from_slice::<WaitingUpdate>(&bytes) {
        Ok(note) if note.format == FORMAT => {
            (note.plugin == installed.name && note.release == installed.release).then_some(note)
        }
        _ => {
            tracing::warn!(path = %path.display(), "the note about an update that waits cannot be used");
            None
        }
    }
}

fn file(data_dir: &Path, plugin: &str) -> PathBuf {
    // Neither part of a name has a dot or a slash, so no two names share a file.
    data_dir.join(STORE).join(DIRECTORY).join(format!("{}.json", plugin.replace('/', ".")))
}
