//! The audit log, asks, grants, pins and tokens, in SQLite.
