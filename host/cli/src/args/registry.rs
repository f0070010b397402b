//! `toolgate registry …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::keys::{Passphrase, SignWith};

#[derive(Debug, Subcommand)]
pub(crate) enum Registry {
    /// Make a registry in a new directory.
    Init(RegistryInit),
    /// Publish a signed plugin: a directory with component.wasm and release.dsse.json.
    Publish(RegistryPublish),
    /// Hide a release from resolution; what is locked still loads.
    Yank(RegistryYank),
    /// Revoke a release, a component or a key: clients that refresh refuse it. It cannot be undone.
    Revoke(RegistryRevoke),
    /// Give a namespace its signing keys, or new ones in place of the old.
    Rotate(RegistryRotate),
    /// Renew the expiry of the snapshot with the online key, which can do nothing else.
    Refresh(RegistryRefresh),
    /// Change the root: propose, sign, finish.
    #[command(subcommand)]
    Root(RegistryRoot),
    /// Show what expires when, who must sign what, and what is in the registry.
    Status(RegistryStatus),
    /// Check every signature, line, release and component of a registry.
    Verify(RegistryVerify),
    /// Serve a registry over HTTP, on a loopback address.
    Serve(RegistryServe),
    /// Copy a registry into a directory, verified.
    Mirror(RegistryMirror),
}

#[derive(Debug, Subcommand)]
pub(crate) enum RegistryRoot {
    /// Write the next root as a proposal for the holders of the root keys.
    Propose(RootPropose),
    /// Sign a proposal: in the registry, or in a file that was carried to where the key is.
    Sign(RootSign),
    /// Publish the proposal once enough keys of the old root and of the new one have signed it.
    Finish(RootFinish),
}

/// A registry of this machine, and how its verb answers.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// The registry.
    pub(crate) dir: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The keys that sign a change; each role takes its own.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SignWithAll {
    /// A secret key, as `toolgate key new` makes it; may be repeated.
    #[arg(long = "key", value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    /// A program that signs, for a device or a key service: it gets the bytes to sign on standard
    /// input and prints the Ed25519 signature, raw, in base64 or in hex. May be repeated.
    #[arg(long, value_name = "COMMAND", requires = "public_key")]
    pub(crate) signer: Vec<String>,
    /// The public key of each --signer, in their order, and after them those that are elsewhere:
    /// ed25519:… or a file that holds it.
    #[arg(long, value_name = "KEY")]
    pub(crate) public_key: Vec<String>,
    /// Write what the keys of --public-key have to sign into this new directory, and change nothing.
    #[arg(long, value_name = "DIR", conflicts_with = "attach", requires = "public_key")]
    pub(crate) payload_out: Option<PathBuf>,
    /// Go on with a change that waits in the directory of --payload-out, with the signatures that were put
    /// beside what was to be signed, each as NAME.sig.
    #[arg(long, value_name = "DIR")]
    pub(crate) attach: Option<PathBuf>,
}

impl SignWithAll {
    /// Whether nothing signs.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
            && self.signer.is_empty()
            && self.public_key.is_empty()
            && self.payload_out.is_none()
            && self.attach.is_none()
    }
}

