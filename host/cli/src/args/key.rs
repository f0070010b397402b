//! `toolgate key …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::keys::{Passphrase, SignWith};

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a signing key: FILE holds the secret half, FILE.pub the public one.
    New(KeyNew),
    /// Show the public half of a key, its fingerprint and words to compare.
    Show(KeyShow),
    /// Sign what `--payload-out` wrote, on the machine that has the key; prints the signature.
    Sign(KeySign),
}

#[derive(Debug, Args)]
pub(crate) struct KeyNew {
    /// Where to write it; nothing that exists is replaced.
    pub(crate) file: PathBuf,
    /// Write a bare seed of 64 hex digits without a passphrase, for tests and build machines.
    #[arg(long, conflicts_with_all = ["passphrase_file", "passphrase_fd"])]
    pub(crate) seed: bool,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyShow {
    /// A key file, a file with a public key, or ed25519:… itself.
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeySign {
    /// What is to be signed; standard input by default.
    pub(crate) payload: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) with: SignWith,
}
