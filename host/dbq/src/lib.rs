//! One SELECT of an agent over its own rows, and nothing else (rows DBQ-001..012).
//!
//! Contract: whatever the text says, it reads rows of one persona and one thread in four tables, writes
//! nothing, and ends. Five layers, none of which relies on another:
//!
//! 1. [`words`]: the text begins with SELECT and has no word that writes, combines or reaches out.
//! 2. [`shape`]: a real parser sees exactly one plain SELECT over the [`TABLES`]: no set operation, no
//!    common table expression, no subquery. What runs is the statement as it was understood.
//! 3. [`engine`]: each table's name means a view with `thread_id = … AND persona_id = …`, and SQLite's
//!    authorizer refuses every read of a table that does not come through its view.
//! 4. At most [`MAX_ROWS`] rows are read, whatever the query's own LIMIT says.
//! 5. The connection is read-only, and `query_only` beside it.
//!
//! Bounds: 16 KiB of SQL, 32 levels, 1,000 rows, 1 MiB of values, 2 s. Blocks its thread for as long.
//!
//! Threat: the text is written by a model that may have read a stranger's instructions. It may want the
//! rows of another conversation, the tables of the host, or a query that never ends.

mod engine;
mod shape;
mod words;

use std::path::Path;

/// What a query gave.
pub use toolgate_store::SelectOutcome as Answer;

/// The tables an agent may ask. Each has the columns `thread_id` and `persona_id`.
pub const TABLES: [&str; 4] = ["memory_items", "schedules", "messages", "threads"];
/// The most rows of one answer.
pub const MAX_ROWS: usize = 1_000;
/// The longest query, bytes.
pub const MAX_SQL: usize = 16 * 1024;

/// Whose rows they are. Both come from the credential and the session, never from the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The persona.
    pub persona: String,
    /// The conversation.
    pub thread: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The query breaks a rule; the text says which, and is for the agent.
    #[error("the query is refused: {0}")]
    Refused(String),
    /// The query is allowed and wrong: no such column, a function with too few arguments.
    #[error("the query does not work: {0}")]
    Wrong(String),
    /// The database cannot be read. Nobody's query is at fault.
    #[error("the database {path} cannot be read: {reason}")]
    Database {
        /// The file.
        path: String,
        /// What SQLite said.
        reason: String,
    },
}

/// Runs one query over the rows of `scope`.
///
/// # Errors
/// [`QueryError::Refused`] before anything was read, or when a bound is passed.
pub fn query(database: &Path, scope: &Scope, sql: &str) -> Result<Answer, QueryError> {
    words::check(sql)?;
    let understood = shape::check(sql)?;
    engine::run(database, scope, &understood)
}

fn refused(why: impl Into<String>) -> QueryError {
    QueryError::Refused(why.into())
}

#[cfg(test)]
mod tests;
