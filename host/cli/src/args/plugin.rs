//! The verbs of `toolgate plugin`.

use std::path::PathBuf;

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
    Verify(PluginVerify),
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
    /// Write the project of a new plugin: contract, SDK, an example, documents to test it with.
    New(PluginNew),
    /// Compile a project into component.wasm.
    Build(PluginBuild),
    /// Ask a component every document of its project, and compare with what is expected.
    Test(PluginTest),
}

#[derive(Debug, Args)]
pub(crate) struct PluginRef {
    /// A name from `plugin list`, or a directory with component.wasm and release.dsse.json.
    pub(crate) plugin: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginVerify {
    /// A name from `plugin list`, or a directory with component.wasm and release.dsse.json.
    pub(crate) plugin: String,
    /// Compile these sources, the project with plugin.toml, and compare the result with the release. This
    /// runs the build scripts of its dependencies, so only sources with the signed digest are compiled.
    #[arg(long, value_name = "DIR")]
    pub(crate) rebuild: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginNew {
    /// What it shall be.
    pub(crate) kind: PluginKind,
    /// Its name, as acme/guard; without a namespace it is local/NAME.
    pub(crate) name: String,
    /// Where to write it; ./NAME by default. Must be new or empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum PluginKind {
    /// Judges: what is listed, called, and comes back.
    Policy,
    /// Knows one source of servers.
    Installer,
    /// Knows one server: corrects arguments and results.
    Adapter,
}

#[derive(Debug, Args)]
pub(crate) struct PluginBuild {
    /// The project that `plugin new` wrote.
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Only this toolchain, for whoever tests the other one.
    #[arg(long, hide = true, value_name = "NAME")]
    pub(crate) toolchain: Option<GuestToolchain>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum GuestToolchain {
    /// The one that rustup has.
    Rustup,
    /// Debian's packages, with the standard library built from source.
    Debian,
}

#[derive(Debug, Args)]
pub(crate) struct PluginTest {
    /// The project, with component.wasm, plugin.toml and documents/.
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Write what the plugin answers now as what is expected. A fault is never written.
    #[arg(long)]
    pub(crate) update: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
