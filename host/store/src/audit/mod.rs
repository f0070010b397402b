//! The audit log: one table that only grows, hash-chained per writer.
//!
//! ```text
//! caller ── append ──▶ queue ──▶ first caller ──▶ BEGIN IMMEDIATE … COMMIT ──▶ audit.heads
//!                                 or thread        one group of rows           after the commit,
//!                                                                              by the thread if busy
//! ```
//!
//! - [`row`]: what a row says; [`prepare`]: its bounds; [`chain`]: its hash.
//! - [`writer`]: group commit; [`heads`]: the anchor; [`checkpoint`]: the WAL, off the call path.
//! - [`reader`], [`filter`], [`select`]: reading; [`verify`]: proving.
//! - [`memory`]: what it remembers of decisions that stand in other files.
//! - [`archive`], [`segments`]: sealing old rows; [`export`]: rows on their way out; [`signed`]:
//!   checkpoints.
//!
//! A head is written after its rows are committed, so it may lag behind the database and never
//! leads it. A database that is behind its head has therefore lost rows. After a power cut under
//! `synchronous=NORMAL` that is what `verify` reports, and it is true: rows are gone.
//!
//! A chain that contradicts its anchor is never continued, because its next head would bury the
//! contradiction: the writer begins the chain `<writer>.2` and leaves the old anchor as evidence.

pub mod archive;
pub(crate) mod chain;
mod checkpoint;
pub mod deed;
pub mod event;
pub mod export;
pub mod filter;
pub(crate) mod heads;
pub(crate) mod log;
pub mod memory;
pub(crate) mod prepare;
pub mod reader;
pub mod row;
pub(crate) mod schema;
pub(crate) mod segments;
mod select;
pub mod signed;
mod stored;
pub mod verify;
pub(crate) mod writer;
