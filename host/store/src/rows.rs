//! What a SELECT gives, in bounds and as JSON.

use rusqlite::Statement;
use rusqlite::types::ValueRef;
use serde::Serialize;
use serde_json::Value;

/// What a SELECT gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelectOutcome {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows; a blob is its hex text.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows than the bounds allow.
    pub truncated: bool,
}

/// Reads at most `most` rows with at most `bytes` bytes of values together; a row that passes either bound
/// is left out, and so is what follows.
///
/// # Errors
/// What SQLite says while it runs the statement, the end of its time included.
pub fn read_rows(
    statement: &mut Statement<'_>,
    most: usize,
    bytes: usize,
) -> rusqlite::Result<SelectOutcome> {
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut outcome = SelectOutcome { columns, rows: Vec::new(), truncated: false };
    let mut read = 0usize;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if outcome.rows.len() >= most {
            outcome.truncated = true;
            break;
        }
        let mut values = Vec::with_capacity(outcome.columns.len());
        for index in 0..outcome.columns.len() {
            let value = row.get_ref(index)?;
            read = read.saturating_add(size(value));
            values.push(json(value));
        }
        if read > bytes {
            outcome.truncated = true;
            break;
        }
        outcome.rows.push(values);
    }
    Ok(outcome)
}

fn size(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 8,
        ValueRef::Text(bytes) => bytes.len(),
        ValueRef::Blob(bytes) => bytes.len().saturating_mul(2),
    }
}

fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Real(number) => Value::from(number),
        ValueRef::Text(bytes) => Value::from(String::from_utf8_lossy(bytes)),
        ValueRef::Blob(bytes) => Value::from(hex::encode(bytes)),
    }
}
