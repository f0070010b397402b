//! The verbs of `toolgate plugin`.

use clap::{Args, Subcommand};

use super::{
    Json, PluginDeny, PluginInstall, PluginPublish, PluginRemove, PluginRetry, PluginSearch, PluginSign,
    PluginTrust, PluginUpdate,
};

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
    /// Push a signed plugin to a repository of an OCI registry.
    Publish(PluginPublish),
    /// Look through the indexes of plugins.indexes for plugins by name.
    Search(PluginSearch),
    /// Install a signed plugin: shows what it may do, asks, compiles it, and puts it in force.
    Install(PluginInstall),
    /// Take newer releases of installed plugins; asks where one may do more than before.
    Update(PluginUpdate),
    /// Remove an installed plugin.
    Remove(PluginRemove),
    /// Deny a component or release by its digest, at once and without any network; or list what is denied.
    Deny(PluginDeny),
    /// Let a running gateway load a plugin again that failed too often and was put aside.
    Retry(PluginRetry),
    /// Who may sign plugins: add, list, remove.
    #[command(subcommand)]
    Trust(PluginTrust),
}

#[derive(Debug, Args)]
pub(crate) struct PluginRef {
    /// A name from `plugin list`, or a directory with component.wasm and release.dsse.json.
    pub(crate) plugin: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
