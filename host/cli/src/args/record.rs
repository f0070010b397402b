//! The arguments of `toolgate mcp record`.

use std::path::PathBuf;

use clap::Args;

use super::Who;

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
    #[command(flatten)]
    pub(crate) who: Who,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
