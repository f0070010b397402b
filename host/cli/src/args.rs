//! The command line, noun then verb. Help texts are written for somebody who has not read the docs.

mod audit;
mod key;
mod life;
mod lock;
mod mcp;
pub(crate) mod plugin;
pub(crate) mod record;
pub(crate) mod registry;
mod sign;
pub(crate) mod surface;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use toolgate_config::Lane;

pub(crate) use audit::{
    Audit, AuditArchive, AuditCheckpoint, AuditExport, AuditQuery, AuditTail, AuditVerify,
};
pub(crate) use key::{Key, KeyNew, KeyShow, KeySign};
pub(crate) use life::{
    OciSignIn, PluginDeny, PluginInstall, PluginPublish, PluginRemove, PluginRetry, PluginSearch,
    PluginTrust, PluginUpdate, TrustAdd, TrustRemove,
};
pub(crate) use lock::{LockCheck, LockCommand, LockUpdate};
pub(crate) use mcp::{
    Mcp, McpAdd, McpCall, McpDecide, McpDecisions, McpExplain, McpForget, McpList, McpName, McpPin, McpStatus,
};
pub(crate) use plugin::Plugin;
use registry::Registry;
pub(crate) use sign::PluginSign;

/// As whom an agent acts.
#[derive(Debug, Args)]
pub(crate) struct Who {
    /// As whom.
    #[arg(long, value_name = "PERSONA", default_value = "default")]
    pub(crate) persona: String,
    /// In which kind of run: `main`, `background_job` or `automation`.
    #[arg(long, value_name = "LANE", default_value = "main", value_parser = lane)]
    pub(crate) lane: Lane,
}

fn lane(text: &str) -> Result<Lane, String> {
    Lane::parse(text).ok_or_else(|| "a lane is main, background_job or automation".to_owned())
}

/// A gateway between AI agents and MCP servers, with signed WebAssembly policies in between.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// Use this configuration file instead of looking for one.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Hold to toolgate.lock: nothing changes, what the CLI accepted on this machine does not count, and
    /// whatever differs from what was reviewed ends with 5.
    #[arg(long, global = true)]
    pub(crate) locked: bool,
    /// More lines in the log on standard error; twice for all of them.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See what Toolgate does, on a demo server, in a directory of its own.
    Quickstart(Quickstart),
    /// Write a first toolgate.yaml into your configuration directory.
    Init(Init),
    /// Serve agents: over stdio for one client, or over HTTP for many.
    Serve(Serve),
    /// MCP servers: add, list, call, pin, explain.
    #[command(subcommand)]
    Mcp(Mcp),
    /// Signed plugins: install, list, inspect, verify, update, remove, deny, trust, sign.
    #[command(subcommand)]
    Plugin(Plugin),
    /// What was reviewed of plugins and servers, in a file for pull requests: check, update.
    #[command(subcommand)]
    Lock(LockCommand),
    /// Keys that sign plugins: new, show, sign.
    #[command(subcommand)]
    Key(Key),
    /// Registries of plugins: make, publish, revoke, serve.
    #[command(subcommand)]
    Registry(Registry),
    /// The audit log: tail, query, verify, checkpoint, export, archive, sinks, deliver.
    #[command(subcommand)]
    Audit(Audit),
    /// The questions that wait for a person: list, watch, grant, deny, revoke, suggest.
    #[command(subcommand)]
    Approvals(Approvals),
    /// The configuration: check, show, env, schema, trust.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// The values that `${NAME}` in the configuration stands for.
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Tokens with which agents reach the HTTP endpoint.
    #[command(subcommand)]
    Token(Token),
    /// Stop a server, a plugin or everything; without any, list what is frozen.
    Freeze(Freeze),
    /// End a freeze.
    Thaw(Thaw),
    /// Set how the operator proves to be no agent, or recover a lost state: init, recover.
    #[command(subcommand)]
    Operator(OperatorCommand),
    /// What servers said beside their messages, or Toolgate itself: `logs SERVER`, `logs --self`.
    Logs(Logs),
    /// Check this installation and say what to mend.
    Doctor(Json),
    /// Print the version.
    Version(Json),
    /// Start a server's process; used by Toolgate itself.
    #[command(name = "__child", hide = true)]
    Child(Passed),
    /// The gateway of a data directory; started by `serve --stdio`.
    #[command(name = "__gateway", hide = true)]
    Gateway(GatewayProcess),
    /// The demo MCP server of quickstart; used by Toolgate itself.
    #[command(name = "__demo", hide = true)]
    Demo(Passed),
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The server; all of them by default.
    #[arg(conflicts_with = "own")]
    pub(crate) server: Option<String>,
    /// The log of the gateway itself.
    #[arg(long = "self")]
    pub(crate) own: bool,
    /// Go on and print what comes, until it is interrupted.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// How many of the last lines.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) lines: usize,
    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How `serve --stdio` starts a gateway.
#[derive(Debug, Args)]
pub(crate) struct GatewayProcess {
    /// Start the gateway in a session of its own, and end.
    #[arg(long)]
    pub(crate) detach: bool,
    /// The directory whose toolgate.yaml counts, if it is trusted; its client's, or none of anybody's.
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) from: PathBuf,
}

