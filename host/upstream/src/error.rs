//! What can go wrong on a connection, said so that a caller knows whether a call may have run.
//!
//! The one question that decides over a repetition is [`RequestError::may_have_run`]; it is
//! answered here and nowhere else. Texts name the server, and carry what it said at most as an
//! escaped, shortened quotation, because a server's words reach terminals and models.

use std::time::Duration;

use toolgate_base::display;

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The permit names another server: a fault of the caller.
    #[error("the permit is for server `{permit}`, not for `{server}`; nothing was started")]
    WrongPermit {
        /// The server to be opened.
        server: String,
        /// The server the permit names.
        permit: String,
    },
    /// The command does not exist or cannot be run.
    #[error(
        "server `{server}`: cannot find the command `{program}` ({detail}); correct `command`, or set PATH in the server's `env`"
    )]
    CommandNotFound {
        /// The server.
        server: String,
        /// What was configured.
        program: String,
        /// Where it was looked for.
        detail: String,
    },
    /// The operating system refused to start the child.
    #[error("server `{server}`: cannot start: {detail}")]
    Spawn {
        /// The server.
        server: String,
        /// What the system said.
        detail: String,
    },
    /// The URL cannot be used as it stands.
    #[error("server `{server}`: its url cannot be used: {detail}")]
    Url {
        /// The server.
        server: String,
        /// What is wrong and what to write instead.
        detail: String,
    },
    /// The child ended before it was ready.
    #[error("server `{server}` ended before it was ready: {detail}")]
    Exited {
        /// The server.
        server: String,
        /// Its exit status and the last lines of its standard error.
        detail: String,
    },
    /// No handshake within `timeouts.init`.
    #[error("server `{server}` was not ready within {} s; raise `timeouts.init` if it needs longer{}", .after.as_secs_f32(), quoted_tail(.stderr.as_deref()))]
    InitTimeout {
        /// The server.
        server: String,
        /// The limit.
        after: Duration,
        /// The last lines of its standard error; none of a server that is no child and has no such thing.
        stderr: Option<String>,
    },
    /// The server wants a sign-in (HTTP 401 or 403).
    #[error(
        "server `{server}` demands authentication (HTTP {status}); sign in, or correct the headers of its entry"
    )]
    Authentication {
        /// The server.
        server: String,
        /// 401 or 403.
        status: u16,
        /// Its `WWW-Authenticate` header, as it came.
        challenge: Option<String>,
    },
    /// The server answered the handshake with an error of its own.
    #[error("server `{server}` refused the handshake with error {code}: {message}")]
    Handshake {
        /// The server.
        server: String,
        /// Its JSON-RPC code.
        code: i64,
        /// Its text, escaped and shortened.
        message: String,
    },
    /// No protocol revision in common.
    #[error("server `{server}` speaks protocol revision {offered}, which Toolgate does not")]
    Version {
        /// The server.
        server: String,
        /// What it offers.
        offered: String,
    },
    /// Anything the request of the handshake met: no verdict about the era.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl ConnectError {
    /// A stable word for status output and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::WrongPermit { .. } => "wrong_permit",
            Self::CommandNotFound { .. } => "command_not_found",
            Self::Spawn { .. } => "spawn_failed",
            Self::Url { .. } => "bad_url",
            Self::Exited { .. } => "exited",
            Self::InitTimeout { .. } => "init_timeout",
            Self::Authentication { .. } => "authentication_needed",
            Self::Handshake { .. } => "handshake_refused",
            Self::Version { .. } => "no_common_version",
            Self::Request(error) => error.code(),
        }
    }

    /// Whether another attempt with the same entry can succeed without anybody doing anything:
    /// false for faults of the entry and for missing sign-in.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Exited { .. } | Self::InitTimeout { .. } | Self::Spawn { .. } => true,
            Self::Request(error) => !matches!(error, RequestError::Cancelled { .. }),
            _ => false,
        }
    }
}

