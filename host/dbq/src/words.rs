//! The first layer: words, before anything is parsed.
//!
//! The text is split as SQLite splits it (quoted text, quoted names and comments are not words), so that
//! a note about an "update" can be searched for. What cannot be split is refused.

use sqlparser::dialect::SQLiteDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::{MAX_SQL, QueryError, refused};

/// Words that write, combine answers, or reach out of the tables (DBQ-002, DBQ-007..010).
const REFUSED: [&str; 29] = [
    "ALTER",
    "ANALYZE",
    "ATTACH",
    "BEGIN",
    "COMMIT",
    "CREATE",
    "DELETE",
    "DETACH",
    "DROP",
    "EXCEPT",
    "EXPLAIN",
    "INSERT",
    "INTERSECT",
    "INTO",
    "PRAGMA",
    "RECURSIVE",
    "REINDEX",
    "RELEASE",
    "REPLACE",
    "RETURNING",
    "ROLLBACK",
    "SAVEPOINT",
    "TRUNCATE",
    "UNION",
    "UPDATE",
    "UPSERT",
    "VACUUM",
    "VALUES",
    "WITH",
];

/// Refuses what is no SELECT, or has a word that a SELECT of an agent has no use for.
pub(crate) fn check(sql: &str) -> Result<(), QueryError> {
    if sql.len() > MAX_SQL {
        return Err(refused(format!("it has {} bytes; the limit is {MAX_SQL}", sql.len())));
    }
    if sql.contains('\0') {
        return Err(refused("it holds a zero byte"));
    }
    let tokens = Tokenizer::new(&SQLiteDialect {}, sql)
        .tokenize()
        .map_err(|error| refused(format!("it cannot be read: {error}")))?;
    let mut words = tokens.iter().filter_map(|token| match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
        _ => None,
    });
    match words.next() {
        Some(first) if first == "SELECT" => {}
        _ => return Err(refused("only a SELECT is allowed")),
    }
    match words.find(|word| REFUSED.contains(&word.as_str())) {
        Some(word) => Err(refused(format!("{word} is not allowed; ask with one plain SELECT"))),
        None => Ok(()),
    }
}