/// Arguments that are handed on untouched.
#[derive(Debug, Args)]
pub(crate) struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Json {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Quickstart {
    /// Where to work; `~/.local/state/toolgate/quickstart` by default.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Print the steps as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Replace a file that is already there.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Speak MCP on standard input and output, for a client that starts this program.
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,
    /// Over stdio, serve in this process alone, instead of starting one gateway for all clients of the
    /// data directory, or reaching the one that runs.
    #[arg(long, requires = "stdio")]
    pub(crate) no_share: bool,
    /// Listen for HTTP on this address, as 127.0.0.1:8848.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// As whom the agent acts, over stdio.
    #[arg(long, value_name = "PERSONA", default_value = "default")]
    pub(crate) persona: String,
    /// Show this server alone, under its own names, as if there were no gateway.
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Declare the servers that are needed, over stdio: no other exists for this client. Separate them with
    /// commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "server")]
    pub(crate) servers: Option<Vec<String>>,
    /// What kind of run it is, over stdio: `main`, `background_job` or `automation`.
    #[arg(long, value_name = "LANE", default_value = "main", value_parser = lane)]
    pub(crate) lane: Lane,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Read the configuration and say what is wrong with it.
    Check(Json),
    /// Print the merged configuration, secrets masked, with the origin of each entry.
    Show(Json),
    /// Print every `${NAME}` of the configuration, where it gets its value, and which have none.
    Env(Json),
    /// Print the JSON Schema of toolgate.yaml.
    Schema,
    /// Let the toolgate.yaml of the current directory count, as it is now.
    Trust(ConfigTrust),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigTrust {
    /// The file; ./toolgate.yaml by default.
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make a token for a persona and print it once.
    Issue(TokenIssue),
    /// List the tokens that were issued; the tokens themselves are not kept.
    List(Json),
    /// Revoke a token at once.
    Revoke(TokenRevoke),
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevoke {
    /// Its id, from `token list`.
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct TokenIssue {
    /// The persona whose token it is.
    #[arg(long, value_name = "PERSONA", default_value = "default")]
    pub(crate) persona: String,
    /// What kind of run holds it: `main`, `background_job` or `automation`.
    #[arg(long, value_name = "LANE", default_value = "main", value_parser = lane)]
    pub(crate) lane: Lane,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OperatorCommand {
    /// Set the PIN that verbs which widen ask for, typed at this terminal.
    Init(OperatorInit),
    /// Make a lost state.db anew: freezes, denials and asks as the audit log remembers them, and every server
    /// to be accepted again. Asks for the operator PIN.
    Recover(Json),
}

#[derive(Debug, Args)]
pub(crate) struct OperatorInit {
    /// Instead of a PIN: agents run as this other user, and whoever owns the data directory is you.
    #[arg(long, value_name = "USER")]
    pub(crate) agents_run_as: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the asks and where each stands, and the grants that are wider than one call.
    List(Json),
    /// Print all that an ask is about: every argument to its end, and what is sent beside them.
    Show(ApprovalId),
    /// Print each ask as it comes.
    Watch(ApprovalsWatch),
    /// Say yes to an ask; asks for the operator PIN.
    Grant(ApprovalsGrant),
    /// Say no to an ask.
    Deny(ApprovalId),
    /// Take a grant back: an ask that was granted and not used, or a wider grant.
    Revoke(ApprovalId),
    /// Print the labels that would have answered the asks of the past.
    Suggest(ApprovalsSuggest),
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsWatch {
    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsGrant {
    /// The ask, as ask_ with 16 digits.
    pub(crate) ask: String,
    /// How wide: this call once, the tool for the session that asked, or the tool for the persona.
    #[arg(long = "for", value_name = "SCOPE", default_value = "once", value_parser = ["once", "session", "persona"])]
    pub(crate) scope: String,
    /// How long a wider grant stands, as 30m, 8h, 7d; until it is revoked when not given.
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalId {
    /// The ask, or the grant, from `approvals list`.
    pub(crate) id: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalsSuggest {
    /// Of how long back, as 7d, 12h.
    #[arg(long, value_name = "TIME", default_value = "7d")]
    pub(crate) since: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Freeze {
    #[command(flatten)]
    pub(crate) what: FreezeWhat,
    /// Why; whoever is refused is told.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct FreezeWhat {
    /// One server: its calls are denied and those that run end.
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// One plugin: a policy then denies all it guards, an adapter fails its server's calls.
    #[arg(long, value_name = "NAME")]
    pub(crate) plugin: Option<String>,
    /// Everything.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Thaw {
    #[command(flatten)]
    pub(crate) what: FreezeWhat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Set a secret; its value is read from standard input.
    Set(SecretName),
    /// List the names that are set.
    List(Json),
    /// Remove a secret.
    Clear(SecretName),
}

#[derive(Debug, Args)]
pub(crate) struct SecretName {
    /// The name, as in `${NAME}`.
    pub(crate) name: String,
}
