//! `toolgate quickstart`: what Toolgate does, on a machine with nothing but this binary.
//!
//! Nothing here is staged: a real MCP client (rmcp) starts `toolgate serve --stdio`, which starts the
//! demo server, loads the signed plugins of the bundle and writes an audit log, all in one directory.
//! Each step says what was asked, what came back and why, and fails if it is not what it should be.

mod client;
mod place;
mod report;
mod steps;

use std::path::Path;

use crate::args::Quickstart;
use crate::exit::Failure;
use crate::output;
use crate::quickstart::place::Place;
use crate::quickstart::report::Report;

/// Runs every step. The directory can be used again: what an earlier run left there is replaced.
pub(crate) async fn run(args: Quickstart) -> Result<(), Failure> {
    let dir = match args.dir {
        Some(dir) => dir,
        None => default_dir()?,
    };
    let place = Place::make(&dir)?;
    let mut report = Report::new(args.json);
    report.start(&place.dir)?;
    steps::calls(&place, &mut report).await?;
    steps::changed_description(&place, &mut report).await?;
    steps::flipped_byte(&place, &mut report)?;
    steps::audit(&place, &mut report)?;
    if args.json {
        return output::json(&report.data(&place.dir));
    }
    next_steps(&place.dir)
}

/// A directory of this user's own below the data directory's parent.
fn default_dir() -> Result<std::path::PathBuf, Failure> {
    let var =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(std::path::PathBuf::from);
    let base = var("XDG_STATE_HOME").or_else(|| var("HOME").map(|home| home.join(".local/state")));
    base.map(|base| base.join("toolgate/quickstart"))
        .ok_or_else(|| Failure::usage("HOME is not set; say where to work with --dir DIR"))
}

fn next_steps(dir: &Path) -> Result<(), Failure> {
    output::line("")?;
    output::line("What to type next")?;
    output::line(
        "  a real server:   toolgate mcp add everything -- npx -y @modelcontextprotocol/server-everything",
    )?;
    output::line("                   toolgate mcp call everything.echo --json '{\"message\":\"hi\"}'")?;
    output::line("  a real client:   point it at the command  toolgate serve --stdio")?;
    output::line(
        "                   or at http://127.0.0.1:8848/mcp after  toolgate serve --listen 127.0.0.1:8848",
    )?;
    output::line(&format!(
        "  look around:     toolgate --config {}/toolgate.yaml audit tail",
        dir.display()
    ))?;
    output::line(
        "  be the operator: toolgate operator init   (a PIN that approvals ask for at the terminal)",
    )?;
    output::line("")?;
    output::line(
        "Until an operator PIN is set, an agent with a shell on this account could approve itself. With one",
    )?;
    output::line(
        "it can still edit your files: run such agents as another user, or without a shell, where that matters.",
    )
}
