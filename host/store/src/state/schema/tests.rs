use rusqlite::Connection;

use super::FORMAT;
use crate::testing::Bench;
use crate::{AskState, STATE_DB};

/// Each released format is read, brought up to date, and kept as it was beside the new one.
#[test]
fn a_state_of_format_1_is_read_and_kept_as_a_copy() {
    let mut bench = Bench::new();
    bench.close();
    for file in crate::protected_files(bench.path()) {
        let _ = std::fs::remove_file(file);
    }
    let path = bench.path().join(STATE_DB);
    Connection::open(&path).unwrap().execute_batch(include_str!("format-1.sql")).unwrap();
    bench.open();
    let ask = bench.store().ask("ask_0000000000000001").unwrap().unwrap();
    assert_eq!((ask.state, ask.surface, ask.about.action.as_str()), (AskState::Denied, None, "call"));
    let number = |path: &std::path::Path| -> i64 {
        Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    assert_eq!(number(&path), FORMAT.number);
    let copy = bench.path().join("state.db.format-1");
    assert_eq!(number(&copy), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// A new file and one that was brought up to date have the same tables.
#[test]
fn a_new_state_and_a_migrated_one_are_the_same() {
    let shape = |sql: &str| -> Vec<(String, String)> {
        let database = Connection::open_in_memory().unwrap();
        database.execute_batch(sql).unwrap();
        let mut columns = database
            .prepare(
                "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c \
                 WHERE t.type = 'table' ORDER BY t.name, c.cid",
            )
            .unwrap();
        columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    let migrated = format!("{}{}", include_str!("format-1.sql"), FORMAT.migrate.concat());
    assert_eq!(shape(FORMAT.create), shape(&migrated));
}
