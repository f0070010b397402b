use std::fs;

use super::{Entries, Entry, change, read};
use crate::testing::digest;
use crate::{PINS_KNOWN, StoreError};

fn entry(revision: i64, server: &str) -> Entry {
    Entry { revision, content: digest("content"), server: server.to_owned() }
}

#[test]
fn entries_come_back_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(read(dir.path()).unwrap(), Entries::new());
    for (name, revision) in [("github", 1), ("name with spaces", 7)] {
        change(dir.path(), |entries| {
            entries.insert(digest(name).to_string(), entry(revision, name));
            true
        })
        .unwrap();
    }
    let entries = read(dir.path()).unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[&digest("name with spaces").to_string()], entry(7, "name with spaces"));
}

/// PI-05: the witness itself must not be taken for "nothing known".
#[test]
fn a_cut_or_altered_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    change(dir.path(), |entries| {
        entries.insert(digest("github").to_string(), entry(1, "github"));
        true
    })
    .unwrap();
    let path = dir.path().join(PINS_KNOWN);
    let good = fs::read(&path).unwrap();
    for cut in [0, 10, 40, good.len() - 1] {
        fs::write(&path, &good[..cut]).unwrap();
        let error = read(dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "cut to {cut}: {error}");
    }
    fs::write(&path, b"toolgate pinned servers, format 2\n").unwrap();
    assert!(read(dir.path()).is_err());
    fs::write(&path, [0xff; 100]).unwrap();
    assert!(read(dir.path()).is_err());
}
