//! One module for each noun. Each command reads, calls a library and prints.

mod approvals;
pub(crate) mod audit;
mod config;
mod doctor;
mod freeze;
mod init;
mod key;
pub(crate) mod lock;
mod logs;
mod mcp;
mod operator;
mod plugin;
mod registry;
mod secret;
pub(crate) mod serve;
mod token;

use std::path::Path;

use crate::args::{Cli, Command, LockCommand, Plugin};
use crate::context;
use crate::exit::Failure;
use crate::output::{self, Format};
use crate::quickstart;

/// Runs the command that was asked for.
pub(crate) async fn run(cli: Cli) -> Result<(), Failure> {
    let explicit: Option<&Path> = cli.config.as_deref();
    if cli.locked {
        refuse_unlocked(&cli.command)?;
        context::hold_to_lock();
    }
    match cli.command {
        Command::Quickstart(args) => quickstart::run(args).await,
        Command::Init(args) => init::run(&args),
        Command::Serve(args) => serve::run(explicit, args, cli.verbose).await,
        Command::Gateway(args) => serve::process::run(explicit, &args).await,
        Command::Mcp(command) => mcp::run(explicit, command).await,
        Command::Lock(command) => lock::run(explicit, command).await,
        Command::Key(command) => key::run(&command),
        Command::Plugin(command) => plugin::run(explicit, &command).await,
        Command::Registry(command) => registry::run(command).await,
        Command::Approvals(command) => approvals::run(explicit, &command).await,
        Command::Freeze(args) => freeze::freeze(explicit, &args).await,
        Command::Thaw(args) => freeze::thaw(explicit, &args).await,
        Command::Audit(command) => audit::run(explicit, command).await,
        Command::Config(command) => config::run(explicit, command).await,
        Command::Secret(command) => secret::run(explicit, &command),
        Command::Token(command) => token::run(explicit, &command).await,
        Command::Operator(command) => operator::run(explicit, command).await,
        Command::Logs(args) => logs::run(explicit, &args).await,
        Command::Doctor(args) => doctor::run(explicit, Format::json(args.json)),
        Command::Version(args) => version(Format::json(args.json)),
        // Both are handled before a runtime exists.
        Command::Child(_) | Command::Demo(_) => Err(Failure::usage("this verb is Toolgate's own")),
    }
}

/// What changes something, or does not look at what is locked, has no meaning with `--locked`.
fn refuse_unlocked(command: &Command) -> Result<(), Failure> {
    use crate::args::Mcp;
    let fine = match command {
        Command::Serve(_) | Command::Gateway(_) | Command::Lock(LockCommand::Check(_)) => true,
        Command::Mcp(verb) => {
            matches!(verb, Mcp::Call(_) | Mcp::List(_) | Mcp::Tools(_) | Mcp::Status(_) | Mcp::Explain(_))
        }
        Command::Plugin(verb) => matches!(verb, Plugin::List(_) | Plugin::Inspect(_) | Plugin::Verify(_)),
        _ => false,
    };
    if fine {
        return Ok(());
    }
    Err(Failure::usage("--locked changes nothing, and this command does or has nothing that is locked").hint(
        "it goes with serve, mcp call|list|tools|status|explain, plugin list|inspect|verify, lock check",
    ))
}

/// A length of time of the command line: a number and `s`, `m`, `h` or `d`.
fn duration(text: &str) -> Result<std::time::Duration, Failure> {
    let unusable = || Failure::usage(format!("`{text}` is no length of time")).hint("write 30m, 12h or 7d");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(unusable)?;
    let number: u64 = number.parse().map_err(|_| unusable())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(unusable()),
    };
    let seconds = number.checked_mul(seconds).filter(|seconds| *seconds > 0).ok_or_else(unusable)?;
    Ok(std::time::Duration::from_secs(seconds))
}

fn version(format: Format) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    match format {
        Format::Json => output::json(&serde_json::json!({ "version": version })),
        Format::Text => output::line(&format!("toolgate {version}")),
    }
}
