//! `toolgate lock …`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum LockCommand {
    /// Compare plugins and servers with toolgate.lock; ends with 5 where anything differs.
    Check(LockCheck),
    /// Write toolgate.lock and toolgate.surface/ from what there is now, for a review.
    Update(LockUpdate),
}

#[derive(Debug, Args)]
pub(crate) struct LockCheck {
    /// Ask no server: compare plugins, grants, identities and the surface files alone.
    #[arg(long)]
    pub(crate) offline: bool,
    /// text for a person, json for a program, sarif for a code review.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json", "sarif"])]
    pub(crate) format: String,
    /// Print JSON, as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LockUpdate {
    /// Ask no server and no index: keep the surfaces and the releases that were reviewed.
    #[arg(long)]
    pub(crate) offline: bool,
    /// Take newer releases of the plugins that an index resolves, within the range of their entry and not
    /// younger than `plugins.min_age`; without it what was reviewed stays.
    #[arg(long, conflicts_with = "offline")]
    pub(crate) upgrade: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
