//! `<data_dir>/sinks/NAME.json`: up to which row a sink has everything, and how it goes.
//!
//! Written in one step after each batch. A file that cannot be read is an error and no first start:
//! beginning again would deliver everything twice, and beginning at the end would lose rows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolgate_base::files;
use toolgate_config::Sink;
use toolgate_store::ExportedRow;

use crate::SinkError;

const FORMAT: u32 = 1;
/// Longest file, bytes.
const MAX: u64 = 64 * 1024;
/// Longest error that is kept, characters.
const MAX_ERROR: usize = 500;

/// How a sink does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// The last exchange went well, or there was none yet.
    #[default]
    Delivering,
    /// The last exchange failed; it is tried again.
    Retrying,
}

/// The state of one sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkState {
    format: u32,
    /// The number of the last row that the receiver took.
    pub cursor: i64,
    /// The hash of that row, so that a log that was begun anew is noticed.
    pub hash: Option<String>,
    /// How many rows it took in all, repetitions included.
    pub delivered: u64,
    /// How it does.
    pub health: Health,
    /// What went wrong last, while it does.
    pub error: Option<String>,
    /// What the receiver said beside taking the rows, such as how many it rejected.
    pub note: Option<String>,
    /// When it went wrong first since it went well, milliseconds since the Unix epoch.
    pub failing_since_ms: Option<u64>,
    /// When it is tried again.
    pub next_attempt_ms: Option<u64>,
    /// When rows were taken last.
    pub delivered_at_ms: Option<u64>,
}

impl Default for SinkState {
    fn default() -> Self {
        Self {
            format: FORMAT,
            cursor: 0,
            hash: None,
            delivered: 0,
            health: Health::Delivering,
            error: None,
            note: None,
            failing_since_ms: None,
            next_attempt_ms: None,
            delivered_at_ms: None,
        }
    }
}

impl SinkState {
    pub(crate) fn delivered_to(&mut self, last: &ExportedRow, rows: u64, now_ms: u64, note: Option<String>) {
        self.cursor = last.id;
        self.hash = Some(last.hash.clone());
        self.delivered = self.delivered.saturating_add(rows);
        self.health = Health::Delivering;
        self.error = None;
        self.failing_since_ms = None;
        self.next_attempt_ms = None;
        self.delivered_at_ms = Some(now_ms);
        if note.is_some() {
            self.note = note;
        }
    }

    /// The log is another one than that of the cursor: everything in it is new to the receiver.
    pub(crate) fn begin_anew(&mut self) {
        self.cursor = 0;
        self.hash = None;
        self.note = Some("the log was begun anew, and its rows are delivered from the first".to_owned());
    }

    pub(crate) fn failed(&mut self, error: &str, now_ms: u64, pause: Option<Duration>) {
        self.health = Health::Retrying;
        self.error = Some(error.chars().take(MAX_ERROR).collect());
        self.failing_since_ms.get_or_insert(now_ms);
        self.next_attempt_ms =
            pause.map(|pause| now_ms.saturating_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)));
    }
}

/// Where cursors stand.
pub(crate) fn directory(data_dir: &Path) -> PathBuf {
    data_dir.join("sinks")
}

/// The state of a sink; a new one where it was never served.
pub fn state(data_dir: &Path, name: &str) -> Result<SinkState, SinkError> {
    let path = directory(data_dir).join(format!("{name}.json"));
    let broken = |reason: String| SinkError::Cursor { path: path.clone(), reason };
    let Some(bytes) = files::read_bounded(&path, MAX).map_err(|error| broken(error.to_string()))? else {
        return Ok(SinkState::default());
    };
    let state: SinkState = serde_json::from_slice(&bytes).map_err(|error| {
        broken(format!("it is not what Toolgate wrote ({error}); remove it to deliver everything again"))
    })?;
    if state.format != FORMAT {
        return Err(broken(format!(
            "it has format {}, and this Toolgate knows format {FORMAT}",
            state.format
        )));
    }
    Ok(state)
}

/// The states of all sinks, in the order of the configuration.
pub fn states(data_dir: &Path, sinks: &[Sink]) -> Result<Vec<SinkState>, SinkError> {
    sinks.iter().map(|sink| state(data_dir, &sink.name)).collect()
}

/// Up to which row every sink has everything; none where there is no sink.
pub fn delivered(data_dir: &Path, sinks: &[Sink]) -> Result<Option<i64>, SinkError> {
    Ok(states(data_dir, sinks)?.iter().map(|state| state.cursor).min())
}

pub(crate) fn save(data_dir: &Path, name: &str, state: &SinkState) -> Result<(), SinkError> {
    let path = directory(data_dir).join(format!("{name}.json"));
    let broken = |reason: String| SinkError::Cursor { path: path.clone(), reason };
    let text = serde_json::to_vec(state).map_err(|error| broken(error.to_string()))?;
    files::write_private(&path, &text).map_err(|error| broken(error.to_string()))
}
