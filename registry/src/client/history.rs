//! The log in one visit: that its note is signed, and that it continues what was seen.
//!
//! Bounds: 32 bytes are kept for each line. Threat: a registry that shows different histories to different
//! clients, or rewrites the one that was seen.

use toolgate_signing::Digest;

use super::refresh::{required, same};
use crate::checkpoint::Checkpoint;
use crate::document::{Role, Root, Snapshot};
use crate::error::RegistryError;
use crate::merkle::{self, Hash};
use crate::source::Source;
use crate::tile;

pub(super) fn check_checkpoint(root: &Root, snapshot: &Snapshot) -> Result<(), RegistryError> {
    let refused = |detail: String| RegistryError::Checkpoint { detail };
    let checkpoint = Checkpoint::verify(&snapshot.checkpoint, &root.threshold(Role::Snapshot))
        .map_err(|error| refused(error.to_string()))?;
    let expected = Checkpoint {
        origin: root.log_origin(),
        size: snapshot.log.size,
        root: *snapshot.log.root.as_bytes(),
    };
    if checkpoint == expected {
        return Ok(());
    }
    Err(refused(format!(
        "it is of {} with {} lines, and the snapshot names {} with {}, or another root of their tree",
        checkpoint.origin, checkpoint.size, expected.origin, expected.size
    )))
}

/// The hashes of the whole log: those that were seen, and the new ones, which together must have the root
/// that was signed. That the new log continues the old one needs no other proof.
pub(super) async fn log(
    source: &Source,
    known: &[Hash],
    snapshot: &Snapshot,
) -> Result<Vec<Hash>, RegistryError> {
    let (seen, size) = (known.len() as u64, snapshot.log.size);
    if size < seen {
        return Err(RegistryError::Rollback {
            what: "a log with lines".to_owned(),
            known: seen,
            found: size,
        });
    }
    let continued = leaves(source, known, size).await?;
    if Digest::from_bytes(merkle::root(&continued)) == snapshot.log.root {
        return Ok(continued);
    }
    if size == seen && seen > 0 {
        return Err(RegistryError::Fork { known: seen, size });
    }
    // Either the tiles are not those of the signed log, or that log is another than the one we know.
    let anew = leaves(source, &[], size).await?;
    let found = Digest::from_bytes(merkle::root(&anew));
    if found == snapshot.log.root {
        return Err(RegistryError::Fork { known: seen, size });
    }
    same("log", &snapshot.log.root, &found)?;
    Ok(anew)
}

/// The known hashes, followed by those of the tiles up to `size`.
async fn leaves(source: &Source, known: &[Hash], size: u64) -> Result<Vec<Hash>, RegistryError> {
    let mut hashes = known.to_vec();
    for (number, width) in tile::covering(known.len() as u64, size) {
        let path = tile::path(0, number, width);
        let bytes = required(source, &path, tile::WIDTH * 32).await?;
        let tile = tile::read(&bytes, width)
            .ok_or_else(|| RegistryError::malformed(path, format!("it has not {width} hashes")))?;
        let have = hashes.len().saturating_sub(usize::try_from(number * tile::WIDTH).unwrap_or(usize::MAX));
        hashes.extend_from_slice(tile.get(have..).unwrap_or_default());
    }
    Ok(hashes)
}