/// Why a request has no outcome.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Nothing of the request left this process, or the server certainly did not take it.
    #[error("server `{server}` was not asked: {detail}")]
    NotSent {
        /// The server.
        server: String,
        /// Why.
        detail: String,
    },
    /// The request was sent, and its end is unknown. It is never sent again.
    #[error("server `{server}` gave no reply: {detail}; the request may have run and is not repeated")]
    MayHaveRun {
        /// The server.
        server: String,
        /// What happened: exit status and last stderr lines for a child.
        detail: String,
    },
    /// A deadline passed.
    #[error("server `{server}` did not answer within {} s (`timeouts.{limit}`)", .after.as_secs_f32())]
    TimedOut {
        /// The server.
        server: String,
        /// The limit that was reached.
        after: Duration,
        /// `call` (no sign of life for so long) or `max_total`.
        limit: &'static str,
        /// Whether the request had left this process.
        sent: bool,
    },
    /// The caller cancelled; the server was told if it had been asked.
    #[error("the request to server `{server}` was cancelled")]
    Cancelled {
        /// The server.
        server: String,
        /// Whether the request had left this process.
        sent: bool,
    },
    /// The server turned the request away at the HTTP level, before running it.
    #[error("server `{server}` refused the request: HTTP {status}{}", quoted(.detail))]
    Refused {
        /// The server.
        server: String,
        /// The HTTP status (3xx or 4xx).
        status: u16,
        /// The beginning of the body, or why a redirect was not followed.
        detail: String,
        /// Its `WWW-Authenticate` header, as it came.
        challenge: Option<String>,
    },
    /// HTTP 429 with a wait that is too long to hold the call.
    #[error("server `{server}` is limiting requests (HTTP 429){}; try again after that", wait_text(*.retry_after))]
    RateLimited {
        /// The server.
        server: String,
        /// How long it asks to wait, if it says.
        retry_after: Option<Duration>,
    },
    /// The reply is larger than the limit. The connection goes on.
    #[error(
        "server `{server}` sent a message of more than {limit} bytes (limit `max_message`); the request may have run and is not repeated"
    )]
    TooLarge {
        /// The server.
        server: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The reply is not what the protocol allows. The connection goes on.
    #[error("server `{server}` sent a reply that cannot be used: {detail}")]
    BadReply {
        /// The server.
        server: String,
        /// What is wrong with it and where.
        detail: String,
    },
    /// The server does not tell of this resource, though it declares subscriptions (RES-018).
    #[error("server `{server}` does not say when `{}` changes: {detail}", quote(.uri, 200))]
    NotHonored {
        /// The server.
        server: String,
        /// The resource.
        uri: String,
        /// What it said.
        detail: String,
    },
    /// The server does not declare the capability, so it was not asked (PR-22).
    #[error("server `{server}` does not offer `{capability}`, so `{method}` was not sent")]
    NotOffered {
        /// The server.
        server: String,
        /// The missing capability.
        capability: &'static str,
        /// The method.
        method: String,
    },
}

impl RequestError {
    /// Whether the server may have acted on the request. Where this is true the request must
    /// not be sent again, unless its method only reads.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::NotSent { .. }
            | Self::Refused { .. }
            | Self::RateLimited { .. }
            | Self::NotHonored { .. }
            | Self::NotOffered { .. } => false,
            Self::MayHaveRun { .. } | Self::TooLarge { .. } | Self::BadReply { .. } => true,
            Self::TimedOut { sent, .. } | Self::Cancelled { sent, .. } => *sent,
        }
    }

    /// A stable word for `_meta["toolgate/error"]`, status output and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotSent { .. } => "upstream_unavailable",
            Self::MayHaveRun { .. } => "upstream_lost",
            Self::TimedOut { .. } => "upstream_timeout",
            Self::Cancelled { .. } => "cancelled",
            Self::Refused { status: 401 | 403, .. } => "authentication_needed",
            Self::Refused { .. } => "upstream_refused",
            Self::RateLimited { .. } => "upstream_rate_limited",
            Self::TooLarge { .. } => "upstream_reply_too_large",
            Self::BadReply { .. } => "upstream_bad_reply",
            Self::NotHonored { .. } => "upstream_not_honored",
            Self::NotOffered { .. } => "upstream_not_offered",
        }
    }
}

/// A server's words for an error text: one line, every control visible, at most `max` characters.
pub(crate) fn quote(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(max).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    display::escape(&short)
}

fn quoted(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(" ({detail})") }
}

fn quoted_tail(stderr: Option<&str>) -> String {
    match stderr {
        None => String::new(),
        Some("") => "; it wrote nothing to stderr".to_owned(),
        Some(stderr) => format!("; its last words on stderr: {stderr}"),
    }
}

fn wait_text(wait: Option<Duration>) -> String {
    match wait {
        Some(wait) => format!(" and asks to wait {} s", wait.as_secs()),
        None => String::new(),
    }
}
