//! `toolgate key …`: making keys, showing them, and signing where the key is.

use std::io::Read as _;
use std::path::Path;

use serde_json::json;
use toolgate_base::random_bytes;
use toolgate_signing::{Digest, MAX_PAYLOAD, PublicKey, SigningKey, decode_pre_authentication};

use crate::args::{Key, KeyNew, KeyShow, KeySign};
use crate::exit::Failure;
use crate::keys::{read_public, read_secret};
use crate::output;

/// Runs one verb.
pub(crate) fn run(command: &Key) -> Result<(), Failure> {
    match command {
        Key::New(args) => new(args),
        Key::Show(args) => show(args),
        Key::Sign(args) => sign(args),
    }
}

fn new(args: &KeyNew) -> Result<(), Failure> {
    let public_file = args.file.with_added_extension("pub");
    for file in [&args.file, &public_file] {
        if file.exists() {
            return Err(Failure::usage(format!("{} exists; no key is ever replaced", file.display())));
        }
    }
    let key = SigningKey::from_seed(&random_bytes());
    let text = if args.seed {
        key.to_seed_text()
    } else {
        let passphrase = args.passphrase.new_one()?;
        key.to_sealed_pem(passphrase.expose(), &random_bytes())
            .map_err(|error| Failure::failed(format!("the key cannot be sealed: {error}")))?
    };
    let public = key.public();
    create(&args.file, text.as_bytes())?;
    create(&public_file, format!("{public}\n").as_bytes())?;
    if args.json {
        return output::json(&described(&public));
    }
    output::line(&format!(
        "{} holds the secret half and {} the public one",
        args.file.display(),
        public_file.display()
    ))?;
    print(&public)?;
    output::line("keep the secret half where no agent can read it, and a copy where it cannot be lost")
}

fn show(args: &KeyShow) -> Result<(), Failure> {
    let is_public = args.key.starts_with("ed25519:")
        || std::fs::read(&args.key).is_ok_and(|bytes| bytes.starts_with(b"ed25519:"));
    let public = if is_public {
        read_public(&args.key)?
    } else {
        read_secret(Path::new(&args.key), &args.passphrase)?.public()
    };
    if args.json { output::json(&described(&public)) } else { print(&public) }
}

/// Signs nothing but what `--payload-out` writes: a key that signs whatever it is given could be made
/// to sign anything.
fn sign(args: &KeySign) -> Result<(), Failure> {
    let limit = MAX_PAYLOAD as u64 + 1024;
    let mut bytes = Vec::new();
    let read = match &args.payload {
        Some(file) => std::fs::File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
        None => std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
    };
    read.map_err(|error| Failure::usage(format!("what is to be signed cannot be read: {error}")))?;
    let Some(what) = described_payload(&bytes) else {
        return Err(Failure::usage("this is not what --payload-out writes; nothing was signed"));
    };
    output::note(&format!("signing {what}"));
    let signature = args.with.open()?.sign(&bytes).map_err(Failure::failed)?;
    output::line(&hex::encode(signature))
}

/// What bytes are that wait for a signature; nothing for bytes that no `--payload-out` writes. Neither form
/// can be taken for the other: one begins with `DSSEv1` and a space, and no origin of a log has a space.
fn described_payload(bytes: &[u8]) -> Option<String> {
    if let Some((kind, payload)) = decode_pre_authentication(bytes) {
        return Some(format!("{kind}, {} bytes, {}", payload.len(), Digest::of(&payload)));
    }
    let (origin, size) = toolgate_registry::unsigned_checkpoint(std::str::from_utf8(bytes).ok()?)?;
    Some(format!("the checkpoint of the log {origin} with {size} lines"))
}

/// What two people compare.
pub(crate) fn print(public: &PublicKey) -> Result<(), Failure> {
    let id = public.id();
    output::line(&format!("  public key   {public}"))?;
    output::line(&format!("  fingerprint  {}", id.fingerprint()))?;
    output::line(&format!("  words        {}", id.words()))
}

/// The same for a program.
pub(crate) fn described(public: &PublicKey) -> serde_json::Value {
    let id = public.id();
    json!({ "public": public, "id": id, "fingerprint": id.fingerprint(), "words": id.words() })
}

fn create(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    toolgate_base::files::create_private(file, bytes)
        .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", file.display())))
}
