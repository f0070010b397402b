//! What a configuration says, once it has been read: the types the rest of the host builds on.
//!
//! Contract: a value of these types is valid. Names are checked, labels are parsed, durations are
//! bounded, variables are expanded. Source: acceptance 2.2, the design's sections 6, 9 and 9a.

mod plugins;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_base::Secret;
use toolgate_grants::Grants;
use toolgate_signing::PublicKey;

use crate::error::ConfigError;
use crate::error::Notice;
use crate::expand::{VariableUse, Variables};
use crate::grants;
use crate::permissions::Permissions;
use crate::persona::Persona;
use crate::plugins_layer::PluginsLayer;
use crate::server::Server;
use crate::sink::Sink;
use crate::skill::Skill;

pub use plugins::{Bundle, Load, Pinned, PinnedBy, Plugins, TrustRule, grants_digest};

/// The persona that always exists and is meant wherever none is named.
pub const DEFAULT_PERSONA: &str = "default";

/// The merged configuration: defaults, the operator's file, the managed layer.
#[derive(Debug, Clone)]
pub struct Config {
    /// The operator's file, if there is one.
    pub path: Option<PathBuf>,
    /// Where databases, tokens, logs and the managed layer live. Absolute; it may not exist yet.
    pub data_dir: PathBuf,
    /// The directory `secrets.env` is read from.
    pub config_dir: PathBuf,
    /// Whether `servers.d/` (and `plugins.d/`) count: `managed: on` or `off`.
    pub managed: bool,
    /// Every server of both layers, by name; disabled ones too.
    pub servers: BTreeMap<String, Server>,
    /// Every persona by name; [`DEFAULT_PERSONA`] is always among them.
    pub personas: BTreeMap<String, Persona>,
    /// Every skill by name.
    pub skills: BTreeMap<String, Skill>,
    /// Which plugins are loaded, who may sign them and what they may do.
    pub plugins: Plugins,
    /// The `plugins` block of the operator's file alone, to which the layer is added again when it changes.
    pub operator_plugins: Plugins,
    /// How agents reach Toolgate over HTTP.
    pub serve: Serve,
    /// What the operator says beforehand about whole servers.
    pub permissions: Permissions,
    /// How long questions to a person live.
    pub approvals: Approvals,
    /// What happens when a surface is seen first.
    pub pins: Pins,
    /// How the audit log is kept.
    pub audit: Audit,
    /// What the operator should know, and what of the managed layer could not be read.
    pub warnings: Vec<Notice>,
    /// Every variable the configuration names, with where and whether it was found.
    pub variables: Vec<VariableUse>,
    /// The environment that counts where it is not this process's own: a gateway serves a client by the
    /// client's.
    pub process: Option<BTreeMap<String, Secret>>,
}

impl Config {
    /// A configuration without a file: every default, and the persona `default` without servers.
    pub fn empty(data_dir: PathBuf) -> Self {
        Self {
            path: None,
            config_dir: data_dir.clone(),
            data_dir,
            managed: true,
            servers: BTreeMap::new(),
            personas: BTreeMap::from([(DEFAULT_PERSONA.to_owned(), Persona::named(DEFAULT_PERSONA))]),
            skills: BTreeMap::new(),
            plugins: Plugins::default(),
            operator_plugins: Plugins::default(),
            serve: Serve::default(),
            permissions: Permissions::default(),
            approvals: Approvals::default(),
            pins: Pins::default(),
            audit: Audit::default(),
            warnings: Vec::new(),
            variables: Vec::new(),
            process: None,
        }
    }

    /// The same configuration with the plugins layer as it is now.
    pub fn with_plugins_again(&self) -> Result<Self, ConfigError> {
        let mut again = self.clone();
        let managed = self.plugins.managed;
        again.plugins = self.operator_plugins.clone();
        again.plugins.managed = managed;
        if managed {
            let layer = PluginsLayer::of(&self.data_dir);
            self.with_variables(|variables| layer.add_to(&mut again.plugins, &mut Vec::new(), variables))?;
        }
        Ok(again)
    }

    /// Reads what an installed plugin is granted, a JSON object as text. Its variables are those of this
    /// process and of secrets.env as it is now.
    pub fn grants_of(&self, text: &str) -> Result<Grants, ConfigError> {
        let file = self.data_dir.join(crate::plugins_layer::DIRECTORY);
        self.with_variables(|variables| grants::parse(text, &file, &self.data_dir, variables))
    }

