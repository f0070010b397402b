//! From bytes that somebody sent to a release that the operator's keys signed.
//!
//! Threat: every byte of the envelope, the component and their names comes from whoever wants code
//! to run here. Nothing of a payload is believed before the threshold over exactly its bytes is met,
//! with one exception: the name it claims chooses the rule that it then has to satisfy.

use std::fmt;

use semver::Version;
use serde::Deserialize;

use crate::digest::Digest;
use crate::dsse::{Envelope, PAYLOAD_TYPE, check_json, pre_authentication_encoding};
use crate::key::{KeyId, PublicKey};
use crate::release::{self, PREDICATE_TYPE, Release, STATEMENT_TYPE, Statement};

/// Who must have signed: at least `minimum` of `keys`.
#[derive(Debug, Clone)]
pub struct Threshold {
    /// The keys that count. A key that comes twice counts once.
    pub keys: Vec<PublicKey>,
    /// How many different ones must have signed; at least 1.
    pub minimum: u32,
}

/// Why a release is refused. What did not match is named; text from the envelope is shortened and escaped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// Something is larger than its limit.
    #[error("the {what} has {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// Its limit.
        limit: usize,
    },
    /// Text that is not UTF-8.
    #[error("the {what} is not UTF-8")]
    NotUtf8 {
        /// What is not.
        what: &'static str,
    },
    /// A member comes twice in one object.
    #[error("the {what} has the key {} twice; readers differ on which counts", shown(key))]
    DuplicateKey {
        /// Envelope or statement.
        what: &'static str,
        /// The name of the member.
        key: String,
    },
    /// Not JSON, a member missing, one too many, or one of the wrong type.
    #[error("the {what} is malformed: {detail}")]
    Malformed {
        /// Envelope or statement.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// Base64 that is none.
    #[error("the {what} is not base64")]
    Base64 {
        /// Payload or signature.
        what: &'static str,
    },
    /// The payload is of another type.
    #[error("the payload type is {}, not `{expected}`", shown(found))]
    PayloadType {
        /// The type that belongs here.
        expected: String,
        /// The type that is given.
        found: String,
    },
    /// Nobody signed.
    #[error("the envelope has no signature")]
    NoSignature,
    /// More signatures than are checked.
    #[error("the envelope has {count} signatures; the limit is {}", crate::dsse::MAX_SIGNATURES)]
    TooManySignatures {
        /// How many there are.
        count: usize,
    },
    /// No rule says who may sign this plugin.
    #[error("no rule in plugins.trust says who may sign {}; add one with the signer's key", shown(name))]
    NoRule {
        /// The name that the payload claims.
        name: String,
    },
    /// The rule cannot be met: it asks for no signature, or for more than it has keys.
    #[error("the rule for {} asks for {minimum} of {keys} keys, which cannot be", shown(name))]
    Rule {
        /// The plugin.
        name: String,
        /// What it asks for.
        minimum: u32,
        /// The different keys it has.
        keys: usize,
    },
    /// Too few of the rule's keys signed these bytes.
    #[error(
        "{} is signed by {valid} of the keys that may sign it, and {minimum} must have signed",
        shown(name)
    )]
    Signature {
        /// The name that the payload claims.
        name: String,
        /// Different keys of the rule with a valid signature.
        valid: usize,
        /// How many there must be.
        minimum: u32,
    },
    /// A key that must have signed did not, whoever else has.
    #[error("{} is not signed by {}, which must have signed it", shown(name), key.as_str())]
    Required {
        /// The plugin.
        name: String,
        /// The key whose signature is missing.
        key: KeyId,
    },
    /// The statement or its predicate is of another type or version.
    #[error("the {field} of the statement is {}, not `{expected}`", shown(found))]
    StatementType {
        /// `_type` or `predicateType`.
        field: &'static str,
        /// What this host reads.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// The statement is not about exactly one component.
    #[error("the statement has {count} subjects, and a release has one component")]
    Subjects {
        /// How many it has.
        count: usize,
    },
    /// The digest in the subject is none.
    #[error("the subject's sha256 is not 64 lowercase hex digits")]
    SubjectDigest,
    /// A name is not the expected one.
    #[error("the name is {}, and {} was expected", shown(found), shown(expected))]
    Name {
        /// What was expected.
        expected: String,
        /// What the statement says.
        found: String,
    },
    /// The version is not the expected one.
    #[error("the version is {found}, and {expected} was expected")]
    Version {
        /// What was expected.
        expected: Version,
        /// What the statement says.
        found: Version,
    },
    /// A field of the release breaks its rule.
    #[error("the field `{field}` of the release must be: {rule}")]
    Field {
        /// The field.
        field: &'static str,
        /// The rule.
        rule: &'static str,
    },
    /// The component is not the signed one.
    #[error("the component is {found}, and {expected} was signed")]
    Component {
        /// The digest in the statement.
        expected: Digest,
        /// The digest of the bytes.
        found: Digest,
    },
}

