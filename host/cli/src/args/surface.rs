//! The verbs of `toolgate mcp` for what a server offers beside tools.

use clap::Args;

use super::Who;

#[derive(Debug, Args)]
pub(crate) struct McpListed {
    /// Only this server's.
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) who: Who,
    /// Print the definitions as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpResources {
    #[command(flatten)]
    pub(crate) listed: McpListed,
    /// List the templates, from which URIs are made, instead of the resources.
    #[arg(long)]
    pub(crate) templates: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpRead {
    /// Name of the server.
    pub(crate) server: String,
    /// The resource's URI, as the server lists it or as a template makes it.
    pub(crate) uri: String,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
pub(crate) struct McpSubscribe {
    /// Name of the server.
    pub(crate) server: String,
    /// The resources' URIs, as the server lists them or as a template makes them.
    #[arg(required = true)]
    pub(crate) uris: Vec<String>,
    /// End after so many updates; without it, with Ctrl-C.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
pub(crate) struct McpPrompt {
    /// The prompt, as SERVER.PROMPT or by the name a client sees.
    pub(crate) prompt: String,
    /// Its arguments as a JSON object; `-` reads them from standard input.
    #[arg(long, value_name = "JSON|-", allow_hyphen_values = true)]
    pub(crate) json: Option<String>,
    /// How the messages are printed.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    pub(crate) output: String,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct McpComplete {
    /// Name of the server.
    pub(crate) server: String,
    /// Complete an argument of this prompt.
    #[arg(long, value_name = "NAME", required_unless_present = "template")]
    pub(crate) prompt: Option<String>,
    /// Complete a variable of this URI template.
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "prompt")]
    pub(crate) template: Option<String>,
    /// The argument and what is typed of it so far.
    #[arg(long, value_name = "NAME=TEXT")]
    pub(crate) argument: String,
    /// An argument or variable that is settled already, so that the server can take it into account; may be
    /// given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) context: Vec<String>,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
pub(crate) struct McpTasks {
    /// One task, by the id that the list shows.
    pub(crate) id: Option<String>,
    /// Only this server's.
    #[arg(long, value_name = "SERVER", conflicts_with = "id")]
    pub(crate) server: Option<String>,
    /// Note that what came of it was handed over; it is not kept for anybody else.
    #[arg(long, requires = "id")]
    pub(crate) take: bool,
    /// Have it cancelled at its server.
    #[arg(long, requires = "id", conflicts_with = "take")]
    pub(crate) cancel: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What these verbs share.
#[derive(Debug, Args)]
pub(crate) struct How {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// As whom, and whether to wait.
#[derive(Debug, Args)]
pub(crate) struct Asking {
    #[command(flatten)]
    pub(crate) who: Who,
    /// If a person has to approve it, wait for the answer (`approvals.hold`).
    #[arg(long)]
    pub(crate) wait: bool,
}
