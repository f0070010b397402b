//! Takes audit rows to the receivers that the operator names in `audit.sinks`, each at least once.
//!
//! ```text
//! audit.db ── rows after the cursor ──▶ one task a sink ──▶ file, syslog, OTLP, webhook
//!                                            │
//!                                  sinks/NAME.json: cursor, and how it goes
//! ```
//!
//! Contract: nothing here is on the path of a call: rows are read from the log after their commit, by
//! another connection. The cursor moves after the receiver took a batch, so that a kill in between
//! delivers the batch again and loses nothing; the id of a row tells a receiver that it has it already.
//! A receiver that is down is tried again, after 1 s doubling to 60 s, and said to be.
//!
//! Bounds: 500 rows a batch, one batch on its way per sink, 30 s for an exchange, 16 sinks.
//!
//! Threat: a receiver learns what the log says and nothing else; credentials of sinks are [`Secret`]s
//! and stand in no status and no error.
//!
//! [`Secret`]: toolgate_base::Secret

mod cursor;
mod row;
mod target;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolgate_base::lock::{FileLock, LockError};
use toolgate_base::{Backoff, Clock, SystemClock};
use toolgate_config::Sink;
use toolgate_store::{AuditReader, ExportedRow, StoreError};

pub use self::cursor::{Health, SinkState, delivered, state, states};
pub use self::row::{ocsf, syslog_message};
use self::target::{Target, open};

/// Rows of one exchange.
const BATCH: usize = 500;
/// How often the log is looked at when nothing is due.
const LOOK: Duration = Duration::from_millis(500);
/// How often a sink that another process serves is tried for.
const TAKEN: Duration = Duration::from_secs(5);

/// Why rows did not reach a sink.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] StoreError),
    /// The cursor cannot be read or written.
    #[error("the cursor {}: {reason}", path.display())]
    Cursor {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The receiver did not take them. The text names no credential.
    #[error("{0}")]
    Receiver(String),
    /// Another process serves this sink.
    #[error("another process delivers to this sink now")]
    Taken,
}

