//! The hash that ties a row to all rows before it.
//!
//! `sha256` over a domain word and every column, each with a type byte and, for text, its length:
//! no two different rows have one encoding, and a hash from here means nothing elsewhere. The
//! hash of the previous row of the chain is one of the fields; the first row has 32 zero bytes.

use sha2::{Digest as _, Sha256};

/// A row's hash.
pub(crate) type Hash = [u8; 32];

/// What stands before the first row of a chain.
pub(crate) const GENESIS: Hash = [0; 32];

const DOMAIN: &[u8] = b"toolgate audit row, version 1\n";

/// The columns that are hashed, borrowed from a new row or from the database. Text is bytes,
/// because a damaged database may hold what is no text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub(crate) id: i64,
    pub(crate) chain: &'a [u8],
    pub(crate) seq: i64,
    pub(crate) run_id: Option<&'a [u8]>,
    pub(crate) thread_id: Option<&'a [u8]>,
    pub(crate) persona_id: Option<&'a [u8]>,
    pub(crate) action: &'a [u8],
    pub(crate) tool: Option<&'a [u8]>,
    pub(crate) request_id: Option<&'a [u8]>,
    pub(crate) details: &'a [u8],
    pub(crate) created_at: i64,
    pub(crate) created_at_ms: i64,
}

/// The hash of a row that follows a row with hash `previous`.
pub(crate) fn hash(previous: &Hash, row: &Columns<'_>) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(DOMAIN);
    text(&mut hasher, Some(row.chain));
    integer(&mut hasher, row.seq);
    text(&mut hasher, Some(previous));
    integer(&mut hasher, row.id);
    text(&mut hasher, row.run_id);
    text(&mut hasher, row.thread_id);
    text(&mut hasher, row.persona_id);
    text(&mut hasher, Some(row.action));
    text(&mut hasher, row.tool);
    text(&mut hasher, row.request_id);
    text(&mut hasher, Some(row.details));
    integer(&mut hasher, row.created_at);
    integer(&mut hasher, row.created_at_ms);
    hasher.finalize().into()
}

fn text(hasher: &mut Sha256, value: Option<&[u8]>) {
    match value {
        None => hasher.update(b"n"),
        Some(bytes) => {
            hasher.update(b"t");
            // A length of more than 64 bits cannot exist; saturating keeps the function total.
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            hasher.update(length.to_be_bytes());
            hasher.update(bytes);
        }
    }
}

fn integer(hasher: &mut Sha256, value: i64) {
    hasher.update(b"i");
    hasher.update(value.to_be_bytes());
}

#[cfg(test)]
mod tests;
