//! The journal of tasks: calls whose servers answered that they go on working
//! (extension `io.modelcontextprotocol/tasks`).
//!
//! A task is written down before anybody waits for it (TSK-003), so that a process that ends at any moment
//! leaves enough for the next one to go on: whom it is for, at which server under which id, what the server
//! said of it last, and whether it is to be cancelled. What came back while nobody waited stays here, whole,
//! until it is handed over (TSK-018). Ids are Toolgate's own, 128 random bits; the server's stay in here.
//!
//! Bounds: [`MOST`] tasks; one that is over is removed after [`TASKS_KEPT`] (TSK-017), earlier only where
//! the bound is met and nobody waits for its outcome.

use std::time::Duration;

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use toolgate_signing::Digest;

pub use super::task_words::{Delivery, TaskStatus};

use super::State;
use super::task_rows::{COLUMNS, WITHOUT_OUTCOME, read};
use crate::error::StoreError;

/// How long a task that is over is kept.
pub const TASKS_KEPT: Duration = Duration::from_hours(7 * 24);
/// Tasks that are kept at most.
const MOST: i64 = 2_048;

/// Whom a task is for and what it was called with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAbout {
    /// The persona that called.
    pub persona: String,
    /// Its lane.
    pub lane: String,
    /// The credential it came with.
    pub credential: String,
    /// Its session.
    pub session: String,
    /// The agent run that the client claims.
    pub run_id: Option<String>,
    /// The conversation that the client claims.
    pub thread_id: Option<String>,
    /// What the client can be asked, as bits.
    pub abilities: u8,
    /// The one server that the caller reaches, where it reaches no other.
    pub server_only: Option<String>,
    /// Whether the caller sees the server's own names.
    pub plain_names: bool,
    /// The original name of the tool.
    pub tool: String,
    /// The name that the client used.
    pub exposed: String,
    /// The client's request id as JSON text.
    pub request_id: Option<String>,
    /// The arguments as they were judged and sent, JSON text.
    pub arguments: String,
    /// Digest of the tool's definition as it was judged.
    pub definition: String,
    /// What let the call pass: `policies`, `once` or `wider`.
    pub passed_by: String,
    /// The id that went with the call, so that a server can tell a repetition (TSK-002).
    pub invocation: String,
}

/// How often what happened (TSK-015).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TaskCounters {
    /// Its observation went on over another connection, or in another process.
    pub recoveries: i64,
    /// A read, an answer or a cancellation failed and was tried again.
    pub retries: i64,
    /// It was asked for (`tasks/get`).
    pub reads: i64,
    /// Its server told of it unasked (`notifications/tasks`).
    pub pushes: i64,
    /// Answers were sent (`tasks/update`).
    pub inputs: i64,
}

/// A task as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// `task_` and 32 hex digits.
    pub id: String,
    /// The process that observes it.
    pub owner: String,
    /// The server's name.
    pub server: String,
    /// The server's identity when it was called.
    pub server_identity: Digest,
    /// The server's own id of it.
    pub task_id: String,
    /// Whom it is for.
    pub about: TaskAbout,
    /// Who may use its id.
    pub caller: String,
    /// Whether the client has its id and asks by itself.
    pub handed: bool,
    /// Where it stands.
    pub status: TaskStatus,
    /// What its server said of it last, JSON text without result and questions.
    pub snapshot: String,
    /// What it brought: `{"result":…}`, `{"error":…}` or `{"inputRequests":…}`; only where a single task was
    /// asked for.
    pub outcome: Option<String>,
    /// What became of that.
    pub delivery: Delivery,
    /// Who wants it cancelled, if somebody does.
    pub cancel_requested_by: Option<String>,
    /// How often what happened.
    pub counters: TaskCounters,
    /// When it was written down, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
    /// When its server lets go of it; none where it does not say.
    pub expires_at_ms: Option<i64>,
    /// When it was over.
    pub closed_at_ms: Option<i64>,
}

/// A task to be written down.
#[derive(Debug, Clone, Copy)]
pub struct NewTask<'a> {
    /// Its id, made by the caller.
    pub id: &'a str,
    /// The process that observes it.
    pub owner: &'a str,
    /// The server's name.
    pub server: &'a str,
    /// The server's identity.
    pub server_identity: &'a Digest,
    /// The server's own id of it.
    pub task_id: &'a str,
    /// Whom it is for.
    pub about: &'a TaskAbout,
    /// Who may use its id.
    pub caller: &'a str,
    /// Whether the client gets its id.
    pub handed: bool,
    /// Where it stands.
    pub status: TaskStatus,
    /// What its server said of it.
    pub snapshot: &'a str,
    /// When its server lets go of it.
    pub expires_at_ms: Option<i64>,
}

/// What is known of a task now.
#[derive(Debug, Clone, Copy)]
pub struct TaskUpdate<'a> {
    /// Where it stands.
    pub status: TaskStatus,
    /// What its server said of it last.
    pub snapshot: &'a str,
    /// What it brought, where that is to be kept.
    pub outcome: Option<&'a str>,
    /// What became of that.
    pub delivery: Delivery,
    /// How often what happened, in all.
    pub counters: TaskCounters,
    /// When its server lets go of it.
    pub expires_at_ms: Option<i64>,
}

