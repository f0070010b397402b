//! One SELECT of the operator over `audit_log`, and nothing else.
//!
//! Gates, each enough by itself against a write: the file is open read-only; `query_only` is on;
//! the authorizer allows reading `audit_log` and a list of harmless functions; the statement must
//! be a single one that SQLite calls read-only. Bounds: 10,000 rows, 16 MiB of values, 5 s, 64 KiB
//! of SQL, 1 MiB for a value; no recursion.
//!
//! Threat: the text may come from an agent that an operator pasted it for. It can learn what the
//! log says, which is what the verb is for, and can neither change it nor stall the machine.

use std::time::{Duration, Instant};

use rusqlite::ErrorCode;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

use super::filter::MAX_ROWS;
use crate::database::Database;
use crate::error::StoreError;
use crate::rows::{SelectOutcome, read_rows};

const TABLE: &str = "audit_log";
/// How many steps of SQLite's machine lie between two looks at the clock: well under 1 ms.
const STEPS: i32 = 4_000;

/// What one query may use.
pub(crate) struct Bounds {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    pub(crate) time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { rows: MAX_ROWS, bytes: 16 * 1024 * 1024, time: Duration::from_secs(5) }
    }
}

/// Functions a query may call: text, numbers, times, JSON, aggregates and windows. None reads or
/// writes files, loads code or changes the connection.
const FUNCTIONS: &[&str] = &[
    "abs",
    "avg",
    "ceil",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "count",
    "cume_dist",
    "date",
    "datetime",
    "dense_rank",
    "first_value",
    "floor",
    "format",
    "glob",
    "group_concat",
    "hex",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_length",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_object",
    "json_quote",
    "json_type",
    "json_valid",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "lower",
    "ltrim",
    "max",
    "min",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "printf",
    "quote",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "time",
    "timediff",
    "total",
    "trim",
    "typeof",
    "unicode",
    "unixepoch",
    "upper",
    "->",
    "->>",
];

/// Runs one statement and closes the connection.
pub(crate) fn run(mut database: Database, sql: &str, bounds: &Bounds) -> Result<SelectOutcome, StoreError> {
    restrict(&mut database, bounds)?;
    let mut statement = match database.connection.prepare(sql) {
        Ok(statement) => statement,
        Err(error) => return Err(refusal(&database, error)),
    };
    if !statement.readonly() || statement.is_explain() != 0 || statement.column_count() == 0 {
        return Err(refused("only a SELECT is allowed"));
    }
    if statement.parameter_count() > 0 {
        return Err(refused("it has parameters, and nothing fills them"));
    }
    read_rows(&mut statement, bounds.rows, bounds.bytes).map_err(|error| refusal(&database, error))
}

fn restrict(database: &mut Database, bounds: &Bounds) -> Result<(), StoreError> {
    let failed = database.error("restrict the query");
    let connection = &mut database.connection;
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 64 * 1024),
        (Limit::SQLITE_LIMIT_LENGTH, 1024 * 1024),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 20),
    ] {
        connection.set_limit(limit, value).map_err(&failed)?;
    }
    let deadline = Instant::now() + bounds.time;
    connection.progress_handler(STEPS, Some(move || Instant::now() >= deadline)).map_err(&failed)?;
    connection.authorizer(Some(authorize)).map_err(&failed)
}

#[allow(clippy::needless_pass_by_value)] // The signature is SQLite's callback.
fn authorize(context: AuthContext<'_>) -> Authorization {
    let allowed = match context.action {
        AuthAction::Select => true,
        // The database is part of the check: a temporary table of the same name is another one. For
        // a table that is only counted SQLite names neither column nor database.
        AuthAction::Read { table_name, .. } => {
            table_name.eq_ignore_ascii_case(TABLE) && matches!(context.database_name, Some("main") | None)
        }
        AuthAction::Function { function_name } => {
            FUNCTIONS.iter().any(|name| name.eq_ignore_ascii_case(function_name))
        }
        _ => false,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}

fn refused(why: impl Into<String>) -> StoreError {
    StoreError::QueryRefused { why: why.into() }
}

/// An error of a query: the query's fault, unless the file is damaged.
fn refusal(database: &Database, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => refused("it ran longer than it may"),
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            refused(format!("only a SELECT over `{TABLE}` with plain functions is allowed ({error})"))
        }
        Some(ErrorCode::ReadOnly) => refused("only a SELECT is allowed"),
        _ if crate::database::is_damage(&error) => database.error("run the query")(error),
        _ if matches!(error, rusqlite::Error::MultipleStatement) => refused("only one statement is allowed"),
        _ => refused(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
