//! One configured upstream server.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};
use toolgate_base::{Secret, Timeouts};
use toolgate_grants::Grants;
use toolgate_net::Url;
use toolgate_signing::Digest;

use crate::masked::{mask_template, mask_url};
use crate::masking::Masking;
use crate::model::grants_digest;
use crate::places::Places;

/// One entry of `servers`, or one file of the managed layer.
#[derive(Debug, Clone)]
pub struct Server {
    /// The key, checked by `toolgate_labels::check_server_name`.
    pub name: String,
    /// Which layer it comes from.
    pub origin: Origin,
    /// Whether its file is one that Toolgate wrote or the operator accepted; always for the operator's
    /// own entries. What is not accepted is bound to nobody.
    pub accepted: bool,
    /// How it is reached.
    pub transport: Transport,
    /// `enabled: false`: never connected, reported as `disabled`. Default true.
    pub enabled: bool,
    /// Which era is spoken. Default [`Protocol::Auto`].
    pub protocol: Protocol,
    /// Who shares a connection. Default [`Instance::PerCaller`].
    pub instance: Instance,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// When it is started again, and when no more.
    pub restarts: Restarts,
    /// Connections to it at a time, whoever's they are. Default 256.
    pub max_connections: usize,
    /// Which tools exist for clients.
    pub tools: ToolFilter,
    /// Exceptions and locks (rows TRU-*).
    pub trust: Trust,
    /// The adapter in front of it.
    pub adapter: Option<AdapterUse>,
    /// Variables without a value that stand in a header, URL, command or working directory. Not
    /// empty: the server is not connected and is shown as `missing-credential` (FT-15).
    pub missing_env: Vec<String>,
    /// What becomes of the questions it asks in the middle of a call.
    pub questions: Questions,
    /// How many requests a minute each persona may make; `None`: no limit. As many may come at once.
    pub rate_limit: Option<NonZeroU32>,
    /// The operator's own words about it.
    pub description: Option<String>,
    /// The parts of the transport as they may be shown: templates instead of expanded values.
    pub(crate) shown: Shown,
    /// What the variables held that are expanded anywhere in the entry.
    pub(crate) held: Vec<Secret>,
}

impl Server {
    /// A stdio server with every default, as `mcp add NAME -- COMMAND ARGS…` makes it.
    pub fn stdio(name: impl Into<String>, command: impl Into<String>, args: Vec<String>) -> Self {
        let transport = Transport::Stdio { command: command.into(), args, env: BTreeMap::new(), cwd: None };
        Self::with(name.into(), transport)
    }

    /// A streamable HTTP server with every default, as `mcp add NAME URL` makes it.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::with(name.into(), Transport::StreamableHttp { url: url.into(), headers: Vec::new() })
    }

    /// The URL as it may be shown: the template where variables were expanded in it; userinfo and query values
    /// that stand there themselves are masked either way. `None` for stdio.
    pub fn shown_url(&self) -> Option<String> {
        match &self.transport {
            Transport::Stdio { .. } => None,
            Transport::StreamableHttp { url, .. } | Transport::Sse { url, .. } => {
                Some(self.shown.url.as_deref().map_or_else(|| mask_url(url), mask_template))
            }
        }
    }

    /// The command as it may be shown: the template where variables were expanded in it. `None` where there is
    /// none.
    pub fn shown_command(&self) -> Option<String> {
        match &self.transport {
            Transport::Stdio { command, .. } => {
                Some(self.shown.command.clone().unwrap_or_else(|| command.clone()))
            }
            Transport::StreamableHttp { .. } | Transport::Sse { .. } => None,
        }
    }

    /// A text that a server or the system wrote, without what it may repeat of this entry: the values of
    /// its environment and its headers, a header's without its scheme too, and those of variables wherever
    /// they stand in it, but for the variables that say where things are, as `HOME` does. See [`Masking`].
    pub fn without_secrets(&self, text: &str) -> String {
        self.masking().apply(text)
    }

    /// The same for who has many texts.
    pub fn masking(&self) -> Masking {
        Masking::of(self)
    }

    fn with(name: String, transport: Transport) -> Self {
        Self {
            name,
            origin: Origin::Operator,
            accepted: true,
            transport,
            enabled: true,
            protocol: Protocol::Auto,
            instance: Instance::PerCaller,
            timeouts: Timeouts::default(),
            restarts: Restarts::default(),
            max_connections: 256,
            tools: ToolFilter::default(),
            trust: Trust::default(),
            adapter: None,
            missing_env: Vec::new(),
            questions: Questions::default(),
            rate_limit: None,
            description: None,
            shown: Shown::default(),
            held: Vec::new(),
        }
    }
}

