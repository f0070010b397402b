//! One module for each noun. Each command reads, calls a library and prints.

mod approvals;
mod audit;
mod config;
mod doctor;
mod init;
mod key;
mod mcp;
mod operator;
mod plugin;
mod registry;
mod secret;
mod serve;
mod token;

use std::path::Path;

use crate::args::{Cli, Command};
use crate::exit::Failure;
use crate::output::{self, Format};
use crate::quickstart;

/// Runs the command that was asked for.
pub(crate) async fn run(cli: Cli) -> Result<(), Failure> {
    let explicit: Option<&Path> = cli.config.as_deref();
    match cli.command {
        Command::Quickstart(args) => quickstart::run(args).await,
        Command::Init(args) => init::run(&args),
        Command::Serve(args) => serve::run(explicit, args).await,
        Command::Mcp(command) => mcp::run(explicit, command).await,
        Command::Key(command) => key::run(&command),
        Command::Plugin(command) => plugin::run(explicit, &command).await,
        Command::Registry(command) => registry::run(command).await,
        Command::Approvals(command) => approvals::run(explicit, &command),
        Command::Audit(command) => audit::run(explicit, command).await,
        Command::Config(command) => config::run(explicit, command).await,
        Command::Secret(command) => secret::run(explicit, &command),
        Command::Token(command) => token::run(explicit, &command).await,
        Command::Operator(command) => operator::run(explicit, command).await,
        Command::Doctor(args) => doctor::run(explicit, Format::json(args.json)),
        Command::Version(args) => version(Format::json(args.json)),
        // Both are handled before a runtime exists.
        Command::Child(_) | Command::Demo(_) => Err(Failure::usage("this verb is Toolgate's own")),
    }
}

fn version(format: Format) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    match format {
        Format::Json => output::json(&serde_json::json!({ "version": version })),
        Format::Text => output::line(&format!("toolgate {version}")),
    }
}
