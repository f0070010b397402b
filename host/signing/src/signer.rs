//! Whoever can sign: a key in this process, a device, a program, or somebody elsewhere who sends the
//! signature later.
//!
//! Contract: a [`Signer`] signs the pre-authentication encoding of a payload, which names its type and
//! length, so that what it signs is never anything else by accident. No signature is put into an
//! envelope that does not verify under the key that it is said to be of: a device that answers with
//! rubbish, or for another key, is found here and not by whoever installs the release.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer as _;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::dsse::{Envelope, MAX_ENVELOPE, MAX_SIGNATURES, pre_authentication_encoding};
use crate::key::{KeyId, PublicKey};
use crate::sign::SigningKey;
use crate::verify::VerifyError;

/// Signs with one Ed25519 key.
pub trait Signer {
    /// The half that verifies.
    fn public(&self) -> PublicKey;

    /// The signature of `encoded`, which is [`pre_authentication_encoding`]'s.
    ///
    /// # Errors
    /// [`SignError::Refused`] with what the device, program or person said; [`SignError::Waits`] where the
    /// signature is made elsewhere and has not come back yet.
    fn sign(&self, encoded: &[u8]) -> Result<[u8; 64], SignError>;
}

impl Signer for SigningKey {
    fn public(&self) -> PublicKey {
        Self::public(self)
    }

    fn sign(&self, encoded: &[u8]) -> Result<[u8; 64], SignError> {
        Ok(self.0.sign(encoded).to_bytes())
    }
}

/// Why something is not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The signer did not sign.
    #[error("the signer did not sign: {0}")]
    Refused(String),
    /// The signature is made elsewhere: what is to be signed was written down, and nothing else was done.
    #[error("a signature that is made elsewhere has not come back yet")]
    Waits,
    /// What came back is no signature of that key over these bytes.
    #[error("the signature does not verify under the key {}: it is of another key or of other bytes", key.as_str())]
    DoesNotVerify {
        /// The key it should be of.
        key: KeyId,
    },
    /// The same key has signed already; a key counts once.
    #[error("the key {} has signed this already; a key counts once", key.as_str())]
    SignedAlready {
        /// The key.
        key: KeyId,
    },
    /// The envelope holds as many signatures as are ever checked.
    #[error("the envelope has {MAX_SIGNATURES} signatures, which is the limit")]
    Full,
    /// The envelope that is to be signed further cannot be read.
    #[error(transparent)]
    Envelope(#[from] VerifyError),
    /// The text is not 64 bytes, in base64, hex or as they are.
    #[error(
        "an Ed25519 signature has 64 bytes, raw, in base64 or in hex; these are {0} bytes of something else"
    )]
    NoSignature(usize),
}

/// A DSSE envelope around a payload with one signature of each signer, ending in a line feed.
///
/// # Errors
/// As [`signatures`].
pub fn seal(payload_type: &str, payload: &[u8], signers: &[&dyn Signer]) -> Result<Vec<u8>, SignError> {
    let encoded = pre_authentication_encoding(payload_type, payload);
    let mut made = Vec::new();
    for (key, signature) in signatures(&encoded, signers)? {
        push(&mut made, &encoded, &key, &signature)?;
    }
    Ok(written(payload_type, payload, &made))
}

/// One signature of each signer over the same bytes, each checked under its key. Where one is made elsewhere
/// and has not come back, the others are asked all the same, so that all of them can be on their way at once.
///
/// # Errors
/// The first signer that does not sign, or answers with no signature of its key; [`SignError::Waits`] where
/// nothing is wrong and something is still elsewhere.
pub fn signatures(encoded: &[u8], signers: &[&dyn Signer]) -> Result<Vec<(PublicKey, [u8; 64])>, SignError> {
    let (mut made, mut waits) = (Vec::new(), false);
    for signer in signers {
        let key = signer.public();
        match signer.sign(encoded) {
            Err(SignError::Waits) => waits = true,
            Err(error) => return Err(error),
            Ok(signature) if key.verifies(encoded, &signature) => made.push((key, signature)),
            Ok(_) => return Err(SignError::DoesNotVerify { key: key.id() }),
        }
    }
    if waits { Err(SignError::Waits) } else { Ok(made) }
}

/// An envelope around a payload with a signature that was made elsewhere.
pub fn seal_with(
    payload_type: &str,
    payload: &[u8],
    key: &PublicKey,
    signature: &[u8; 64],
) -> Result<Vec<u8>, SignError> {
    let encoded = pre_authentication_encoding(payload_type, payload);
    let mut signatures = Vec::new();
    push(&mut signatures, &encoded, key, signature)?;
    Ok(written(payload_type, payload, &signatures))
}