impl VerifyError {
    /// A stable word for the reason, as the published vectors have it.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too-large",
            Self::NotUtf8 { .. } => "not-utf8",
            Self::DuplicateKey { .. } => "duplicate-key",
            Self::Malformed { .. } => "malformed",
            Self::Base64 { .. } => "base64",
            Self::PayloadType { .. } => "payload-type",
            Self::NoSignature => "no-signature",
            Self::TooManySignatures { .. } => "too-many-signatures",
            Self::NoRule { .. } => "no-rule",
            Self::Rule { .. } => "rule",
            Self::Signature { .. } => "signature",
            Self::Required { .. } => "required",
            Self::StatementType { .. } => "statement-type",
            Self::Subjects { .. } => "subjects",
            Self::SubjectDigest => "subject-digest",
            Self::Name { .. } => "name",
            Self::Version { .. } => "version",
            Self::Field { .. } => "field",
            Self::Component { .. } => "component",
        }
    }

    pub(crate) fn malformed(what: &'static str, error: &serde_json::Error) -> Self {
        Self::Malformed { what, detail: shown(&error.to_string()).to_string() }
    }
}

/// A release that enough of the operator's keys signed. There is no other way to make one.
#[derive(Debug, Clone)]
pub struct VerifiedRelease {
    release: Release,
    component: Digest,
    signers: Vec<KeyId>,
    digest: Digest,
}

/// Verifies an envelope. `trust` answers who may sign the plugin of a name; without an answer it is refused.
///
/// The component is not looked at: call [`VerifiedRelease::check_component`] with its bytes before
/// anything reads them.
pub fn verify_release(
    envelope: &[u8],
    trust: &dyn Fn(&str) -> Option<Threshold>,
) -> Result<VerifiedRelease, VerifyError> {
    let digest = Digest::of(envelope);
    let envelope = Envelope::read(envelope, PAYLOAD_TYPE)?;
    let claimed = claimed_name(&envelope.payload)?;
    let threshold = trust(&claimed).ok_or_else(|| VerifyError::NoRule { name: claimed.clone() })?;
    let signers = check_threshold(&claimed, PAYLOAD_TYPE, &threshold, &envelope)?;
    let (release, component) = read_statement(&envelope.payload)?;
    // The claim was read leniently; what counts is the strict reading of the same bytes.
    expect_name(&claimed, &release.name)?;
    Ok(VerifiedRelease { release, component, signers, digest })
}

impl VerifiedRelease {
    /// What was signed.
    pub const fn release(&self) -> &Release {
        &self.release
    }

    /// The digest of the component that was signed.
    pub const fn component(&self) -> Digest {
        self.component
    }

    /// The ids of the rule's keys that signed, sorted.
    pub fn signers(&self) -> &[KeyId] {
        &self.signers
    }

    /// The digest of the envelope's bytes: what a lock and an index call the release.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether each of these keys is among those that signed: the part of a rule that is no number.
    pub fn require(&self, keys: &[PublicKey]) -> Result<(), VerifyError> {
        match keys.iter().map(PublicKey::id).find(|id| !self.signers.contains(id)) {
            Some(key) => Err(VerifyError::Required { name: self.release.name.clone(), key }),
            None => Ok(()),
        }
    }

    /// Whether these are the bytes that were signed.
    pub fn check_component(&self, bytes: &[u8]) -> Result<(), VerifyError> {
        let found = Digest::of(bytes);
        if found == self.component {
            return Ok(());
        }
        Err(VerifyError::Component { expected: self.component, found })
    }

