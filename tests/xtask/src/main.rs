//! Checks and builds that belong to the project itself: `cargo xtask <verb>`.
//!
//! It prints to the terminal and exits with 0 when all is well, 1 when something is wrong, 2 when
//! it was called wrongly. It needs no network once dependencies are fetched.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a terminal program speaks on the terminal

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use build_plugins::Signer;
use gates::Profile;
use project::Project;

mod build_plugins;
mod check;
mod gates;
mod keys;
mod metadata;
mod plugin;
mod project;
mod release;
mod sources;
mod test;

/// What went well, or the text to print.
type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "\
usage: cargo xtask <verb>

  build-plugins --seed FILE   build, wrap and sign the first-party plugins into registry/first-party
                              FILE holds an Ed25519 seed as 64 hex characters, outside of this tree
  build-plugins --dev-key     the same with a development key of this checkout, which is made on
                              first use and admitted by registry/first-party/keys.txt
  compare-plugins             build them and compare with the committed components, byte by byte,
                              where the release names the toolchain of this machine
  check [--release]           floors, bans, sources, licences, signed blobs, requirements, tidiness;
                              with --release a development key is an error too
  test                        everything that has to hold: format, lints, tests, checks, quickstart,
                              real clients and servers
  gates [--dev] [NAME...]     switch each gate of tests/gates.toml off in turn, in a copy of the tree,
                              and show that its end-to-end test goes red; one build in all, of the
                              release profile or with --dev of the dev profile
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["build-plugins", "--seed", file] => build(&Signer::Seed(PathBuf::from(file))),
        ["build-plugins", "--dev-key"] => build(&Signer::Development),
        ["compare-plugins"] => Project::here().and_then(|project| build_plugins::compare(&project)),
        ["check"] => check(false),
        ["check", "--release"] => check(true),
        ["test"] => Project::here().map(|project| test::run(&project)),
        ["gates", "--dev", names @ ..] => gates(Profile::Dev, names),
        ["gates", names @ ..] => gates(Profile::Release, names),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("error: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn build(signer: &Signer) -> Outcome<bool> {
    build_plugins::run(&Project::here()?, signer).map(|()| true)
}

fn gates(profile: Profile, names: &[&str]) -> Outcome<bool> {
    gates::run(&Project::here()?, profile, names)
}

fn check(for_release: bool) -> Outcome<bool> {
    check::run(&Project::here()?, for_release)
}
