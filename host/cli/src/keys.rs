//! Keys at the command line: with what to sign, and where its passphrase comes from.
//!
//! Contract: no secret is ever an argument or a variable, because both can be read by every process of
//! this user. A passphrase is typed at the terminal without echo, or read from a file or a descriptor
//! that the caller opened.
//!
//! Bounds: a key file of 64 KiB, a passphrase of 1 KiB.

mod elsewhere;
mod external;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use toolgate_base::Secret;
use toolgate_signing::{PublicKey, Signer, SigningKey, is_sealed};

use crate::exit::Failure;
use crate::terminal::Terminal;

pub(crate) use elsewhere::Waiting;

/// Longest key file, bytes.
const MAX_KEY: u64 = 64 * 1024;
/// Longest passphrase, bytes.
const MAX_PASSPHRASE: u64 = 1024;
/// Shortest passphrase that a new key is sealed with, characters.
const MIN_PASSPHRASE: usize = 8;

/// Where the passphrase of a key comes from, for machines; without it, it is asked on the terminal.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Passphrase {
    /// Read the passphrase of the key from this file.
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_fd")]
    pub(crate) passphrase_file: Option<PathBuf>,
    /// Read the passphrase of the key from this open descriptor.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) passphrase_fd: Option<u32>,
}

/// With what to sign: a key file, or a program in front of a device.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SignWith {
    /// The secret key: a seed file or PKCS#8, as `toolgate key new` makes it.
    #[arg(long, value_name = "FILE", conflicts_with = "signer")]
    pub(crate) key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    /// A program that signs, for a device or a key service: it gets the bytes to sign on standard
    /// input and prints the Ed25519 signature, raw, in base64 or in hex.
    #[arg(long, value_name = "COMMAND", requires = "public_key")]
    pub(crate) signer: Option<String>,
    /// The public key that the signature must be of: ed25519:… or a file that holds it.
    #[arg(long, value_name = "KEY")]
    pub(crate) public_key: Option<String>,
}

impl SignWith {
    /// The signer that was asked for.
    pub(crate) fn open(&self) -> Result<Box<dyn Signer>, Failure> {
        match (&self.key, &self.signer) {
            (Some(file), _) => {
                let key = read_secret(file, &self.passphrase)?;
                if let Some(expected) = &self.public_key
                    && read_public(expected)? != key.public()
                {
                    return Err(Failure::usage(format!(
                        "{} holds the key {}, which is not the one of --public-key",
                        file.display(),
                        key.public()
                    )));
                }
                Ok(Box::new(key))
            }
            (None, Some(command)) => {
                let public = read_public(self.public_key.as_deref().unwrap_or_default())?;
                Ok(Box::new(external::Program::new(command, public)?))
            }
            (None, None) => Err(Failure::usage("nothing to sign with")
                .hint("give --key FILE, or --signer COMMAND with --public-key, or sign in two steps with --payload-out and --attach")),
        }
    }
}

/// A public key from its text or from a file that holds it.
pub(crate) fn read_public(given: &str) -> Result<PublicKey, Failure> {
    let text = if given.starts_with("ed25519:") {
        given.to_owned()
    } else {
        let path = Path::new(given);
        let text = String::from_utf8(bounded(path, MAX_KEY)?)
            .map_err(|_| Failure::usage(format!("{given} holds no public key")))?;
        text.trim().to_owned()
    };
    PublicKey::parse(&text).map_err(|error| {
        let refused = Failure::usage(format!("this is no public key that counts: {error}"));
        refused.hint("a public key is written ed25519:<base64>; `toolgate key show FILE` prints it")
    })
}

/// The secret key of a file, asking for its passphrase where it has one.
pub(crate) fn read_secret(file: &Path, passphrase: &Passphrase) -> Result<SigningKey, Failure> {
    let bytes = bounded(file, MAX_KEY)?;
    let text = Secret::new(String::from_utf8(bytes).map_err(|_| wrong(file, &"it is no text"))?);
    if is_sealed(text.expose()) {
        let secret = passphrase.read(&format!("Passphrase of {}: ", file.display()))?;
        return SigningKey::from_file_text(text.expose(), Some(secret.expose()))
            .map_err(|error| wrong(file, &error));
    }
    refuse_readable(file)?;
    SigningKey::from_file_text(text.expose(), None).map_err(|error| wrong(file, &error))
}

impl Passphrase {
    /// The passphrase, from where it was said to be or from the terminal.
    fn read(&self, prompt: &str) -> Result<Secret, Failure> {
        match self.given()? {
            Some(secret) => Ok(secret),
            None => asked(&terminal()?, prompt),
        }
    }

    /// A passphrase for a new key, typed twice at the terminal.
    pub(crate) fn new_one(&self) -> Result<Secret, Failure> {
        let given = self.given()?;
        let secret = match given {
            Some(secret) => secret,
            None => typed_twice()?,
        };
        if secret.expose().chars().count() < MIN_PASSPHRASE {
            return Err(Failure::usage(format!("a passphrase has at least {MIN_PASSPHRASE} characters")));
        }
        Ok(secret)
    }

    fn given(&self) -> Result<Option<Secret>, Failure> {
        let path = match (&self.passphrase_file, self.passphrase_fd) {
            (Some(file), _) => {
                refuse_readable(file)?;
                file.clone()
            }
            (None, Some(number)) => PathBuf::from(format!("/dev/fd/{number}")),
            (None, None) => return Ok(None),
        };
        let text = String::from_utf8(bounded(&path, MAX_PASSPHRASE)?)
            .map_err(|_| Failure::usage(format!("{} holds no text", path.display())))?;
        Ok(Some(Secret::new(text.trim_end_matches(['\n', '\r']))))
    }
}

fn typed_twice() -> Result<Secret, Failure> {
    let terminal = terminal()?;
    terminal
        .line("The passphrase seals the key file. It is not shown, and nobody can recover it.")
        .map_err(|error| unusable(&error))?;
    let first = asked(&terminal, "Passphrase for the new key: ")?;
    if asked(&terminal, "The same again: ")? == first {
        return Ok(first);
    }
    Err(Failure::usage("the two are not the same; no key was made"))
}

fn terminal() -> Result<Terminal, Failure> {
    Terminal::open().map_err(|error| {
        Failure::usage(format!("the passphrase is typed at a terminal, and this process has none ({error})"))
            .hint("without a terminal, give --passphrase-file or --passphrase-fd")
    })
}

fn asked(terminal: &Terminal, prompt: &str) -> Result<Secret, Failure> {
    terminal
        .secret(prompt)
        .map_err(|error| unusable(&error))?
        .ok_or_else(|| Failure::usage("given up; nothing was done"))
}

fn unusable(error: &std::io::Error) -> Failure {
    Failure::failed(format!("the terminal cannot be used: {error}"))
}

/// A file that holds an open secret and that others can read is no secret.
fn refuse_readable(file: &Path) -> Result<(), Failure> {
    if toolgate_base::files::is_readable_by_others(file).unwrap_or(false) {
        return Err(Failure::usage(format!("{} can be read by others", file.display()))
            .hint(format!("chmod 600 {}", file.display())));
    }
    Ok(())
}

fn bounded(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::usage(format!("{} cannot be read: {error}", path.display()));
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(failed)?.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(Failure::usage(format!("{} is longer than {limit} bytes", path.display())));
    }
    Ok(bytes)
}

fn wrong(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{} cannot be used as a key: {error}", file.display()))
}
