//! `toolgate mcp …`: servers and what they offer.

use clap::{Args, Subcommand};

use super::{Who, surface};

#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// Add a server: `add NAME -- COMMAND ARGS…` or `add NAME URL`.
    Add(McpAdd),
    /// List the configured servers, or one tool: `list SERVER.TOOL --schema`.
    List(McpList),
    /// Show one server's entry, secrets masked.
    Get(McpName),
    /// Show the state of every server: in the gateway that runs, or by connecting here.
    Status(McpStatus),
    /// Start a server again in the running gateway, whatever became of earlier starts.
    Reconnect(McpName),
    /// List the tools a persona sees.
    Tools(surface::McpListed),
    /// List the resources a persona sees, or the templates that make their URIs.
    Resources(surface::McpResources),
    /// Read a resource: `read SERVER URI`.
    Read(surface::McpRead),
    /// Print a resource's URI whenever its server says that it changed: `subscribe SERVER URI…`.
    Subscribe(surface::McpSubscribe),
    /// List the prompts a persona sees.
    Prompts(surface::McpListed),
    /// Render a prompt: `prompt SERVER.PROMPT --json '{"a":"b"}'`.
    Prompt(surface::McpPrompt),
    /// Complete an argument of a prompt or of a resource template.
    Complete(surface::McpComplete),
    /// Call a tool: `call SERVER.TOOL --json '{"a":1}'`.
    Call(McpCall),
    /// List what servers work on after they answered a call; with an id, show what came of it.
    Tasks(surface::McpTasks),
    /// Remove a server that `mcp add` added.
    Remove(McpName),
    /// Say why a call would pass or not, policy by policy.
    Explain(McpExplain),
    /// Show a server's pins; with --accept, make what it shows now the approved surface.
    Pin(McpPin),
    /// Let a server or a tool pass without an ask: `allow SERVER[/TOOL]`; asks for the operator PIN.
    Allow(McpDecide),
    /// Ask about a server or a tool from now on, whatever policies allow.
    Ask(McpDecide),
    /// Deny a server or a tool from now on, whatever policies allow.
    Deny(McpDecide),
    /// Take back what `allow`, `ask` or `deny` decided about a server or a tool; asks for the operator PIN where
    /// it was an ask or a denial.
    Forget(McpForget),
    /// List what `allow`, `ask` and `deny` decided, and what each of it outranks or is outranked by.
    Decisions(McpDecisions),
    /// Show how a server's tools differ from the approved ones.
    Diff(McpName),
    /// Write documents for the author of a plugin: what it would be asked about this server.
    Record(super::record::McpRecord),
}

#[derive(Debug, Args)]
pub(crate) struct McpAdd {
    /// Name of the server.
    pub(crate) name: String,
    /// The URL of a remote server, or the command with its arguments after `--`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) target: Vec<String>,
    /// The URL of a remote server.
    #[arg(long, conflicts_with = "target")]
    pub(crate) url: Option<String>,
    /// stdio, streamable-http (also: http) or sse; follows from the target when not given.
    #[arg(short, long)]
    pub(crate) transport: Option<String>,
    /// Set a variable for the server's process: KEY=VALUE, or KEY alone to take it from Toolgate's.
    #[arg(short, long = "env", value_name = "KEY[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Send a header to a remote server: "Name: value".
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// Bind it to this persona; may be repeated.
    #[arg(long, value_name = "PERSONA", default_value = "default")]
    pub(crate) persona: Vec<String>,
    /// Do not connect now; the tools are pinned at the first connection.
    #[arg(long)]
    pub(crate) no_probe: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpList {
    /// One tool, as SERVER.TOOL.
    pub(crate) selector: Option<String>,
    /// Print that tool's input schema.
    #[arg(long, requires = "selector")]
    pub(crate) schema: bool,
    /// How long to wait, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<u64>,
    #[command(flatten)]
    pub(crate) who: Who,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpName {
    /// Name of the server.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) who: Who,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpStatus {
    /// Only this server.
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) who: Who,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpCall {
    /// The tool, as SERVER.TOOL or by the name a client sees.
    pub(crate) tool: String,
    /// The arguments as a JSON object; `-` reads them from standard input.
    #[arg(long, value_name = "JSON|-", allow_hyphen_values = true)]
    pub(crate) json: Option<String>,
    /// How the result is printed.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    pub(crate) output: String,
    /// How long to wait, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<u64>,
    /// Where a person has to approve the call, wait for the answer, at most approvals.hold.
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) who: Who,
}

#[derive(Debug, Args)]
pub(crate) struct McpExplain {
    /// The tool, as SERVER.TOOL or by the name a client sees.
    pub(crate) tool: String,
    /// The arguments as a JSON object; `-` reads them from standard input.
    #[arg(long, value_name = "JSON|-", default_value = "{}", allow_hyphen_values = true)]
    pub(crate) arguments: String,
    #[command(flatten)]
    pub(crate) who: Who,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpDecide {
    /// The server, or one of its tools by its original name: SERVER or SERVER/TOOL.
    pub(crate) what: String,
    /// For which persona.
    #[arg(long, value_name = "PERSONA", default_value = "default")]
    pub(crate) persona: String,
    /// Only tools that say of themselves that they only read.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Record it although no tool of this name was approved of the server, or the server was never reached.
    #[arg(long)]
    pub(crate) anyway: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpForget {
    /// What was decided about, as `mcp decisions` names it: SERVER or SERVER/TOOL.
    pub(crate) what: String,
    /// For which persona.
    #[arg(long, value_name = "PERSONA", default_value = "default")]
    pub(crate) persona: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpDecisions {
    /// Only what is about this server and its tools.
    pub(crate) server: Option<String>,
    /// Only this persona's.
    #[arg(long, value_name = "PERSONA")]
    pub(crate) persona: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpPin {
    /// Name of the server.
    pub(crate) name: String,
    /// Approve what the server shows now.
    #[arg(long)]
    pub(crate) accept: bool,
    /// Approve only the surface of this digest, as `mcp pin NAME` shows it.
    #[arg(long, value_name = "SHA256", requires = "accept")]
    pub(crate) surface: Option<String>,
    #[command(flatten)]
    pub(crate) who: Who,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
