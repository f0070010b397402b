//! Who signs a change of a registry: keys that are here, devices, and keys that are elsewhere.
//!
//! Contract: a change with a key elsewhere takes steps. The first, `--payload-out DIR`, writes what has to be
//! signed and changes nothing; each further one, `--attach DIR` with the same command, takes the signatures
//! that were brought back, and the last of them publishes. A snapshot holds the signed note over the log, so
//! the signature of the one is asked for when that of the other is there.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use toolgate_base::{Clock, SystemClock};
use toolgate_registry::{PublishError, Publisher, Signers};
use toolgate_signing::{PublicKey, SignError, Signer};

use super::failure;
use crate::args::registry::SignWithAll;
use crate::exit::{Code, Failure};
use crate::keys::{SignWith, Waiting, read_public, read_secret};
use crate::output;

/// The signers of one change, and the moment at which it happens.
pub(super) struct Signing {
    signers: Vec<Box<dyn Signer>>,
    waiting: Option<Waiting>,
    /// Whether this step was asked to publish.
    attaches: bool,
    as_json: bool,
}

impl SignWithAll {
    /// Every signer that was given.
    pub(super) fn open(&self, as_json: bool) -> Result<Signing, Failure> {
        let mut signers: Vec<Box<dyn Signer>> = Vec::new();
        for file in &self.keys {
            signers.push(Box::new(read_secret(file, &self.passphrase)?));
        }
        let public: Vec<PublicKey> =
            self.public_key.iter().map(|key| read_public(key)).collect::<Result<_, _>>()?;
        let Some((of_devices, elsewhere)) = public.split_at_checked(self.signer.len()) else {
            return Err(Failure::usage("each --signer needs the --public-key that it signs with")
                .hint("give them in the same order"));
        };
        for (command, key) in self.signer.iter().zip(of_devices) {
            let with = SignWith {
                signer: Some(command.clone()),
                public_key: Some(key.to_string()),
                ..SignWith::default()
            };
            signers.push(with.open()?);
        }
        let waiting = match (&self.payload_out, &self.attach) {
            (Some(_), _) if elsewhere.is_empty() => {
                return Err(Failure::usage("--payload-out is for keys that are elsewhere")
                    .hint("name each with --public-key KEY"));
            }
            (Some(directory), _) => Some(Waiting::begin(directory, elsewhere.to_vec())?),
            (None, Some(_)) if !elsewhere.is_empty() => {
                return Err(Failure::usage(
                    "the keys that are elsewhere were named with --payload-out; --attach knows them",
                ));
            }
            (None, Some(directory)) => Some(Waiting::go_on(directory)?),
            (None, None) if !elsewhere.is_empty() => {
                return Err(Failure::usage("a --public-key without its --signer signs nothing")
                    .hint("give --signer COMMAND, or --payload-out DIR for a key that is elsewhere"));
            }
            (None, None) => None,
        };
        signers.extend(waiting.iter().flat_map(Waiting::signers));
        Ok(Signing { signers, waiting, attaches: self.attach.is_some(), as_json })
    }
}

impl Signing {
    /// The signers.
    pub(super) fn signers(&self) -> Signers<'_> {
        &self.signers
    }

    /// One signer more.
    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = Box<dyn Signer>>) {
        self.signers.extend(more);
    }

    /// The moment of the change.
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        self.waiting.as_ref().map_or_else(|| Arc::new(SystemClock) as Arc<dyn Clock>, Waiting::clock)
    }

    /// The publisher of a registry, at that moment.
    pub(super) fn publisher(&self, dir: &Path) -> Result<Publisher, Failure> {
        Publisher::open_with(dir, self.clock()).map_err(|error| failure(&error))
    }

    /// What came of a change; nothing where it waits, which was told.
    ///
    /// # Errors
    /// What the change ended with; exit code 3 where signatures were attached and one is still missing.
    pub(super) fn settled<T>(&self, done: Result<T, PublishError>) -> Result<Option<T>, Failure> {
        match (done, &self.waiting) {
            (Ok(done), _) => Ok(Some(done)),
            (Err(PublishError::Sign(SignError::Waits)), Some(waiting)) => {
                self.tell(waiting)?;
                if self.attaches {
                    return Err(Failure::new(
                        Code::Denied,
                        "nothing is published yet: a signature is missing",
                    )
                    .hint("sign what is listed, and run this again"));
                }
                Ok(None)
            }
            (Err(error), _) => Err(failure(&error)),
        }
    }

    fn tell(&self, waiting: &Waiting) -> Result<(), Failure> {
        let missing = waiting.missing();
        if self.as_json {
            return output::json(&json!({ "waiting": missing }));
        }
        output::line("to be signed where the keys are:")?;
        for one in &missing {
            output::line(&format!("  {} by {}", one.payload.display(), one.key))?;
            output::line(&format!(
                "    toolgate key sign --key KEY {} > {}",
                one.payload.display(),
                one.signature.display()
            ))?;
        }
        output::line("then here: the same command with --attach in place of --payload-out and --public-key")
    }
}
