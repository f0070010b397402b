//! What can go wrong with the store, and whose fault it is.
//!
//! Every message says what happened, in which file, and what to do next. [`StoreError::class`]
//! sorts errors by the exit code they lead to, so that no caller matches on texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_signing::Digest;

/// A failure of the store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file was written by a later Toolgate; opening it could damage it.
    #[error(
        "{} has format {found}, this Toolgate knows formats up to {known}; \
         use the newer Toolgate that wrote it, or another data directory", path.display()
    )]
    NewerFormat {
        /// The database.
        path: PathBuf,
        /// Its format number.
        found: i64,
        /// The newest number this build understands.
        known: i64,
    },
    /// A file or directory could not be read or written.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb phrase.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: Arc<std::io::Error>,
    },
    /// SQLite refused an operation.
    #[error("could not {doing} in {}: {source}", path.display())]
    Sqlite {
        /// What was attempted, as a verb phrase.
        doing: &'static str,
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        source: Arc<rusqlite::Error>,
    },
    /// Another process held the database for too long.
    #[error(
        "{} stayed locked by another process while trying to {doing}; \
         end that process or try again", path.display()
    )]
    Locked {
        /// What was attempted.
        doing: &'static str,
        /// The database.
        path: PathBuf,
    },
    /// A file is there, but what it holds cannot be trusted.
    #[error("{} is damaged: {what}; {repair}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What did not fit.
        what: String,
        /// What the operator can do.
        repair: &'static str,
    },
    /// The audit row could not be committed, so what it announces must not happen.
    #[error("the audit row was not written, so the call is refused: {0}")]
    NotRecorded(Arc<StoreError>),
    /// `state.db` is gone or empty, and its data directory was in use.
    #[error(
        "{} is gone or empty, but {evidence}: what was denied, frozen and pinned cannot be known, so nothing is \
         served. Put a copy of it back, or run `toolgate operator recover`, which restores the freezes, denials \
         and asks that the audit log remembers and has every server accepted again", path.display()
    )]
    StateLost {
        /// The file.
        path: PathBuf,
        /// What says that the directory was in use.
        evidence: String,
    },
    /// `state.db` is there, so there is nothing to recover.
    #[error("{} is there and has its tables, so nothing was recovered", path.display())]
    StateIsThere {
        /// The file.
        path: PathBuf,
    },
    /// The audit log tells that a server was pinned, and nothing else does (PI-05).
    #[error(
        "the pins of server `{server}` are gone: the audit log has `server_pinned` for it, and neither state.db nor \
         pins.known knows of any. Look at the server with `toolgate mcp diff {server}` and accept it again with \
         `toolgate mcp pin {server} --accept`"
    )]
    PinsForgotten {
        /// The server.
        server: String,
    },
    /// A sealed segment that may tell whether a server was pinned is not there.
    #[error(
        "whether server `{server}` was pinned before cannot be known: {} is not the file that was sealed. Bring it \
         back, or look at the server with `toolgate mcp diff {server}` and accept it with `toolgate mcp pin \
         {server} --accept`", file.display()
    )]
    SegmentNeeded {
        /// The server.
        server: String,
        /// The segment's file.
        file: PathBuf,
    },
    /// More rows wait than the writer may hold in memory.
    #[error(
        "{limit} audit rows wait to be written already, so the call is refused; \
         the disk under the data directory is too slow or stuck"
    )]
    QueueFull {
        /// The limit that was reached.
        limit: usize,
    },
    /// The writer has ended; nothing more is recorded.
    #[error("the audit writer has ended, so nothing can be recorded; restart Toolgate")]
    WriterGone,
    /// A writer's name is not a chain's name.
    #[error("`{name}` cannot name an audit chain: use 1 to 16 of a-z, 0-9 and `-`")]
    WriterName {
        /// The name that was given.
        name: String,
    },
    /// The pins of a server that was pinned once are gone or were changed (PI-05).
    #[error(
        "the pins of server `{server}` cannot be trusted: {what}; its calls are refused. \
         Look at the server with `toolgate mcp diff {server}` and accept it again with \
         `toolgate mcp pin {server} --accept`"
    )]
    PinsLost {
        /// The server's name when it was pinned, or its identity where no name is left.
        server: String,
        /// Its identity.
        identity: Digest,
        /// What did not fit.
        what: String,
    },
    /// A server offers more definitions than one pin set may have.
    #[error("the server has {found} definitions; {limit} can be pinned")]
    TooManyDefinitions {
        /// How many it has.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The caller has as many open asks as it may have.
    #[error(
        "{pending} questions of this {of} wait for an answer already (limit {limit}); \
         answer them with `toolgate approvals list`, or wait until they expire"
    )]
    TooManyAsks {
        /// How many are pending.
        pending: usize,
        /// The limit.
        limit: usize,
        /// Whose they are: `client` or `credential`.
        of: &'static str,
    },
    /// The open asks of one caller are too long to be kept whole, and one that is not could not be read.
    #[error(
        "the open questions of this caller would have {open} bytes (limit {limit}); answer some with \
         `toolgate approvals list`, or have the agent ask for less at a time"
    )]
    AsksTooLong {
        /// How many bytes they would have.
        open: i64,
        /// The limit.
        limit: i64,
    },
    /// Another process changed it between the look and the change.
    #[error("another process changed it in this moment, so nothing was done; look again and repeat it")]
    Overtaken,
    /// There are more wider grants than are kept.
    #[error("{limit} grants are kept, which is the limit; revoke some: `toolgate approvals list`")]
    TooManyGrants {
        /// The limit.
        limit: i64,
    },
    /// There is more of what the operator decided or froze than is kept.
    #[error(
        "{limit} {what} are kept, which is the limit; take some back, or freeze everything: \
         `toolgate freeze --all --reason TEXT`"
    )]
    TooManyStanding {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: i64,
    },
    /// There are more tasks than are kept, and none of them is over.
    #[error(
        "{limit} tasks of servers are kept, which is the limit, and none of them is over; \
         look at them with `toolgate mcp tasks` and cancel some"
    )]
    TooManyTasks {
        /// The limit.
        limit: i64,
    },
    /// A server that can leave its sandbox gets no grant that outlives a session (APR-020).
    #[error(
        "server '{server}' has trust.host_escape, so nothing of it is granted for longer than a session; \
         use --for once or --for session"
    )]
    GrantTooWide {
        /// The server.
        server: String,
    },
    /// The ask is not in a state that allows the answer.
    #[error("ask {id} cannot be answered: it is {state}")]
    AskClosed {
        /// The ask.
        id: String,
        /// Its state, or "unknown".
        state: String,
    },
    /// A query was refused before or while it ran.
    #[error("the query was refused: {why}")]
    QueryRefused {
        /// Which rule it broke.
        why: String,
    },
    /// The thread that ran a blocking part of the store ended early.
    #[error("an internal task of the store ended early: {0}")]
    Internal(String),
}

