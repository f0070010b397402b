//! What a database holds that may have been written by somebody else: read without trusting it.
//!
//! A column of another type than the table declares is no error here but "not as written".

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::chain::{Columns, Hash};

/// Whether the process that made the file ended before it made the table.
pub(super) fn is_unborn(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT user_version = 0 AND NOT EXISTS (SELECT 1 FROM sqlite_schema) \
         FROM pragma_user_version",
        [],
        |row| row.get(0),
    )
}

/// Names and definitions of all objects.
pub(super) fn objects(connection: &Connection) -> rusqlite::Result<BTreeMap<String, Option<String>>> {
    let mut statement = connection.prepare("SELECT type || ' ' || name, sql FROM sqlite_schema")?;
    let objects = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    objects.collect()
}

/// The columns of a row as bytes, and its stored hash; none where a type is not the right one.
pub(super) fn columns<'a>(row: &'a Row<'_>) -> rusqlite::Result<Option<(Columns<'a>, Hash)>> {
    let text = |index| row.get_ref(index).map(bytes);
    let optional = |index| row.get_ref(index).map(optional_bytes);
    let (Some(chain), Some(action), Some(details)) = (text(1)?, text(6)?, text(9)?) else {
        return Ok(None);
    };
    let (Some(run_id), Some(thread_id), Some(persona_id)) = (optional(3)?, optional(4)?, optional(5)?) else {
        return Ok(None);
    };
    let (Some(tool), Some(request_id)) = (optional(7)?, optional(8)?) else {
        return Ok(None);
    };
    let (Some(seq), Some(created_at), Some(created_at_ms)) =
        (integer(row.get_ref(2)?), integer(row.get_ref(10)?), integer(row.get_ref(11)?))
    else {
        return Ok(None);
    };
    let ValueRef::Blob(hash) = row.get_ref(12)? else {
        return Ok(None);
    };
    let Ok(hash) = Hash::try_from(hash) else {
        return Ok(None);
    };
    let columns = Columns {
        id: row.get(0)?,
        chain,
        seq,
        run_id,
        thread_id,
        persona_id,
        action,
        tool,
        request_id,
        details,
        created_at,
        created_at_ms,
    };
    Ok(Some((columns, hash)))
}

fn bytes(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        ValueRef::Text(bytes) => Some(bytes),
        _ => None,
    }
}

#[allow(clippy::option_option)] // Outer: whether the type is right. Inner: whether there is a value.
fn optional_bytes(value: ValueRef<'_>) -> Option<Option<&[u8]>> {
    match value {
        ValueRef::Null => Some(None),
        other => bytes(other).map(Some),
    }
}

fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Integer(number) => Some(number),
        _ => None,
    }
}
