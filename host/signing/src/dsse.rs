//! The envelope around signed bytes: DSSE v1, closed and bounded.
//!
//! Threat: bytes that nobody signed are taken for signed ones. So what is handed on after
//! verification is the very payload the signatures were checked over, never parsed out of the
//! envelope again; the payload's type is under the signature; `keyid` decides nothing; members that
//! DSSE does not have, and members that come twice, are refused.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use crate::canonical::{self, Node};
use crate::verify::VerifyError;

/// Most bytes of an envelope.
pub const MAX_ENVELOPE: usize = 512 * 1024;

/// Most bytes of a payload.
pub const MAX_PAYLOAD: usize = 256 * 1024;

/// Most signatures on one envelope; each costs one check per key of the rule.
pub const MAX_SIGNATURES: usize = 16;

/// The only payload type of a release: an in-toto statement as JSON.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// Where an envelope has objects.
const OBJECTS: [&[&str]; 2] = [&[], &["signatures", "*"]];

/// The bytes that are signed (DSSE v1 protocol, "PAE"): type and body with their lengths, so that no
/// other pair of type and body gives the same bytes.
pub fn pre_authentication_encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// An envelope that was read and not yet verified.
pub(crate) struct Envelope {
    /// The payload's bytes. Until the threshold is met these are only somebody's claim.
    pub(crate) payload: Vec<u8>,
    /// Signatures of the right length, whoever made them.
    pub(crate) signatures: Vec<[u8; 64]>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    payload_type: String,
    payload: String,
    signatures: Vec<WrittenSignature>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSignature {
    sig: String,
    // A hint for choosing a key, and unsigned. We try every key of the rule, so nothing reads it.
    #[serde(default, rename = "keyid")]
    _key_id: Option<String>,
}

impl Envelope {
    /// Reads an envelope of a type: size, UTF-8, duplicate keys, closedness, type, base64, number of
    /// signatures.
    pub(crate) fn read(bytes: &[u8], expected: &str) -> Result<Self, VerifyError> {
        if bytes.len() > MAX_ENVELOPE {
            return Err(VerifyError::TooLarge { what: "envelope", bytes: bytes.len(), limit: MAX_ENVELOPE });
        }
        let text = std::str::from_utf8(bytes).map_err(|_| VerifyError::NotUtf8 { what: "envelope" })?;
        check_json("envelope", text, &OBJECTS)?;
        let written: Written =
            serde_json::from_str(text).map_err(|error| VerifyError::malformed("envelope", &error))?;
        if written.payload_type != expected {
            return Err(VerifyError::PayloadType {
                expected: expected.to_owned(),
                found: written.payload_type,
            });
        }
        let payload = decode(&written.payload).ok_or(VerifyError::Base64 { what: "payload" })?;
        if payload.len() > MAX_PAYLOAD {
            return Err(VerifyError::TooLarge { what: "payload", bytes: payload.len(), limit: MAX_PAYLOAD });
        }
        if written.signatures.is_empty() {
            return Err(VerifyError::NoSignature);
        }
        if written.signatures.len() > MAX_SIGNATURES {
            return Err(VerifyError::TooManySignatures { count: written.signatures.len() });
        }
        let mut signatures = Vec::new();
        for signature in &written.signatures {
            let bytes = decode(&signature.sig).ok_or(VerifyError::Base64 { what: "signature" })?;
            // Another length is another algorithm: it does not count, and is no reason to refuse the rest.
            signatures.extend(<[u8; 64]>::try_from(bytes.as_slice()));
        }
        Ok(Self { payload, signatures })
    }
}

/// Refuses what two readers of JSON could read differently, and an array where an object belongs: serde
/// would take its elements for members in the order in which a Rust struct happens to have them.
///
/// `objects` are paths of member names; `*` stands for every element or member.
pub(crate) fn check_json(what: &'static str, text: &str, objects: &[&[&str]]) -> Result<(), VerifyError> {
    let node = match canonical::parse(text) {
        Ok(node) => node,
        Err(canonical::CanonicalError::DuplicateKey { key, .. }) => {
            return Err(VerifyError::DuplicateKey { what, key });
        }
        Err(error) => return Err(VerifyError::Malformed { what, detail: error.to_string() }),
    };
    match objects.iter().find(|path| !are_objects(&node, path)) {
        Some(path) => {
            Err(VerifyError::Malformed { what, detail: format!("/{} must be an object", path.join("/")) })
        }
        None => Ok(()),
    }
}

/// Whether everything at the path is an object. What is not there is not judged: a missing member has an
/// error of its own.
fn are_objects(node: &Node, path: &[&str]) -> bool {
    match (path, node) {
        ([], node) => matches!(node, Node::Object(_)),
        (["*", rest @ ..], Node::Array(elements)) => {
            elements.iter().all(|element| are_objects(element, rest))
        }
        ([name, rest @ ..], Node::Object(members)) => {
            let mut there = members.iter().filter(|(member, _)| *name == "*" || member == name);
            there.all(|(_, value)| are_objects(value, rest))
        }
        _ => true,
    }
}

/// Standard or URL-safe base64 (DSSE allows both), with or without padding, without stray bits. The
/// two alphabets are not mixed.
fn decode(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(&alphabet::STANDARD, config)
        .decode(text)
        .or_else(|_| GeneralPurpose::new(&alphabet::URL_SAFE, config).decode(text))
        .ok()
}

#[cfg(test)]
mod tests;