/// Which layer an entry comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The operator's own file, which Toolgate never rewrites.
    Operator,
    /// A file of the managed layer, which the CLI wrote.
    Managed(PathBuf),
}

/// How a server is reached. `Debug` shows neither values of variables nor secrets of a URL.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A child process that speaks over its standard input and output.
    Stdio {
        /// The program: an absolute path, or a name that is looked up in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables it gets beside the few every child gets.
        env: BTreeMap<String, Secret>,
        /// Its working directory, absolute.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP. The URL is http or https and has a host.
    StreamableHttp {
        /// The endpoint. It may hold a secret: show [`Server::shown_url`] instead.
        url: String,
        /// Headers of every request: name as written, value.
        headers: Vec<(String, Secret)>,
    },
    /// HTTP+SSE of revision 2024-11-05.
    Sse {
        /// Where the event stream is, as of streamable HTTP.
        url: String,
        /// Headers of the stream and of every message.
        headers: Vec<(String, Secret)>,
    },
}

impl Transport {
    /// The canonical name: `stdio`, `streamable-http` or `sse`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::StreamableHttp { .. } => "streamable-http",
            Self::Sse { .. } => "sse",
        }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Arguments may be expanded secrets, so only their number is told.
            Self::Stdio { command: _, args, env, cwd } => formatter
                .debug_struct("Stdio")
                .field("args", &args.len())
                .field("env", env)
                .field("cwd", cwd)
                .finish_non_exhaustive(),
            // A path or query may be an expanded secret too.
            Self::StreamableHttp { url, headers } | Self::Sse { url, headers } => formatter
                .debug_struct(self.name())
                .field(
                    "origin",
                    &Url::parse(url)
                        .map_or_else(|_| "***".to_owned(), |url| url.origin().ascii_serialization()),
                )
                .field("headers", headers)
                .finish(),
        }
    }
}

/// `protocol`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Probe, and remember.
    #[default]
    Auto,
    /// The initialize handshake, revisions up to 2025-11-25.
    Legacy,
    /// Revision 2026-07-28, never falling back.
    Modern,
}

/// `instance`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Instance {
    /// One connection for each persona and credential.
    #[default]
    PerCaller,
    /// One for each session of a client.
    Session,
    /// One for all: the operator's word that callers may share its state.
    Shared,
}

/// What becomes of a server's own questions (rows CFG-046, CFG-047, SMP-001).
// One switch for each thing that a server may ask for, as the configuration has them.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Questions {
    /// `elicitation: auto_decline`: its questions to a person are declined, and nobody sees them.
    /// Default false, `prompt`.
    pub auto_decline: bool,
    /// How long a person may take; then the server hears `cancel`. Default 120 s.
    pub timeout: Duration,
    /// `sampling: forward`: it may ask the client's model. Default false, `refuse`.
    pub sampling: bool,
    /// `roots: forward`: it may ask which directories the client works in. Default false, `refuse`.
    pub roots: bool,
    /// `logging: forward`: what it logs during a call reaches the client of the call, if that wants it.
    /// Default false, `refuse`.
    pub logging: bool,
}

impl Default for Questions {
    fn default() -> Self {
        Self {
            auto_decline: false,
            timeout: Duration::from_mins(2),
            sampling: false,
            roots: false,
            logging: false,
        }
    }
}

