//! The binary `toolgate`: reads the command line, calls the libraries, prints, and ends with a code.
//!
//! Contract: nothing here decides; standard output carries only what was asked for (JSON stays
//! JSON), everything else goes to standard error. Exit codes are those of [`exit::Code`].

mod args;
mod commands;
mod context;
mod couriers;
mod demo;
mod exit;
mod json;
mod keys;
mod logging;
mod next_step;
mod operator;
mod output;
mod quickstart;
mod sys;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command, Mcp};
use crate::exit::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    // These two replace or serve the process itself and want no runtime of ours and no log.
    match cli.command {
        Command::Child(passed) => toolgate_upstream::child_main(passed.rest),
        Command::Demo(passed) => return demo::main(&passed.rest),
        Command::Gateway(args) if args.detach => return sys::detach(),
        _ => {}
    }
    logging::start(cli.verbose, !matches!(cli.command, Command::Gateway(_)), tells_failures(&cli.command));
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::failed(format!("cannot start: {error}")).report(),
    };
    let ended = runtime.block_on(async {
        sys::outlive_file_limit();
        commands::run(cli).await
    });
    // A blocking read of standard input must not keep the process once the work is done.
    runtime.shutdown_background();
    let lost = match toolgate_store::rows_given_up() {
        0 => None,
        rows => Some(
            Failure::failed(format!(
                "{rows} rows of the audit log could not be written and are lost; everything else was done"
            ))
            .hint("the reason is in the log above: make room on the disk, or end what holds audit.db"),
        ),
    };
    match (ended, lost) {
        (Ok(()), None) => ExitCode::SUCCESS,
        (Ok(()), Some(lost)) => lost.report(),
        (Err(failure), lost) => {
            // What failed first is what the exit code says.
            if let Some(lost) = lost {
                lost.report();
            }
            failure.report()
        }
    }
}

/// Whether a command's own output says why a server cannot be reached.
fn tells_failures(command: &Command) -> bool {
    matches!(command, Command::Mcp(Mcp::Add(_) | Mcp::Status(_) | Mcp::Pin(_) | Mcp::Diff(_)))
}

/// `--help` and `--version` are no errors; everything else clap says is exit code 2.
fn usage(error: &clap::Error) -> ExitCode {
    let shown = error.print().is_ok();
    if shown && !error.use_stderr() { ExitCode::SUCCESS } else { ExitCode::from(2) }
}
