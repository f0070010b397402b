//! `toolgate plugin sign`.

use std::path::PathBuf;

use clap::Args;

use crate::keys::SignWith;

#[derive(Debug, Args)]
pub(crate) struct PluginSign {
    /// The directory with plugin.toml and the component; release.dsse.json is written there.
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) with: SignWith,
    /// Add a signature to the release that is there, for a rule that wants several.
    #[arg(long, conflicts_with = "attach")]
    pub(crate) add: bool,
    /// Write the bytes to sign to this file and sign nothing: the key is on another machine.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["attach", "key", "signer"])]
    pub(crate) payload_out: Option<PathBuf>,
    /// Put the signature in this file into the release; needs --payload and --public-key.
    #[arg(long, value_name = "FILE", requires = "payload", requires = "public_key", conflicts_with_all = ["key", "signer"])]
    pub(crate) attach: Option<PathBuf>,
    /// The file that --payload-out wrote and that was signed.
    #[arg(long, value_name = "FILE", requires = "attach")]
    pub(crate) payload: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