/// Which exit code an error leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Exit 1: it failed and may work later.
    Failed,
    /// Exit 2: the request or the set-up does not fit this Toolgate.
    Usage,
    /// Exit 5: what is stored does not match what was stored.
    Integrity,
}

impl StoreError {
    /// A database that has another name somewhere else.
    pub(crate) fn linked(path: &Path) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            what: "it is a link, so another data directory would share its state".to_owned(),
            repair: "give this data directory a file of its own, or use the directory that the link leads to",
        }
    }

    /// The class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NewerFormat { .. }
            | Self::WriterName { .. }
            | Self::QueryRefused { .. }
            | Self::GrantTooWide { .. } => ErrorClass::Usage,
            Self::Damaged { .. }
            | Self::PinsLost { .. }
            | Self::PinsForgotten { .. }
            | Self::SegmentNeeded { .. }
            | Self::StateLost { .. } => ErrorClass::Integrity,
            Self::NotRecorded(inner) => inner.class(),
            _ => ErrorClass::Failed,
        }
    }

    /// Whether it is an audit row that could not be written, so that nothing of what it announces happened.
    pub fn is_unrecorded(&self) -> bool {
        matches!(self, Self::NotRecorded(_) | Self::QueueFull { .. } | Self::WriterGone)
    }

    /// Whether the same operation may succeed later: a full disk and a held lock pass.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Io { .. } | Self::Locked { .. } => true,
            Self::Sqlite { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(
                    rusqlite::ErrorCode::DiskFull
                        | rusqlite::ErrorCode::SystemIoFailure
                        | rusqlite::ErrorCode::CannotOpen
                        | rusqlite::ErrorCode::OutOfMemory
                )
            ),
            _ => false,
        }
    }
}
