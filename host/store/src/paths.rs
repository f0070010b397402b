//! The names of the store's files, once.
//!
//! Whoever protects these files from agents takes the names from here, so that the protected set
//! and the written set cannot drift apart (lesson FR-30).

use std::path::{Path, PathBuf};

/// The append-only log.
pub const AUDIT_DB: &str = "audit.db";
/// The heads of its chains, kept outside the database.
pub const AUDIT_HEADS: &str = "audit.heads";
/// The directory of the segments that were sealed.
pub const AUDIT_ARCHIVE: &str = "audit-archive";
/// Asks, pins and tokens.
pub const STATE_DB: &str = "state.db";
/// The servers that were pinned once, kept outside the database.
pub const PINS_KNOWN: &str = "pins.known";

/// What proves the operator.
pub const OPERATOR: &str = "operator.json";

/// Every file this crate writes under `data_dir`, SQLite's companions included.
pub fn protected_files(data_dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for database in [AUDIT_DB, STATE_DB] {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            files.push(data_dir.join(format!("{database}{suffix}")));
        }
    }
    for name in [AUDIT_HEADS, PINS_KNOWN, OPERATOR] {
        files.push(data_dir.join(name));
    }
    files.push(data_dir.join(AUDIT_ARCHIVE));
    files.push(pins_lock(data_dir));
    files
}

/// The lock that serialises writers of [`PINS_KNOWN`].
pub(crate) fn pins_lock(data_dir: &Path) -> PathBuf {
    data_dir.join("pins.known.lock")
}