/// The envelope with one signature more, made here or elsewhere. Those it has are kept as they are:
/// whoever verifies will judge them.
pub fn add_signature(envelope: &[u8], key: &PublicKey, signature: &[u8; 64]) -> Result<Vec<u8>, SignError> {
    let (payload_type, open) = unverified(envelope)?;
    let encoded = pre_authentication_encoding(&payload_type, &open.payload);
    if open.signatures.iter().any(|bytes| key.verifies(&encoded, bytes)) {
        return Err(SignError::SignedAlready { key: key.id() });
    }
    let mut written: Written =
        serde_json::from_slice(envelope).map_err(|error| VerifyError::malformed("envelope", &error))?;
    push(&mut written.signatures, &encoded, key, signature)?;
    Ok(self::written(&payload_type, &open.payload, &written.signatures))
}

/// The type and the payload of an envelope that nobody has verified: for signing it further or showing it.
pub fn unverified_payload(envelope: &[u8]) -> Result<(String, Vec<u8>), VerifyError> {
    unverified(envelope).map(|(payload_type, open)| (payload_type, open.payload))
}

/// An envelope of whatever type it claims, read as strictly as one that is verified.
fn unverified(envelope: &[u8]) -> Result<(String, Envelope), VerifyError> {
    // Bounded here too, because the claim is read before the envelope's own checks.
    if envelope.len() > MAX_ENVELOPE {
        return Err(VerifyError::TooLarge { what: "envelope", bytes: envelope.len(), limit: MAX_ENVELOPE });
    }
    let claim: Written =
        serde_json::from_slice(envelope).map_err(|error| VerifyError::malformed("envelope", &error))?;
    let open = Envelope::read(envelope, &claim.payload_type)?;
    Ok((claim.payload_type, open))
}

/// The parts of an envelope that are read without judging it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    payload_type: String,
    signatures: Vec<Value>,
}

/// The type and the payload of a pre-authentication encoding, as a file that waited for its signature
/// holds it; nothing if it is none.
pub fn decode_pre_authentication(encoded: &[u8]) -> Option<(String, Vec<u8>)> {
    let rest = encoded.strip_prefix(b"DSSEv1 ")?;
    let (payload_type, rest) = counted(rest)?;
    let (payload, rest) = counted(rest.strip_prefix(b" ")?)?;
    let payload_type = String::from_utf8(payload_type.to_vec()).ok()?;
    // Only the one spelling that is signed: no signs, spaces or zeros before a length.
    let again = pre_authentication_encoding(&payload_type, payload);
    (rest.is_empty() && again == encoded).then(|| (payload_type, payload.to_vec()))
}

/// A signature as tools write it: 64 raw bytes, or base64 or hex of them with white space around.
pub fn read_signature(bytes: &[u8]) -> Result<[u8; 64], SignError> {
    if let Ok(raw) = <[u8; 64]>::try_from(bytes) {
        return Ok(raw);
    }
    let text = std::str::from_utf8(bytes).unwrap_or("").trim();
    // 128 hex digits are base64 of something else too, so the length decides.
    [STANDARD.decode(text).ok(), hex::decode(text).ok()]
        .into_iter()
        .flatten()
        .find_map(|decoded| <[u8; 64]>::try_from(decoded.as_slice()).ok())
        .ok_or(SignError::NoSignature(bytes.len()))
}

fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b' ')?;
    let (count, rest) = bytes.split_at_checked(end)?;
    let count: usize = std::str::from_utf8(count).ok()?.parse().ok()?;
    rest.get(1..)?.split_at_checked(count)
}

fn push(
    signatures: &mut Vec<Value>,
    encoded: &[u8],
    key: &PublicKey,
    signature: &[u8; 64],
) -> Result<(), SignError> {
    if !key.verifies(encoded, signature) {
        return Err(SignError::DoesNotVerify { key: key.id() });
    }
    let made = json!({ "keyid": key.id().as_str(), "sig": STANDARD.encode(signature) });
    if signatures.contains(&made) {
        return Err(SignError::SignedAlready { key: key.id() });
    }
    if signatures.len() >= MAX_SIGNATURES {
        return Err(SignError::Full);
    }
    signatures.push(made);
    Ok(())
}

/// The envelope as text, ending in a line feed.
pub(crate) fn written(payload_type: &str, payload: &[u8], signatures: &[Value]) -> Vec<u8> {
    let envelope = json!({
        "payloadType": payload_type,
        "payload": STANDARD.encode(payload),
        "signatures": signatures,
    });
    format!("{envelope}\n").into_bytes()
}

#[cfg(test)]
mod tests;