#[derive(Debug, Args)]
pub(crate) struct RegistryInit {
    /// A directory that is empty or does not exist.
    pub(crate) dir: PathBuf,
    /// Which registry this is, as plugins.example/main. It never changes.
    #[arg(long, value_name = "HOST/PATH")]
    pub(crate) origin: String,
    /// What people call it.
    #[arg(long, default_value = "main")]
    pub(crate) name: String,
    /// Make one key for each purpose in this new directory: root, admin, publish, refresh.
    #[arg(long, value_name = "DIR", conflicts_with = "role")]
    pub(crate) new_keys: Option<PathBuf>,
    /// A key of a role (root, delegate, revoke, snapshot, refresh): ROLE=ed25519:… or ROLE=FILE; may be
    /// repeated.
    #[arg(long, value_name = "ROLE=KEY")]
    pub(crate) role: Vec<String>,
    /// How many keys of a role must sign; 1 by default.
    #[arg(long, value_name = "ROLE=N")]
    pub(crate) threshold: Vec<String>,
    /// How many days a snapshot, and each renewal of it, is good for.
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    pub(crate) refresh_days: u32,
    #[command(flatten)]
    pub(crate) with: SignWithAll,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryPublish {
    /// The registry: its directory, or `oci://HOST/REPOSITORY[:TAG]` of an OCI registry.
    pub(crate) registry: String,
    /// The plugin: a directory with component.wasm and release.dsse.json.
    pub(crate) plugin: PathBuf,
    #[command(flatten)]
    pub(crate) with: SignWithAll,
    #[command(flatten)]
    pub(crate) oci: super::OciSignIn,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryYank {
    #[command(flatten)]
    pub(crate) at: At,
    /// The release, as NAME@VERSION.
    pub(crate) release: String,
    /// Why, in one line, for whoever asks.
    #[arg(long)]
    pub(crate) reason: String,
    /// Show it again.
    #[arg(long)]
    pub(crate) undo: bool,
    #[command(flatten)]
    pub(crate) with: SignWithAll,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryRevoke {
    #[command(flatten)]
    pub(crate) at: At,
    /// NAME@VERSION, the sha256:… of a release or a component, or a key: ed25519:… or its id.
    pub(crate) what: String,
    /// Why, in one line, for the operators who run it.
    #[arg(long)]
    pub(crate) reason: String,
    /// For a key: from which line of the log on; 0 for everything it ever signed. By default only what
    /// comes from now on.
    #[arg(long, value_name = "LINE")]
    pub(crate) from_log: Option<u64>,
    #[command(flatten)]
    pub(crate) with: SignWithAll,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryRotate {
    #[command(flatten)]
    pub(crate) at: At,
    /// The plugins: NAMESPACE/* or NAMESPACE/NAME.
    pub(crate) plugins: String,
    /// A key that signs them from now on: ed25519:… or a file; may be repeated.
    #[arg(long, value_name = "KEY", required = true)]
    pub(crate) to: Vec<String>,
    /// How many of these keys must sign.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threshold: u32,
    #[command(flatten)]
    pub(crate) with: SignWithAll,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryRefresh {
    #[command(flatten)]
    pub(crate) at: At,
    #[command(flatten)]
    pub(crate) with: SignWithAll,
}

#[derive(Debug, Args)]
pub(crate) struct RootPropose {
    #[command(flatten)]
    pub(crate) at: At,
    /// A key of a role (root, delegate, revoke, snapshot, refresh) in place of all it has: ROLE=ed25519:…
    /// or ROLE=FILE; may be repeated.
    #[arg(long, value_name = "ROLE=KEY")]
    pub(crate) role: Vec<String>,
    /// How many keys of a role that is given must sign; 1 by default.
    #[arg(long, value_name = "ROLE=N")]
    pub(crate) threshold: Vec<String>,
    /// How many days a snapshot, and each renewal of it, is good for.
    #[arg(long, value_name = "DAYS")]
    pub(crate) refresh_days: Option<u32>,
    /// Begin the log anew, after keys that could append to it were stolen; every release has to be
    /// published again.
    #[arg(long)]
    pub(crate) new_log: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RootSign {
    /// The registry, or a copy of its proposal/root.json; the signature is written beside it.
    pub(crate) proposal: PathBuf,
    #[command(flatten)]
    pub(crate) with: SignWith,
    /// Write the bytes to sign to this file and sign nothing: the key is on another machine.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["attach", "key", "signer"])]
    pub(crate) payload_out: Option<PathBuf>,
    /// Take the signature in this file; needs --public-key.
    #[arg(long, value_name = "FILE", requires = "public_key", conflicts_with_all = ["key", "signer"])]
    pub(crate) attach: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RootFinish {
    #[command(flatten)]
    pub(crate) at: At,
    #[command(flatten)]
    pub(crate) with: SignWithAll,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryStatus {
    #[command(flatten)]
    pub(crate) at: At,
    /// End with 1 if a document expires in fewer days than this, for a scheduled check.
    #[arg(long, value_name = "DAYS")]
    pub(crate) fail_under: Option<u64>,
}

/// How the host of a URL is reached.
#[derive(Debug, Args, Default)]
pub(crate) struct Reached {
    /// A file with the certificates of an authority, as PEM, that is believed for this host too.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Its host has an address of a private network.
    #[arg(long)]
    pub(crate) private: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryVerify {
    /// A directory or a URL.
    pub(crate) registry: String,
    /// The fingerprint of a root, as the maintainers tell it; a directory is else checked from its own
    /// first root on.
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) root: Option<String>,
    #[command(flatten)]
    pub(crate) reached: Reached,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryServe {
    /// The registry.
    pub(crate) dir: PathBuf,
    /// Listen on this address: a loopback one, or any with a certificate.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8850")]
    pub(crate) listen: std::net::SocketAddr,
    /// Serve over https with this certificate: a PEM file, the server's own first.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert: a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RegistryMirror {
    /// A directory or a URL.
    pub(crate) from: String,
    /// Where the copy is kept.
    pub(crate) dir: PathBuf,
    /// The fingerprint of a root, as the maintainers tell it.
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) root: String,
    #[command(flatten)]
    pub(crate) reached: Reached,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