    /// Whether this is the plugin, and the version, that was asked for; a valid release of another
    /// plugin or an older version is not.
    pub fn check_identity(&self, name: &str, version: Option<&Version>) -> Result<(), VerifyError> {
        expect_name(name, &self.release.name)?;
        match version {
            // Build metadata does not count in the order of versions, but it does in their identity.
            Some(expected) if *expected != self.release.version => {
                Err(VerifyError::Version { expected: expected.clone(), found: self.release.version.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// Verifies an envelope of another type than a release: a registry's documents are such. `what` names it
/// in messages.
///
/// # Errors
/// As [`verify_release`], without what belongs to statements.
pub fn verify_payload(
    what: &str,
    envelope: &[u8],
    payload_type: &str,
    threshold: &Threshold,
) -> Result<VerifiedPayload, VerifyError> {
    let envelope = Envelope::read(envelope, payload_type)?;
    let signers = check_threshold(what, payload_type, threshold, &envelope)?;
    Ok(VerifiedPayload { payload: envelope.payload, signers })
}

/// Bytes that enough of the given keys signed under one payload type.
#[derive(Debug, Clone)]
pub struct VerifiedPayload {
    /// Exactly the bytes that were signed.
    pub payload: Vec<u8>,
    /// The ids of the keys that signed, sorted.
    pub signers: Vec<KeyId>,
}

/// The name in the payload's predicate, of a payload that is not yet verified.
fn claimed_name(payload: &[u8]) -> Result<String, VerifyError> {
    #[derive(Deserialize)]
    struct Claim {
        predicate: Name,
    }
    #[derive(Deserialize)]
    struct Name {
        name: String,
    }
    let claim: Claim =
        serde_json::from_slice(payload).map_err(|error| VerifyError::malformed("statement", &error))?;
    Ok(claim.predicate.name)
}

/// The ids of the rule's keys that signed the payload, if they are enough. Counts different keys: neither
/// signatures nor key ids, of which an attacker can make as many as wanted.
fn check_threshold(
    name: &str,
    payload_type: &str,
    threshold: &Threshold,
    envelope: &Envelope,
) -> Result<Vec<KeyId>, VerifyError> {
    let mut keys: Vec<PublicKey> = Vec::new();
    for key in &threshold.keys {
        if !keys.contains(key) {
            keys.push(*key);
        }
    }
    let minimum = usize::try_from(threshold.minimum).unwrap_or(usize::MAX);
    if minimum == 0 || minimum > keys.len() {
        return Err(VerifyError::Rule {
            name: name.to_owned(),
            minimum: threshold.minimum,
            keys: keys.len(),
        });
    }
    let signed = pre_authentication_encoding(payload_type, &envelope.payload);
    keys.retain(|key| envelope.signatures.iter().any(|signature| key.verifies(&signed, signature)));
    if keys.len() < minimum {
        return Err(VerifyError::Signature {
            name: name.to_owned(),
            valid: keys.len(),
            minimum: threshold.minimum,
        });
    }
    let mut signers: Vec<KeyId> = keys.iter().map(PublicKey::id).collect();
    signers.sort();
    Ok(signers)
}

/// Where a statement has objects.
const OBJECTS: [&[&str]; 7] = [
    &[],
    &["subject", "*"],
    &["subject", "*", "digest"],
    &["predicate"],
    &["predicate", "limits"],
    &["predicate", "capabilities"],
    &["predicate", "capabilities", "*", "*"],
];

/// Reads the statement strictly: no duplicate key, no unknown member, every type and value as it must be.
fn read_statement(payload: &[u8]) -> Result<(Release, Digest), VerifyError> {
    let text = std::str::from_utf8(payload).map_err(|_| VerifyError::NotUtf8 { what: "statement" })?;
    check_json("statement", text, &OBJECTS)?;
    let statement: Statement<serde_json::Value> =
        serde_json::from_str(text).map_err(|error| VerifyError::malformed("statement", &error))?;
    // The types come first: a statement of another version is that, and not malformed.
    expect_type("_type", STATEMENT_TYPE, statement.kind)?;
    expect_type("predicateType", PREDICATE_TYPE, statement.predicate_type)?;
    let release: Release = serde_json::from_value(statement.predicate)
        .map_err(|error| VerifyError::malformed("release", &error))?;
    let [subject] = statement.subject.as_slice() else {
        return Err(VerifyError::Subjects { count: statement.subject.len() });
    };
    expect_name(&release.name, &subject.name)?;
    let component = Digest::from_hex(&subject.digest.sha256).map_err(|_| VerifyError::SubjectDigest)?;
    release::check(&release)
        .map_err(|broken| VerifyError::Field { field: broken.field, rule: broken.rule })?;
    Ok((release, component))
}

fn expect_type(field: &'static str, expected: &'static str, found: String) -> Result<(), VerifyError> {
    if found == expected { Ok(()) } else { Err(VerifyError::StatementType { field, expected, found }) }
}

fn expect_name(expected: &str, found: &str) -> Result<(), VerifyError> {
    if expected == found {
        return Ok(());
    }
    Err(VerifyError::Name { expected: expected.to_owned(), found: found.to_owned() })
}

/// Text from an envelope for a message: short, and without characters that a terminal obeys.
fn shown(text: &str) -> impl fmt::Display {
    let escaped: String = text.chars().take(120).flat_map(char::escape_debug).collect();
    format!("`{escaped}`")
}

#[cfg(test)]
mod tests;
