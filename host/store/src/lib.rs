//! The audit log, asks, pins and tokens of one data directory, in two SQLite files.
//!
//! `audit.db` holds the append-only, hash-chained [`audit_log`](audit); its heads are anchored
//! beside it in `audit.heads`, so that a cut tail shows. `state.db` holds what Toolgate remembers:
//! asks, pins, tokens; the list of pinned servers is kept a second time in `pins.known`, so that a
//! deleted `state.db` is noticed instead of being taken for a first use. Where both are gone, the log is the
//! witness ([`Memory`]): no `state.db` is made beside a log that has rows.
//!
//! Contract: what cannot be read is an error and never "nothing there"; what could not be written
//! is an error to whoever waits for it and never a lost row; a file of a newer format is refused.
//! Bounds: 16 KiB of details a row, 100,000 rows waiting, 10,000 rows or 16 MiB or 5 s a query.
//! Threat: another process of the same user edits the files. That cannot be prevented here, but it
//! is made visible: see [`AuditReader::verify`] and [`Store::pins_of`].
//!
//! Calls about `state.db` are short and synchronous; they wait at most [`BUSY_TIMEOUT`] for
//! another process. [`Store::append`] holds no lock across an await and waits for no other process on
//! its caller's thread.

pub mod audit;
mod database;
mod error;
mod kv;
pub mod operator;
mod paths;
mod rows;
pub mod state;
mod store;
mod sys;
#[cfg(test)]
mod testing;

pub use audit::archive::SealedSegment;
pub use audit::deed::Deed;
pub use audit::event::Event;
pub use audit::export::ExportedRow;
pub use audit::filter::{Filter, MAX_ROWS};
pub use audit::memory::{Memory, ProofSet, log_is_gone};
pub use audit::reader::AuditReader;
pub use audit::row::{Actor, AuditRow, CallFacts, Position, StoredRow};
pub use audit::signed::{CHECKPOINT_TYPE, Checkpoint, CheckpointError};
pub use audit::verify::{
    ChainSummary, Finding, Problem, SegmentFiles, SegmentSummary, VerifyOptions, VerifyReport,
};
pub use audit::writer::rows_given_up;
pub use database::{BUSY_TIMEOUT, Durability};
pub use error::{ErrorClass, StoreError};
pub use kv::{KvCondition, KvDone, KvPlace, KvValue};
pub use operator::{Operator, OperatorError, OperatorProof};
pub use paths::{AUDIT_ARCHIVE, AUDIT_DB, AUDIT_HEADS, OPERATOR, PINS_KNOWN, STATE_DB, protected_files};
pub use rows::{SelectOutcome, read_rows};
pub use state::asks::{Answer, Ask, AskAbout, AskBinding, AskDocument, AskState, Recorded};
pub use state::grants::{Grant, GrantQuery, GrantScope, Revoked};
pub use state::pins::{KnownServer, PinnedDefinition, Pins};
pub use state::standing::{Freeze, Frozen, Standing, StandingDecision};
pub use state::tasks::{
    Delivery, NewTask, TASKS_KEPT, Task, TaskAbout, TaskCounters, TaskStatus, TaskUpdate,
};
pub use state::tokens::{IssuedToken, TokenInfo, TokenOwner};
pub use store::{Recovered, Recovery, Store};

/// How many asks may wait for one session of a caller at a time (design section 3, step 6).
pub const DEFAULT_MAX_PENDING_ASKS: usize = 8;