impl State {
    pub(crate) fn add_task(&self, task: &NewTask<'_>) -> Result<(), StoreError> {
        let (now, before) = (self.now_ms(), self.kept_since());
        let mut database = self.database();
        let failed = database.error("write a task down");
        let about = serde_json::to_string(task.about)
            .map_err(|error| StoreError::Internal(format!("a task cannot be written as JSON: {error}")))?;
        let transaction = database.write("write a task down")?;
        transaction.execute("DELETE FROM tasks WHERE closed_at_ms < ?1", [before]).map_err(&failed)?;
        let count: i64 =
            transaction.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).map_err(&failed)?;
        if count >= MOST {
            let removed = transaction
                .execute(
                    "DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE closed_at_ms IS NOT NULL \
                     AND delivery <> 'pending' ORDER BY closed_at_ms LIMIT 1)",
                    [],
                )
                .map_err(&failed)?;
            if removed == 0 {
                return Err(StoreError::TooManyTasks { limit: MOST });
            }
        }
        transaction
            .execute(
                "INSERT INTO tasks (id, owner, server, server_identity, task_id, about, caller, handed, \
                 status, snapshot, delivery, created_at_ms, updated_at_ms, expires_at_ms) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'waiting', ?11, ?11, ?12)",
                params![
                    task.id,
                    task.owner,
                    task.server,
                    task.server_identity.to_string(),
                    task.task_id,
                    about,
                    task.caller,
                    task.handed,
                    task.status.as_str(),
                    task.snapshot,
                    now,
                    task.expires_at_ms,
                ],
            )
            .map_err(&failed)?;
        transaction.commit().map_err(failed)
    }

    pub(crate) fn update_task(&self, id: &str, update: &TaskUpdate<'_>) -> Result<(), StoreError> {
        let now = self.now_ms();
        let TaskCounters { recoveries, retries, reads, pushes, inputs } = update.counters;
        let database = self.database();
        database
            .connection
            .execute(
                "UPDATE tasks SET status = ?2, snapshot = ?3, outcome = ?4, delivery = ?5, recoveries = ?6, \
                 retries = ?7, reads = ?8, pushes = ?9, inputs = ?10, expires_at_ms = ?11, \
                 updated_at_ms = ?12, closed_at_ms = CASE WHEN ?13 THEN ?12 END \
                 WHERE id = ?1 AND closed_at_ms IS NULL",
                params![
                    id,
                    update.status.as_str(),
                    update.snapshot,
                    update.outcome,
                    update.delivery.as_str(),
                    recoveries,
                    retries,
                    reads,
                    pushes,
                    inputs,
                    update.expires_at_ms,
                    now,
                    update.status.is_over(),
                ],
            )
            .map(drop)
            .map_err(database.error("note the state of a task"))
    }

    pub(crate) fn task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        let database = self.database();
        database
            .connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1"))
            .and_then(|mut statement| statement.query_row([id], read).optional())
            .map_err(database.error("read a task"))
    }

    pub(crate) fn tasks(&self) -> Result<Vec<Task>, StoreError> {
        let database = self.database();
        let read_all = || -> rusqlite::Result<Vec<Task>> {
            let mut statement = database
                .connection
                .prepare_cached(&format!("SELECT {WITHOUT_OUTCOME} FROM tasks ORDER BY created_at_ms, id"))?;
            statement.query_map([], read)?.collect()
        };
        read_all().map_err(database.error("list the tasks"))
    }

    pub(crate) fn request_task_cancel(&self, id: &str, by: &str) -> Result<bool, StoreError> {
        let now = self.now_ms();
        let database = self.database();
        database
            .connection
            .execute(
                "UPDATE tasks SET cancel_requested_at_ms = ?2, cancel_requested_by = ?3, updated_at_ms = ?2 \
                 WHERE id = ?1 AND closed_at_ms IS NULL AND cancel_requested_at_ms IS NULL",
                params![id, now, by],
            )
            .map(|changed| changed == 1)
            .map_err(database.error("note that a task is to be cancelled"))
    }

    pub(crate) fn adopt_tasks(&self, from: &str, to: &str) -> Result<usize, StoreError> {
        let database = self.database();
        database
            .connection
            .execute(
                "UPDATE tasks SET owner = ?2, recoveries = recoveries + 1 \
                 WHERE owner = ?1 AND closed_at_ms IS NULL",
                params![from, to],
            )
            .map_err(database.error("take over tasks"))
    }

    /// What a client can still ask for by its id stays; anything else has no second reader.
    pub(crate) fn deliver_task(&self, id: &str) -> Result<bool, StoreError> {
        let now = self.now_ms();
        let database = self.database();
        database
            .connection
            .execute(
                "UPDATE tasks SET delivery = 'delivered', updated_at_ms = ?2, \
                 outcome = CASE WHEN handed THEN outcome END WHERE id = ?1 AND delivery = 'pending'",
                params![id, now],
            )
            .map(|changed| changed == 1)
            .map_err(database.error("note that an outcome was handed over"))
    }

    pub(crate) fn remove_old_tasks(&self) -> Result<usize, StoreError> {
        let before = self.kept_since();
        let database = self.database();
        let is_old = "closed_at_ms < ?1";
        // Most often there is none, and then nothing is written.
        let any: bool = database
            .connection
            .query_row(&format!("SELECT EXISTS (SELECT 1 FROM tasks WHERE {is_old})"), [before], |row| {
                row.get(0)
            })
            .map_err(database.error("look for old tasks"))?;
        if !any {
            return Ok(0);
        }
        database
            .connection
            .execute(&format!("DELETE FROM tasks WHERE {is_old}"), [before])
            .map_err(database.error("remove old tasks"))
    }

    fn kept_since(&self) -> i64 {
        self.now_ms().saturating_sub(i64::try_from(TASKS_KEPT.as_millis()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests;
