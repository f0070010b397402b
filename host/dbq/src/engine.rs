//! The third to fifth layer: SQLite itself, which knows only views of the scope.
//!
//! The views stand in the temporary schema, where an unqualified name is looked up first. Each leads to
//! a second view whose name nobody can guess, and the authorizer lets a table be read only from inside
//! that one: neither a qualified name, nor a common table expression that borrows the name of a view, nor
//! anything else the layers above misread leads past the scope.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use toolgate_store::read_rows;

use crate::{Answer, MAX_ROWS, MAX_SQL, QueryError, Scope, TABLES, refused};

/// The most bytes of values.
const MAX_BYTES: usize = 1024 * 1024;
/// How long a query may run.
const TIME: Duration = Duration::from_secs(2);
/// Steps of SQLite's machine between two looks at the clock.
const STEPS: i32 = 4_000;

/// Functions that neither write nor reach out of the row or group they are given.
const FUNCTIONS: [&str; 46] = [
    "abs",
    "avg",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "count",
    "date",
    "datetime",
    "format",
    "glob",
    "group_concat",
    "hex",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array_length",
    "json_extract",
    "json_type",
    "json_valid",
    "julianday",
    "length",
    "like",
    "lower",
    "ltrim",
    "max",
    "min",
    "nullif",
    "octet_length",
    "printf",
    "quote",
    "round",
    "rtrim",
    "sign",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "time",
    "total",
    "trim",
    "typeof",
    "unixepoch",
    "upper",
];

/// Runs what the layers above let through.
pub(crate) fn run(path: &Path, scope: &Scope, sql: &str) -> Result<Answer, QueryError> {
    let broken = |error: rusqlite::Error| QueryError::Database {
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    let connection = open(path, scope).map_err(broken)?;
    let mut statement = connection.prepare(sql).map_err(|error| told(&error))?;
    if !statement.readonly() || statement.is_explain() != 0 || statement.column_count() == 0 {
        return Err(refused("only a SELECT is allowed"));
    }
    if statement.parameter_count() > 0 {
        return Err(refused("it has parameters, and nothing fills them"));
    }
    read_rows(&mut statement, MAX_ROWS, MAX_BYTES).map_err(|error| told(&error))
}

/// A connection on which the four names mean the rows of this scope, and nothing else means anything.
pub(crate) fn open(path: &Path, scope: &Scope) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(TIME)?;
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    let (thread, persona) = (quoted(&connection, &scope.thread)?, quoted(&connection, &scope.persona)?);
    // 128 bits that are gone with the connection.
    let secret = format!("scope_{}_", toolgate_base::random_hex(16));
    for table in TABLES {
        connection.execute_batch(&format!(
            "CREATE TEMP VIEW {secret}{table} AS SELECT * FROM main.{table} \
             WHERE thread_id = {thread} AND persona_id = {persona}; \
             CREATE TEMP VIEW {table} AS SELECT * FROM temp.{secret}{table}"
        ))?;
    }
    connection.pragma_update(None, "query_only", "ON")?;
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_SQL_LENGTH, i32::try_from(MAX_SQL * 2).unwrap_or(i32::MAX)),
        (Limit::SQLITE_LIMIT_LENGTH, i32::try_from(MAX_BYTES).unwrap_or(i32::MAX)),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 1),
    ] {
        connection.set_limit(limit, value)?;
    }
    let deadline = Instant::now() + TIME;
    connection.progress_handler(STEPS, Some(move || Instant::now() >= deadline))?;
    connection.authorizer(Some(move |context: AuthContext<'_>| authorize(&secret, &context)))?;
    Ok(connection)
}

/// A text as SQLite itself writes it into a statement. One with a zero byte it would cut there.
fn quoted(connection: &Connection, text: &str) -> rusqlite::Result<String> {
    if text.contains('\0') {
        return Err(rusqlite::Error::InvalidQuery);
    }
    connection.query_row("SELECT quote(?1)", [text], |row| row.get(0))
}

/// What a statement may do. `secret` begins the names of the inner views.
fn authorize(secret: &str, context: &AuthContext<'_>) -> Authorization {
    let allowed = match context.action {
        AuthAction::Select => true,
        AuthAction::Read { table_name, .. } => {
            let plain = table_name.strip_prefix(secret).unwrap_or(table_name);
            let known = TABLES.iter().any(|table| is(table, plain));
            known
                && match context.database_name {
                    // A table counts only inside the inner view that is made for it.
                    Some("main") => {
                        let view = context.accessor.and_then(|view| view.strip_prefix(secret));
                        view.is_some_and(|view| is(view, table_name))
                    }
                    // The views; where no column is named, SQLite names no database either.
                    Some("temp") | None => true,
                    Some(_) => false,
                }
        }
        AuthAction::Function { function_name } => FUNCTIONS.iter().any(|name| is(name, function_name)),
        _ => false,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}

fn is(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Whose fault an error of the statement is.
fn told(error: &rusqlite::Error) -> QueryError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => refused(format!("it ran longer than {} s", TIME.as_secs())),
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            refused(format!("it reads what is not yours, or calls what is not allowed ({error})"))
        }
        Some(ErrorCode::ReadOnly) => refused("only a SELECT is allowed"),
        // A function that the authorizer refuses has no code of its own.
        _ if error.to_string().contains("not authorized") => {
            refused(format!("it calls what is not allowed ({error})"))
        }
        _ => QueryError::Wrong(error.to_string()),
    }
}
