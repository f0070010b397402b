//! Writing the WAL back into the database, away from the writer thread.
//!
//! A checkpoint syncs the disk and takes milliseconds; a passive one does not stop a writer. Under
//! load that never pauses a passive checkpoint beside the writer cannot finish, so beyond 64 MiB
//! of WAL the writer does one itself, between two groups, after which SQLite starts the WAL over.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::JoinHandle;

use rusqlite::{Connection, OpenFlags};

/// Groups after which a checkpoint is due; a group alone writes about four pages.
const GROUPS: usize = 256;
/// Rows after which it is due as well.
const ROWS: usize = 4_096;
/// Frames (pages of 4 KiB) in the WAL beyond which the writer itself checkpoints.
const MAX_FRAMES: i64 = 16_384;

/// Counts what was written and starts checkpoints. The thread is made when it is first needed: a
/// command that writes three rows has none.
pub(crate) struct Checkpointer {
    path: PathBuf,
    groups: usize,
    rows: usize,
    frames: Arc<AtomicI64>,
    thread: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl Checkpointer {
    /// For the database at `path`.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), groups: 0, rows: 0, frames: Arc::new(AtomicI64::new(0)), thread: None }
    }

    /// Called by the writer after each group, outside of a transaction. True: the writer itself has
    /// to do a [`Self::checkpoint`].
    pub(crate) fn wrote(&mut self, rows: usize) -> bool {
        self.groups += 1;
        self.rows += rows;
        if self.groups < GROUPS && self.rows < ROWS {
            return false;
        }
        self.groups = 0;
        self.rows = 0;
        if self.frames.load(Ordering::Relaxed) > MAX_FRAMES {
            return true;
        }
        if self.thread.is_none() {
            self.thread = start(self.path.clone(), Arc::clone(&self.frames));
        }
        // A full channel means that one is due already; a closed one that the thread has failed.
        match &self.thread {
            Some((due, _)) => matches!(due.try_send(()), Err(TrySendError::Disconnected(()))),
            None => true,
        }
    }

    /// A checkpoint on the writer's own connection.
    pub(crate) fn checkpoint(&self, connection: &Connection) {
        checkpoint(connection, &self.frames);
    }

    /// Ends the thread after the checkpoint it may be in.
    pub(crate) fn stop(self) {
        if let Some((due, thread)) = self.thread {
            drop(due);
            // A checkpoint that failed costs disk space, no rows: the next one does its work.
            let _ = thread.join();
        }
    }
}

fn start(path: PathBuf, frames: Arc<AtomicI64>) -> Option<(SyncSender<()>, JoinHandle<()>)> {
    let (due, turns) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("toolgate-audit-wal".to_owned())
        .spawn(move || {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            match Connection::open_with_flags(&path, flags) {
                Ok(connection) => {
                    while turns.recv().is_ok() {
                        checkpoint(&connection, &frames);
                    }
                }
                Err(error) => tracing::warn!(%error, "no thread for checkpoints of the audit log"),
            }
        })
        .ok()?;
    Some((due, thread))
}

/// One passive checkpoint; remembers how long the WAL was.
fn checkpoint(connection: &Connection, frames: &AtomicI64) {
    let length = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(1));
    match length {
        Ok(length) => frames.store(length, Ordering::Relaxed),
        Err(error) => tracing::warn!(%error, "a checkpoint of the audit log failed"),
    }
}
