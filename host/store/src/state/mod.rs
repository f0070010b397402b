//! `state.db`: what Toolgate remembers between runs, and between processes.
//!
//! - [`asks`]: questions to the operator, single use;
//! - [`grants`]: standing answers to them, for a session or a persona;
//! - [`standing`]: what the operator decided beforehand, and what is frozen;
//! - [`pins`]: accepted definitions, with [`known`] as the second witness outside the database;
//! - [`lost`]: a database that is gone although its directory was in use;
//! - [`tasks`]: what servers work on after they answered a call;
//! - [`tokens`]: bearer tokens, as digests;
//! - [`eras`]: which era a server answered in, so that a probe is paid for once.
//!
//! Every change is one transaction that takes the write lock first, so that two processes cannot
//! both spend a grant or both use the last free place. Calls are short and synchronous.

mod ask_rows;
pub mod asks;
pub mod eras;
pub mod grants;
pub(crate) mod known;
pub(crate) mod lost;
pub mod pins;
mod schema;
pub mod standing;
mod task_rows;
mod task_words;
pub mod tasks;
pub mod tokens;

pub(crate) use schema::FORMAT;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolgate_base::Clock;

use crate::database::{Database, Durability};
use crate::error::StoreError;
use crate::paths;
use crate::sys::FileId;

/// The open `state.db` of a data directory.
pub(crate) struct State {
    database: Mutex<Database>,
    data_dir: PathBuf,
    clock: Arc<dyn Clock>,
    /// Which file it is.
    file: FileId,
}

impl State {
    /// Opens or creates the database, and looks through it once: damage found here stops the start
    /// instead of one call in a hundred.
    pub(crate) fn open(data_dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let path = data_dir.join(paths::STATE_DB);
        // What is remembered here decides about calls, and changes are rare: it may cost an fsync.
        let database =
            Database::open_filled(&path, &schema::FORMAT, Durability::Disk, &|_| lost::refuse(data_dir))?;
        let file = FileId::at(&path).map_err(|source| StoreError::io("look at", &path, source))?;
        let said: String = database
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(database.error("check the pages"))?;
        if said != "ok" {
            return Err(StoreError::Damaged {
                path,
                what: said,
                repair: "restore it from a copy, or move it away and run `toolgate operator recover`: all \
                         asks, tokens and pins are void then, and every pinned server must be accepted again",
            });
        }
        let state = Self { database: Mutex::new(database), data_dir: data_dir.to_owned(), clock, file };
        state.heal_known()?;
        Ok(state)
    }

    /// An error where the name leads to another file by now, or to none: what this one says about freezes
    /// and denials is not what the next process reads.
    fn still_there(&self) -> Result<(), StoreError> {
        let path = self.data_dir.join(paths::STATE_DB);
        if FileId::at(&path).is_ok_and(|now| self.file.may_be(now)) {
            return Ok(());
        }
        Err(StoreError::StateLost { path, evidence: "a process has it open still".to_owned() })
    }

    /// The connection. A thread that panicked while it held it has left no half change behind: its
    /// transaction was rolled back when it was dropped.
    fn database(&self) -> MutexGuard<'_, Database> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX)
    }
}
