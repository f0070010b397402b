//! Checkpoints: where every chain of a log stood at a moment, signed, to be kept where the account that
//! writes the log cannot reach.
//!
//! A DSSE envelope over canonical JSON: `{"at":…,"format":1,"heads":{"gateway":{"hash":…,"seq":…}},
//! "last_id":…}`. A log that has another row at one of these numbers, or ends before it, was rewritten
//! or cut after the checkpoint was signed.
//!
//! Threat: a document of another kind, signed by the same key, is taken for a checkpoint; the type is
//! under the signature. Bounds: those of an envelope; 64 chains, as many as `audit.heads` has slots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolgate_signing::{PublicKey, Threshold, VerifyError, verify_payload};

use super::chain::Hash;
use super::verify::VerifyReport;

/// The type under the signature.
pub const CHECKPOINT_TYPE: &str = "application/vnd.toolgate.audit-checkpoint.v1+json";
const FORMAT: u32 = 1;
const MAX_CHAINS: usize = 64;

/// Where the chains of a log stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// When it was taken, milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The number of the last row of the log.
    pub last_id: i64,
    /// The last row of each chain.
    pub heads: BTreeMap<String, CheckpointHead>,
}

/// The last row of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointHead {
    /// Its number in the chain.
    pub seq: i64,
    /// Its hash.
    pub hash: Hash,
}

/// Why a checkpoint does not count.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// No given key signed it, or it is no envelope of this type.
    #[error(transparent)]
    Signature(#[from] VerifyError),
    /// What was signed is no checkpoint that this build reads.
    #[error("what was signed is no audit checkpoint: {0}")]
    Content(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    at: u64,
    format: u32,
    heads: BTreeMap<String, WrittenHead>,
    last_id: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHead {
    hash: String,
    seq: i64,
}

impl Checkpoint {
    /// Where a verified log stands. None where the report has findings: a log that is not whole is not
    /// vouched for.
    pub fn of(report: &VerifyReport, at_ms: u64) -> Option<Self> {
        if !report.is_intact() {
            return None;
        }
        let heads = report.chains.iter().filter_map(|chain| {
            let mut hash = Hash::default();
            hex::decode_to_slice(&chain.head, &mut hash).ok()?;
            Some((chain.chain.clone(), CheckpointHead { seq: chain.last_seq, hash }))
        });
        Some(Self { at_ms, last_id: report.last_id, heads: heads.collect() })
    }

    /// What is signed, under the type [`CHECKPOINT_TYPE`].
    pub fn payload(&self) -> Vec<u8> {
        let heads = self.heads.iter().map(|(chain, head)| {
            (chain.clone(), WrittenHead { hash: hex::encode(head.hash), seq: head.seq })
        });
        let written =
            Written { at: self.at_ms, format: FORMAT, heads: heads.collect(), last_id: self.last_id };
        // The members stand in the order of their names, so this is canonical JSON as it is. Text and
        // numbers always have a text.
        serde_json::to_vec(&written).unwrap_or_default()
    }

    /// Reads an envelope that one of the keys signed.
    pub fn open(envelope: &[u8], keys: &[PublicKey]) -> Result<Self, CheckpointError> {
        let threshold = Threshold { keys: keys.to_vec(), minimum: 1 };
        let verified = verify_payload("the checkpoint", envelope, CHECKPOINT_TYPE, &threshold)?;
        let written: Written = serde_json::from_slice(&verified.payload)
            .map_err(|error| CheckpointError::Content(error.to_string()))?;
        if written.format != FORMAT || written.heads.len() > MAX_CHAINS {
            return Err(CheckpointError::Content(format!(
                "it has format {} and {} chains; this Toolgate reads format {FORMAT} with up to {MAX_CHAINS}",
                written.format,
                written.heads.len()
            )));
        }
        let heads = written.heads.into_iter().map(|(chain, head)| {
            let mut hash = Hash::default();
            hex::decode_to_slice(&head.hash, &mut hash)
                .map_err(|_| CheckpointError::Content(format!("the hash of chain `{chain}` is none")))?;
            Ok((chain, CheckpointHead { seq: head.seq, hash }))
        });
        Ok(Self {
            at_ms: written.at,
            last_id: written.last_id,
            heads: heads.collect::<Result<_, CheckpointError>>()?,
        })
    }
}

#[cfg(test)]
mod tests;
