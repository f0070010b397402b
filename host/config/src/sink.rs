//! Where audit rows go beside the log: `audit.sinks`.

use std::path::PathBuf;

use toolgate_base::Secret;

/// Size at which a file is rotated, unless its entry says otherwise: 64 MiB.
pub(crate) const DEFAULT_ROTATE: u64 = 64 << 20;
/// Rotated files that are kept, unless the entry says otherwise.
pub(crate) const DEFAULT_KEEP: u64 = 10;

/// One entry of `audit.sinks`. Naming it is the grant for its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sink {
    /// What the operator calls it; also names its cursor.
    pub name: String,
    /// What a row looks like there.
    pub format: SinkFormat,
    /// Where rows go.
    pub target: SinkTarget,
    /// Variables that it needs and that are not set; without them it cannot be served.
    pub missing: Vec<String>,
}

/// `format` of a sink.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SinkFormat {
    /// The row as `audit export` writes it (docs/audit-event.schema.json).
    #[default]
    Toolgate,
    /// An event of the Open Cybersecurity Schema Framework, class API Activity.
    Ocsf,
}

/// Where rows go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkTarget {
    /// JSON lines in a file that is rotated.
    Jsonl {
        /// The file; absolute.
        path: PathBuf,
        /// The size in bytes at which another file is begun.
        rotate: u64,
        /// How many rotated files are kept. The oldest goes.
        keep: u64,
    },
    /// RFC 5424 messages over TLS (RFC 5425).
    Syslog {
        /// Host name or address; the server's certificate must be of it.
        host: String,
        /// Port; 6514 where none is written.
        port: u16,
    },
    /// OpenTelemetry logs over HTTP, in JSON.
    Otlp {
        /// The endpoint with its path, such as `https://HOST:4318/v1/logs`.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, Secret)>,
    },
    /// JSON lines in the body of a POST.
    Webhook {
        /// The endpoint.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, Secret)>,
    },
}

impl SinkTarget {
    /// The word of `type`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Jsonl { .. } => "jsonl",
            Self::Syslog { .. } => "syslog",
            Self::Otlp { .. } => "otlp",
            Self::Webhook { .. } => "webhook",
        }
    }
}