/// `restarts`: a server that fails is started again ever more slowly, and then no more (GW-03).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restarts {
    /// The first pause; each further one is twice as long. Default 1 s.
    pub first: Duration,
    /// No pause is longer. Default 60 s.
    pub longest: Duration,
    /// So many starts within [`Restarts::within`] are the last. Default 6.
    pub starts: usize,
    /// The time over which starts are counted. Default 60 s.
    pub within: Duration,
}

impl Default for Restarts {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            longest: Duration::from_mins(1),
            starts: 6,
            within: Duration::from_mins(1),
        }
    }
}

/// `tools`: exact names, as the server gives them or as clients see them. `deny` wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these. Empty: every tool, as acceptance 2.2 writes it.
    pub allow: Vec<String>,
    /// Never these.
    pub deny: Vec<String>,
}

/// `trust` (rows TRU-001 to TRU-006).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// `<server>__<tool>` names that need no approval. One that matches nothing grants nothing.
    pub auto_approve_tools: Vec<String>,
    /// The whole surface must have this digest (`sha256:<64 hex>`, checked), or the server is refused.
    pub pinned_tool_hash: Option<String>,
    /// It drives the real machine: grants last a session at most.
    pub host_escape: bool,
}

/// `adapter`.
#[derive(Clone, PartialEq)]
pub struct AdapterUse {
    /// The adapter's plugin name.
    pub plugin: String,
    /// A JSON object, as text.
    pub settings_json: String,
    /// Where each of them stands.
    pub settings_places: Places,
    /// What it may reach beyond its own memory.
    pub granted: Grants,
}

impl Server {
    /// Digest of what its adapter is granted, settings and grants, as a lock has it; templates stand in
    /// place of what variables expand to. None without an adapter.
    pub fn adapter_grants_digest(&self) -> Option<Digest> {
        self.adapter.as_ref()?;
        let object = |shown: &Option<Value>| shown.clone().unwrap_or_else(|| Value::Object(Map::new()));
        Some(grants_digest(&[], &object(&self.shown.settings), &object(&self.shown.grants)))
    }
}

impl fmt::Debug for AdapterUse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Settings may hold what a variable expanded to.
        formatter.debug_struct("AdapterUse").field("plugin", &self.plugin).finish_non_exhaustive()
    }
}

/// What may be shown of a transport. Empty where nothing was expanded.
#[derive(Clone, Default)]
pub(crate) struct Shown {
    pub(crate) command: Option<String>,
    pub(crate) args: Option<Vec<String>>,
    pub(crate) cwd: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) settings: Option<serde_json::Value>,
    pub(crate) grants: Option<serde_json::Value>,
}

impl fmt::Debug for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Literal arguments are in here too, and only `masked` knows which of them to hide.
        formatter.write_str("Shown")
    }
}

/// Whether what stands under this name is a secret, by the words in it.
pub fn names_secret(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "token",
        "secret",
        "password",
        "passwd",
        "api_key",
        "api-key",
        "apikey",
        "authorization",
        "private_key",
    ];
    let name = name.to_ascii_lowercase();
    // `GITHUB_TOKEN_FILE=/run/secrets/x` names where a secret is, and is none.
    NAMES.iter().any(|word| name.contains(word)) && !name.ends_with("_file") && !name.ends_with("_path")
}

/// Whether a literal value under this name looks like a secret (SEC-014): by the name of its key, or
/// by how well-known tokens begin. A text with `${` in it is a reference and never one.
pub fn looks_like_secret(name: &str, value: &str) -> bool {
    const BEGINNINGS: [&str; 15] = [
        "sk-",
        "ghp_",
        "gho_",
        "ghs_",
        "ghu_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "AKIA",
        "npm_",
        "hf_",
        "Bearer ",
        "Basic ",
        "pypi-",
    ];
    let value = value.trim();
    if value.len() < 4 || value.contains("${") {
        return false;
    }
    let plain = ["true", "false", "none"].contains(&value) || value.bytes().all(|byte| byte.is_ascii_digit());
    (names_secret(name) && !plain)
        || BEGINNINGS.iter().any(|start| value.len() > start.len() + 3 && value.starts_with(start))
}
