//! The verbs of `toolgate plugin`.

use clap::{Args, Subcommand};

use super::{Json, PluginSign};

#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// List the plugins in force, and those that were refused.
    List(Json),
    /// Show what a plugin is and what it may do.
    Inspect(PluginRef),
    /// Check signature, digest, imports and exports, and compile it.
    Verify(PluginRef),
    /// Sign a release of a component: what it says is read from plugin.toml and from the binary.
    Sign(PluginSign),
}

#[derive(Debug, Args)]
pub(crate) struct PluginRef {
    /// A name from `plugin list`, or a directory with component.wasm and release.dsse.json.
    pub(crate) plugin: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
