//! `state.db`: what Toolgate remembers between runs, and between processes.
//!
//! - [`asks`]: questions to the operator, single use;
//! - [`grants`]: standing answers to them, for a session or a persona;
//! - [`standing`]: what the operator decided beforehand, and what is frozen;
//! - [`pins`]: accepted definitions, with [`known`] as the second witness outside the database;
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

/// The open `state.db` of a data directory.
pub(crate) struct State {
    database: Mutex<Database>,
    data_dir: PathBuf,
    clock: Arc<dyn Clock>,
}

impl State {
    /// Opens or creates the database, and looks through it once: damage found here stops the start
    /// instead of one call in a hundred.
    pub(crate) fn open(data_dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let path = data_dir.join(paths::STATE_DB);
        // What is remembered here decides about calls, and changes are rare: it may cost an fsync.
        let database = Database::open(&path, &schema::FORMAT, Durability::Disk)?;
        let said: String = database
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(database.error("check the pages"))?;
        if said != "ok" {
            return Err(StoreError::Damaged {
                path,
                what: said,
                repair: "restore it from a copy; moving it away voids all asks, tokens and pins, \
                         and every pinned server must be accepted again",
            });
        }
        let state = Self { database: Mutex::new(database), data_dir: data_dir.to_owned(), clock };
        state.heal_known()?;
        Ok(state)
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
