//! Rows of the journal of tasks, from the database to [`Task`].

use rusqlite::Row;
use rusqlite::types::Type;
use toolgate_signing::Digest;

use super::tasks::{Delivery, Task, TaskCounters, TaskStatus};

/// What [`read`] reads.
pub(super) const COLUMNS: &str = "id, owner, server, server_identity, task_id, about, caller, handed, status, \
    snapshot, outcome, delivery, cancel_requested_by, recoveries, retries, reads, pushes, inputs, \
    created_at_ms, updated_at_ms, expires_at_ms, closed_at_ms";

/// The same for a list: an outcome may be as long as a message.
pub(super) const WITHOUT_OUTCOME: &str = "id, owner, server, server_identity, task_id, about, caller, handed, \
    status, snapshot, NULL, delivery, cancel_requested_by, recoveries, retries, reads, pushes, inputs, \
    created_at_ms, updated_at_ms, expires_at_ms, closed_at_ms";

/// One task.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Task> {
    let text = |index: usize| row.get::<_, String>(index);
    let damaged = |index: usize, what: String| {
        rusqlite::Error::FromSqlConversionFailure(index, Type::Text, what.into())
    };
    let (identity, about, status, delivery) = (text(3)?, text(5)?, text(8)?, text(11)?);
    Ok(Task {
        id: text(0)?,
        owner: text(1)?,
        server: text(2)?,
        server_identity: identity.parse::<Digest>().map_err(|error| damaged(3, error.to_string()))?,
        task_id: text(4)?,
        about: serde_json::from_str(&about).map_err(|error| damaged(5, error.to_string()))?,
        caller: text(6)?,
        handed: row.get(7)?,
        status: TaskStatus::of(&status).ok_or_else(|| damaged(8, format!("no status: {status}")))?,
        snapshot: text(9)?,
        outcome: row.get(10)?,
        delivery: Delivery::of(&delivery).ok_or_else(|| damaged(11, format!("no delivery: {delivery}")))?,
        cancel_requested_by: row.get(12)?,
        counters: TaskCounters {
            recoveries: row.get(13)?,
            retries: row.get(14)?,
            reads: row.get(15)?,
            pushes: row.get(16)?,
            inputs: row.get(17)?,
        },
        created_at_ms: row.get(18)?,
        updated_at_ms: row.get(19)?,
        expires_at_ms: row.get(20)?,
        closed_at_ms: row.get(21)?,
    })
}