/// Tasks that deliver until they are stopped.
#[derive(Debug)]
pub struct Running {
    stop: CancellationToken,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

/// Starts a task for each sink. Needs a Tokio runtime.
pub fn start(data_dir: &Path, sinks: &[Sink]) -> Running {
    let stop = CancellationToken::new();
    let tasks = sinks.iter().map(|sink| {
        let courier =
            Courier { data_dir: data_dir.to_owned(), sink: sink.clone(), clock: Arc::new(SystemClock) };
        tokio::spawn(courier.run(stop.clone()))
    });
    let tasks = tasks.collect();
    Running { stop, tasks }
}

impl Running {
    /// Delivers what the log has by now, for at most `within`, and ends the tasks.
    pub async fn finish(self, within: Duration) {
        self.stop.cancel();
        let all = async {
            for task in self.tasks {
                // A task that panicked has said so; its rows are delivered at the next start.
                let _ = task.await;
            }
        };
        if tokio::time::timeout(within, all).await.is_err() {
            tracing::warn!("not all audit rows reached their sinks; they follow at the next start");
        }
    }
}

/// Delivers what waits for one sink and gives how many rows there were.
pub async fn deliver(data_dir: &Path, sink: &Sink) -> Result<u64, SinkError> {
    let courier = Courier { data_dir: data_dir.to_owned(), sink: sink.clone(), clock: Arc::new(SystemClock) };
    let Some(_alone) = courier.lock()? else { return Err(SinkError::Taken) };
    let mut state = cursor::state(data_dir, &sink.name)?;
    let mut target = open(sink)?;
    let mut count = 0u64;
    loop {
        match courier.batch(&mut state, target.as_mut()).await {
            Ok(0) => return Ok(count),
            Ok(rows) => count += rows,
            Err(error) => {
                courier.note_failure(&mut state, &error, None);
                return Err(error);
            }
        }
    }
}

/// Delivers to one sink.
struct Courier {
    data_dir: PathBuf,
    sink: Sink,
    clock: Arc<dyn Clock>,
}

impl Courier {
    async fn run(self, stop: CancellationToken) {
        let Some(_alone) = self.wait_for_turn(&stop).await else { return };
        let mut backoff = Backoff::default();
        let mut target: Option<Box<dyn Target>> = None;
        loop {
            let done = match self.turn(&mut target).await {
                Ok(rows) => {
                    backoff = Backoff::default();
                    rows == 0
                }
                Err(failed) => {
                    let (mut state, error) = *failed;
                    // What failed is opened anew.
                    target = None;
                    let pause = backoff.pause();
                    if state.health == Health::Delivering {
                        tracing::warn!(sink = self.sink.name, %error, "audit rows do not reach this sink; it is tried again");
                    }
                    self.note_failure(&mut state, &error, Some(pause));
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = stop.cancelled() => return,
                    }
                    false
                }
            };
            if done {
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    // What was written before the end is still delivered: one more look finds it.
                    () = stop.cancelled() => {
                        let _ = self.turn(&mut target).await;
                        return;
                    }
                }
            }
        }
    }

    /// One process at a time delivers to a sink.
    async fn wait_for_turn(&self, stop: &CancellationToken) -> Option<FileLock> {
        loop {
            match self.lock() {
                Ok(Some(lock)) => return Some(lock),
                Ok(None) => {}
                Err(error) => tracing::warn!(sink = self.sink.name, %error, "this sink cannot be served"),
            }
            tokio::select! {
                () = tokio::time::sleep(TAKEN) => {}
                () = stop.cancelled() => return None,
            }
        }
    }

    fn lock(&self) -> Result<Option<FileLock>, SinkError> {
        let path = cursor::directory(&self.data_dir).join(format!("{}.lock", self.sink.name));
        let broken = |reason: String| SinkError::Cursor { path: path.clone(), reason };
        toolgate_base::files::create_private_dir(&cursor::directory(&self.data_dir))
            .map_err(|error| broken(error.to_string()))?;
        match FileLock::exclusive(&path, Duration::ZERO) {
            Ok(lock) => Ok(Some(lock)),
            Err(LockError::Busy { .. }) => Ok(None),
            Err(error) => Err(broken(error.to_string())),
        }
    }

    /// One batch, with a target that is opened where there is none. A failure comes with the state it
    /// happened in.
    async fn turn(&self, target: &mut Option<Box<dyn Target>>) -> Result<u64, Box<(SinkState, SinkError)>> {
        let mut state = match cursor::state(&self.data_dir, &self.sink.name) {
            Ok(state) => state,
            Err(error) => return Err(Box::new((SinkState::default(), error))),
        };
        let open = match target {
            Some(open) => open,
            None => match open(&self.sink) {
                Ok(made) => target.insert(made),
                Err(error) => return Err(Box::new((state, error))),
            },
        };
        match self.batch(&mut state, open.as_mut()).await {
            Ok(rows) => Ok(rows),
            Err(error) => Err(Box::new((state, error))),
        }
    }

    /// Reads the rows after the cursor, delivers them, and moves the cursor.
    async fn batch(&self, state: &mut SinkState, target: &mut dyn Target) -> Result<u64, SinkError> {
        let known = read(&self.data_dir, state.cursor, state.hash.clone()).await?;
        let rows = if let Some(rows) = known {
            rows
        } else {
            state.begin_anew();
            read(&self.data_dir, 0, None).await?.unwrap_or_default()
        };
        let Some(last) = rows.last() else { return Ok(0) };
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        let note = target.deliver(&rows).await?;
        state.delivered_to(last, count, self.clock.now_ms(), note);
        cursor::save(&self.data_dir, &self.sink.name, state)?;
        Ok(count)
    }

    fn note_failure(&self, state: &mut SinkState, error: &SinkError, pause: Option<Duration>) {
        state.failed(&error.to_string(), self.clock.now_ms(), pause);
        if let Err(error) = cursor::save(&self.data_dir, &self.sink.name, state) {
            tracing::warn!(sink = self.sink.name, %error, "the state of this sink cannot be written");
        }
    }
}

/// The rows after row `after`; none at all where the log does not have that row with that hash and was
/// therefore begun anew.
async fn read(
    data_dir: &Path,
    after: i64,
    hash: Option<String>,
) -> Result<Option<Vec<ExportedRow>>, SinkError> {
    let data_dir = data_dir.to_owned();
    let read = tokio::task::spawn_blocking(move || -> Result<Option<Vec<ExportedRow>>, StoreError> {
        if !data_dir.join(toolgate_store::AUDIT_DB).exists() {
            return Ok(Some(Vec::new()));
        }
        let reader = AuditReader::open(&data_dir)?;
        // The row of the cursor comes along, if it was not sealed in the meantime.
        let mut rows = reader.export_after(after.saturating_sub(1), BATCH + 1)?;
        if rows.first().is_some_and(|row| row.id == after) {
            let row = rows.remove(0);
            return Ok((hash.is_none() || hash == Some(row.hash)).then_some(rows));
        }
        let is_shorter = rows.is_empty() && reader.last_id()? < after;
        rows.truncate(BATCH);
        Ok((!is_shorter).then_some(rows))
    });
    match read.await {
        Ok(rows) => Ok(rows?),
        Err(error) => Err(SinkError::Log(StoreError::Internal(error.to_string()))),
    }
}

#[cfg(test)]
mod tests;
