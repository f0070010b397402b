//! The checkpoint: a signed note (C2SP signed-note, tlog-checkpoint) that says how long the log is and
//! what its root is.
//!
//! Text: origin, size, root in base64, one to a line; a blank line; then one line for each signature,
//! `— <name> <base64 of 4 bytes of key hash and the signature>`. Witnesses and monitors of
//! transparency logs read the same bytes.
//!
//! Threat: the note of another log, or of another size under the same signature. The origin is under
//! the signature and compared, and the text has one spelling only.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolgate_signing::{Digest, PublicKey, Threshold};

use crate::merkle::Hash;

/// Most bytes of a note.
pub(crate) const MAX_NOTE: usize = 16 * 1024;
/// The algorithm byte of Ed25519 in a signed note.
const ED25519: u8 = 1;
/// An em dash and a space begin a signature.
const MARK: &str = "\u{2014} ";

/// What a checkpoint says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// Whose log.
    pub(crate) origin: String,
    /// How many lines.
    pub(crate) size: u64,
    /// The root of their tree.
    pub(crate) root: Hash,
}

/// Why a note is none, or not enough.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoteError {
    #[error("it is no signed note")]
    Form,
    #[error("it is signed by {valid} of the keys of the snapshot role, and {minimum} must have signed")]
    Signatures { valid: usize, minimum: u32 },
}

impl Checkpoint {
    /// The text that is signed.
    pub(crate) fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root))
    }

    /// Reads a note and counts the different keys of the rule that signed it.
    pub(crate) fn verify(note: &str, rule: &Threshold) -> Result<Self, NoteError> {
        let (checkpoint, signatures) = Self::parse(note).ok_or(NoteError::Form)?;
        let text = checkpoint.text();
        let mut keys: Vec<PublicKey> = Vec::new();
        for key in &rule.keys {
            let hash = key_hash(&checkpoint.origin, key);
            let signed = signatures.iter().any(|(name, claimed, signature)| {
                *name == checkpoint.origin && *claimed == hash && key.verifies(text.as_bytes(), signature)
            });
            if signed && !keys.contains(key) {
                keys.push(*key);
            }
        }
        if (keys.len() as u64) < u64::from(rule.minimum.max(1)) {
            return Err(NoteError::Signatures { valid: keys.len(), minimum: rule.minimum });
        }
        Ok(checkpoint)
    }

    /// What a text says that waits for its signatures, in its one spelling.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        let checkpoint = Self {
            origin: origin.to_owned(),
            size: size.parse().ok()?,
            root: STANDARD.decode(root).ok()?.try_into().ok()?,
        };
        // One spelling: leading zeros, signs, extension lines and stray bits do not come out again.
        (checkpoint.text() == text && crate::layout::is_origin(origin)).then_some(checkpoint)
    }

    /// What a note says, whoever signed it.
    pub(crate) fn read(note: &str) -> Option<Self> {
        Self::parse(note).map(|(checkpoint, _)| checkpoint)
    }

    /// The text of a note and its signatures. Signatures that are no Ed25519 are left out: others may
    /// cosign with what this version does not know.
    fn parse(note: &str) -> Option<(Self, Vec<Signature<'_>>)> {
        let (text, signatures) = note.split_once("\n\n")?;
        if note.len() > MAX_NOTE || !signatures.ends_with('\n') {
            return None;
        }
        let checkpoint = Self::of_text(&format!("{text}\n"))?;
        let lines = signatures.trim_end_matches('\n').split('\n');
        let signatures: Option<Vec<Vec<Signature<'_>>>> = lines.map(signature).collect();
        Some((checkpoint, signatures?.concat()))
    }
}

type Signature<'a> = (&'a str, [u8; 4], [u8; 64]);

/// The signature of a line; none if it is of another algorithm.
fn signature(line: &str) -> Option<Vec<Signature<'_>>> {
    let (name, encoded) = line.strip_prefix(MARK)?.split_once(' ')?;
    let bytes = STANDARD.decode(encoded).ok()?;
    let (hash, signature) = bytes.split_first_chunk::<4>()?;
    Some(<[u8; 64]>::try_from(signature).ok().map(|signature| (name, *hash, signature)).into_iter().collect())
}

/// The first four bytes of sha256(name || LF || algorithm || key).
pub(crate) fn key_hash(name: &str, key: &PublicKey) -> [u8; 4] {
    let digest = Digest::of_parts(&[name.as_bytes(), b"\n", &[ED25519], &key.to_bytes()]);
    let [a, b, c, d, ..] = *digest.as_bytes();
    [a, b, c, d]
}

/// A note of a checkpoint with the signatures of these keys.
pub(crate) fn note(checkpoint: &Checkpoint, signatures: &[(PublicKey, [u8; 64])]) -> String {
    let mut note = checkpoint.text();
    note.push('\n');
    for (key, signature) in signatures {
        let bytes = [key_hash(&checkpoint.origin, key).as_slice(), signature].concat();
        let encoded = STANDARD.encode(bytes);
        note.extend([MARK, &checkpoint.origin, " ", &encoded, "\n"]);
    }
    note
}

#[cfg(test)]
mod tests;
