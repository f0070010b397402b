//! The verbs of `toolgate audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Json;
use crate::keys::SignWith;

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Print the last rows.
    Tail(AuditTail),
    /// Print the rows that match, or the result of one read-only SELECT.
    Query(AuditQuery),
    /// Check that no row was changed, removed or cut off: of this log, or of a file that was taken from it.
    Verify(AuditVerify),
    /// Check the log and sign where each of its chains stands, to be kept where this account cannot write.
    Checkpoint(AuditCheckpoint),
    /// Print rows as JSON lines that can be verified without the log.
    Export(AuditExport),
    /// Move old rows into sealed files; the log stays whole across the cut.
    Archive(AuditArchive),
    /// How the receivers of `audit.sinks` do.
    Sinks(Json),
    /// Deliver to the receivers what waits, without a gateway, and end.
    Deliver(Json),
}

#[derive(Debug, Args)]
pub(crate) struct AuditTail {
    /// How many rows.
    #[arg(short = 'n', long, default_value_t = 20)]
    pub(crate) lines: usize,
    /// Go on printing new rows.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only events that begin with this, as mcp_.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) filter: Option<String>,
    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuditQuery {
    /// One SELECT over the table `audit_log`.
    #[arg(conflicts_with_all = ["server", "tool", "persona", "action", "since"])]
    pub(crate) sql: Option<String>,
    /// Only rows about this server.
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Only rows about this tool (original name).
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// Only rows of this persona.
    #[arg(long)]
    pub(crate) persona: Option<String>,
    /// Only rows with this action, as tool.execute.
    #[arg(long)]
    pub(crate) action: Option<String>,
    /// Only rows of the last so much time, as 7d, 2h, 30m.
    #[arg(long)]
    pub(crate) since: Option<String>,
    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuditVerify {
    /// Verify this file and nothing else: a copy of audit.db, a sealed segment, or exported rows.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// A checkpoint to compare with; may be given more than once.
    #[arg(long, value_name = "CHECKPOINT", requires = "key")]
    pub(crate) against: Vec<PathBuf>,
    /// The public key that signed the checkpoint: ed25519:… or a file that holds it; may be given more than once.
    #[arg(long, value_name = "KEY", requires = "against")]
    pub(crate) key: Vec<String>,
    /// Where the sealed segments are, if not in audit-archive beside the log.
    #[arg(long, value_name = "DIR")]
    pub(crate) segments: Option<PathBuf>,
    /// The sealed segments are not at hand: take the hashes they end with as they stand.
    #[arg(long, conflicts_with = "segments")]
    pub(crate) without_segments: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuditCheckpoint {
    #[command(flatten)]
    pub(crate) with: SignWith,
    /// Write the checkpoint to this file, which must not exist; on standard output otherwise.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AuditExport {
    /// Only rows since this time: 2026-11-29, 2026-11-29T12:00:00Z, or an age as 7d.
    #[arg(long, value_name = "TIME", conflicts_with = "after")]
    pub(crate) since: Option<String>,
    /// Only rows after this number.
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<i64>,
    /// Write to this file, which must not exist; on standard output otherwise.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArchive {
    /// Rows before this time: 2026-11-29, 2026-11-29T12:00:00Z, or an age as 90d.
    #[arg(long, value_name = "TIME")]
    pub(crate) before: String,
    /// Print the segments as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
