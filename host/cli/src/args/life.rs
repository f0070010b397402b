//! The verbs of `toolgate plugin` that change what is in force and who may sign.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Json;

#[derive(Debug, Args)]
#[allow(clippy::doc_markdown)] // printed as help, where no link belongs
pub(crate) struct PluginInstall {
    /// Which plugin: NAMESPACE/NAME or NAMESPACE/NAME@RANGE (as @^1.2) from an index of plugins.indexes,
    /// oci://HOST/REPOSITORY@sha256:… from an OCI registry, ./DIR with component.wasm and
    /// release.dsse.json, or the https://… URL of a release.dsse.json with component.wasm beside it.
    pub(crate) reference: String,
    /// Which of its decisions count; by default all it declares but allow.
    #[arg(long, value_name = "DECISION", value_delimiter = ',')]
    pub(crate) decisions: Option<Vec<String>>,
    /// Its settings, a JSON object.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) settings: String,
    /// What it may reach, a JSON object by capability and label.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) grants: String,
    /// What `plugin update` does about a newer release: ask, or auto for one that may do no more. By
    /// default as plugins.update says.
    #[arg(long, value_name = "MODE", value_parser = ["ask", "auto"])]
    pub(crate) update: Option<String>,
    /// Install it although a release with a higher sequence was installed before.
    #[arg(long)]
    pub(crate) allow_older: bool,
    /// Do not ask. It stands in for the question, not for the proof that you are the operator.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[allow(clippy::doc_markdown)] // printed as help, where no link belongs
pub(crate) struct PluginPublish {
    /// The plugin: a directory with component.wasm and release.dsse.json.
    pub(crate) plugin: PathBuf,
    /// Where to: oci://HOST/REPOSITORY, or with a tag oci://HOST/REPOSITORY:TAG. `toolgate registry publish`
    /// takes the same, and a registry that is a directory.
    pub(crate) target: String,
    #[command(flatten)]
    pub(crate) oci: OciSignIn,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How an OCI registry is reached and signed in to.
#[derive(Debug, Args)]
pub(crate) struct OciSignIn {
    /// The name to sign in with, where an OCI registry wants one.
    #[arg(long, value_name = "NAME", requires = "password_file")]
    pub(crate) username: Option<String>,
    /// A file with the password or token.
    #[arg(long, value_name = "FILE", requires = "username")]
    pub(crate) password_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reached: super::registry::Reached,
}

impl OciSignIn {
    /// Whether nothing of it was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.username.is_none() && self.reached.ca.is_none() && !self.reached.private
    }
}

#[derive(Debug, Args)]
pub(crate) struct PluginSearch {
    /// Words that the name must hold; all plugins without any.
    pub(crate) words: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of its own
pub(crate) struct PluginUpdate {
    /// The plugin; all that are installed by default.
    pub(crate) name: Option<String>,
    /// Take the release from here instead of where it was installed from.
    #[arg(long, value_name = "REFERENCE", requires = "name")]
    pub(crate) from: Option<String>,
    /// Change nothing: ask the release in force and the new one the same documents, and show where they
    /// answer differently.
    #[arg(long, requires = "documents")]
    pub(crate) dry_run: bool,
    /// The directory of the documents, as `mcp record SERVER --out DIR` writes them.
    #[arg(long, value_name = "DIR", requires = "dry_run")]
    pub(crate) documents: Option<PathBuf>,
    /// Take it however young it is (see `plugins.min_age`).
    #[arg(long)]
    pub(crate) any_age: bool,
    /// Take it although its sequence is lower than the installed one's.
    #[arg(long, requires = "name")]
    pub(crate) allow_older: bool,
    /// Do not ask. It stands in for the question, not for the proof that you are the operator.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginRemove {
    /// The plugin.
    pub(crate) name: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginDeny {
    /// The digest of a component or of a release, as sha256:…; none lists what is denied.
    pub(crate) digest: Option<String>,
    /// Why; whoever meets the refusal reads it.
    #[arg(long, value_name = "TEXT", conflicts_with = "lift")]
    pub(crate) reason: Option<String>,
    /// Let the digest run again.
    #[arg(long, requires = "digest")]
    pub(crate) lift: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginRetry {
    /// The plugin that was put aside.
    pub(crate) name: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginTrust {
    /// Let keys sign plugins: shows fingerprint and words to compare before it asks.
    Add(TrustAdd),
    /// List who may sign what, and which file says so.
    List(Json),
    /// Take a rule back that `trust add` made.
    Remove(TrustRemove),
}

#[derive(Debug, Args)]
pub(crate) struct TrustAdd {
    /// The plugins: owner/name, or owner/* for all of that owner.
    pub(crate) plugins: String,
    /// A key that may sign them, ed25519:… or a file that holds it; may be repeated.
    #[arg(required = true, num_args = 1..)]
    pub(crate) keys: Vec<String>,
    /// How many of the keys must have signed.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) minimum: u32,
    /// A key that must have signed besides; may be repeated.
    #[arg(long = "all-of", value_name = "KEY")]
    pub(crate) all_of: Vec<String>,
    /// The fingerprint that the author told you, which the key must have; for scripts, instead of comparing by eye.
    #[arg(long, value_name = "HEX")]
    pub(crate) fingerprint: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TrustRemove {
    /// The plugins, as in `plugin trust list`.
    pub(crate) plugins: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