    fn with_variables<T>(
        &self,
        read: impl FnOnce(&Variables<'_>) -> Result<T, ConfigError>,
    ) -> Result<T, ConfigError> {
        let secrets = crate::secrets::read(&self.config_dir)?;
        let process = |name: &str| match &self.process {
            Some(values) => values.get(name).map(|value| value.expose().to_owned()),
            None => std::env::var(name).ok(),
        };
        read(&Variables { process: &process, secrets, dotenv: BTreeMap::new() })
    }

    /// Whether this persona exists and is bound to that server in any lane, whatever its capabilities say.
    pub fn is_bound(&self, persona: &str, server: &str) -> bool {
        self.personas.get(persona).is_some_and(|found| found.lane_of(server).is_some())
    }
}

/// The `serve` block.
#[derive(Debug, Clone)]
pub struct Serve {
    /// Where agents reach Toolgate. Default `127.0.0.1:8848`.
    pub listen: SocketAddr,
    /// Further `Host` values that are accepted; needed beside a wildcard address.
    pub allowed_hosts: Vec<String>,
    /// `Origin` values that are accepted from browsers.
    pub allowed_origins: Vec<String>,
    /// How often an idle stream gets a comment. Default 15 s.
    pub keep_alive: Duration,
    /// How long a new connection may take to send its first request's head. Default 10 s.
    pub head_timeout: Duration,
    /// How long a session, and a connection that it has to itself, may stay unused. Default 30 min.
    pub session_idle: Duration,
    /// How long a gateway that a stdio client started stays after its last client. Default 60 s.
    pub idle_exit: Duration,
    /// Legacy sessions at a time. Default 1,024.
    pub max_sessions: usize,
    /// Legacy sessions of one token at a time. Default 128.
    pub max_sessions_per_token: usize,
    /// Requests that run at once in one session, and of one token outside of sessions. Default 128.
    pub max_running: usize,
    /// Replies that wait for one client to read, MiB. Default 128.
    pub max_unread_mib: usize,
    /// The same of all clients together. Default 512.
    pub max_unread_total_mib: usize,
    /// Longest exposed tool name, 16 to 128 characters. Default 49.
    pub max_tool_name: usize,
    /// The operator's word that something in front ends TLS and is reached by nobody else.
    pub behind_proxy: bool,
}

impl Default for Serve {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8848)),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            keep_alive: Duration::from_secs(15),
            head_timeout: Duration::from_secs(10),
            session_idle: Duration::from_mins(30),
            idle_exit: Duration::from_mins(1),
            max_sessions: 1_024,
            max_sessions_per_token: 128,
            max_running: 128,
            max_unread_mib: 128,
            max_unread_total_mib: 512,
            max_tool_name: 49,
            behind_proxy: false,
        }
    }
}

impl Serve {
    /// Why these settings must not listen on `address`, if so (design, section 6: an address beyond
    /// loopback needs TLS, which this version leaves to a proxy; a wildcard needs `allowed_hosts`).
    pub fn refusal(&self, address: SocketAddr) -> Option<String> {
        let class = toolgate_net::classify(address.ip());
        if !class.is_loopback() && !self.behind_proxy {
            return Some(format!(
                "{address} can be reached from other machines and this version serves no TLS; listen on \
                 127.0.0.1, or put a TLS proxy in front and set serve.behind_proxy: true"
            ));
        }
        if class == toolgate_net::AddressClass::Unspecified && self.allowed_hosts.is_empty() {
            return Some(format!(
                "{address} listens on every address, so serve.allowed_hosts must say which names clients use"
            ));
        }
        None
    }
}

/// The `approvals` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvals {
    /// How long an ask can be answered. Default 300 s.
    pub timeout: Duration,
    /// How long a call is held for the answer. Default 50 s; never longer than `timeout`.
    pub hold: Duration,
    /// Who is asked beside the client and the command line.
    pub webhook: Option<ApprovalWebhook>,
}

/// `approvals.webhook`: a service that asks a person and brings the answer. Naming it is the grant for its
/// host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalWebhook {
    /// Where asks go; https, or http to a loopback address. It may hold a token.
    pub url: Secret,
    /// What requests are signed with, so that the service knows who asks. It proves nothing here.
    pub secret: Secret,
    /// The keys whose answers count; at least one.
    pub keys: Vec<PublicKey>,
    /// Variables that it needs and that are not set; without them nobody is asked.
    pub missing: Vec<String>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { timeout: Duration::from_mins(5), hold: Duration::from_secs(50), webhook: None }
    }
}

/// The `pins` block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pins {
    /// What a first sight of a server means.
    pub first_use: FirstUse,
}

/// `pins.first_use`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FirstUse {
    /// What an operator added is pinned as it is first seen.
    #[default]
    Pin,
    /// Nothing is shown until a person accepted it.
    Review,
}

/// The `audit` block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// What a commit survives.
    pub durability: Durability,
    /// What of a call's arguments a row keeps.
    pub arguments: Arguments,
    /// Where rows go beside the log.
    pub sinks: Vec<Sink>,
}

/// `audit.arguments`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Arguments {
    /// Their digest alone.
    #[default]
    Digest,
    /// The digest, and the arguments with what looks like a secret blanked.
    Redacted,
    /// The digest, and the arguments as they were sent.
    Full,
}

/// `audit.durability`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, `kill -9` included.
    #[default]
    Process,
    /// The end of the machine too; each commit waits for the disk.
    Disk,
}
