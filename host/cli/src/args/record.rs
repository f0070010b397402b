//! The arguments of `toolgate mcp record`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct McpRecord {
    /// Name of the server.
    pub(crate) server: String,
    /// Where the documents go; files that are there stay as they are.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Call this tool as well, under the policies in force: TOOL or TOOL='{"a":1}'. May be repeated.
    #[arg(long = "call", value_name = "TOOL[=JSON]")]
    pub(crate) calls: Vec<String>,
    /// As whom.
    #[arg(long, value_name = "PERSONA", default_value = "default")]
    pub(crate) persona: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
