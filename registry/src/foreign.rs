//! Every parser of foreign bytes behind one door, for fuzzing and for the replay of its corpus.

use crate::checkpoint::Checkpoint;
use crate::document::{
    self, Config, Delegations, Document, FreshnessDocument, Revocations, Root, Snapshot, canonical,
};
use crate::reference::Reference;
use crate::{line, names, tile};

/// Reads `bytes` as everything that a registry can send; the number of parsers that took them. Whatever a
/// parser takes must come out of its writer as it went in: this panics where it does not, for the fuzzer
/// to find.
#[allow(clippy::panic, clippy::missing_panics_doc, reason = "a fuzz target finds its faults by panics")]
pub fn parse_everything(bytes: &[u8]) -> usize {
    let mut taken = usize::from(document::claimed_payload(bytes).is_some());
    taken += document::<Root>(bytes) + document::<Delegations>(bytes) + document::<Revocations>(bytes);
    taken += document::<Snapshot>(bytes) + document::<FreshnessDocument>(bytes);
    if let Ok(config) = document::read_canonical::<Config>("config.json", bytes) {
        assert_eq!(canonical(&config).as_bytes(), bytes);
        taken += 1;
    }
    if let Ok(names) = names::read(bytes) {
        assert_eq!(names::write(names.values()).as_bytes(), bytes);
        taken += 1;
    }
    for name in ["acme/guard", "a/b"] {
        if let Ok(lines) = line::read(name, bytes) {
            let again: String = lines.iter().map(|line| line.to_text() + "\n").collect();
            assert_eq!(again.as_bytes(), bytes);
            assert!(line::listed(&lines).len() <= lines.len());
            taken += 1;
        }
    }
    taken += usize::from(tile::read(bytes, bytes.len() as u64 / 32).is_some());
    let Ok(text) = std::str::from_utf8(bytes) else { return taken };
    if let Some(checkpoint) = Checkpoint::read(text) {
        assert!(text.starts_with(&checkpoint.text()));
        taken += 1;
    }
    if let Ok(reference) = Reference::parse(text) {
        assert_eq!(Reference::parse(&reference.to_string()).ok(), Some(reference));
        taken += 1;
    }
    taken
}

fn document<D: Document>(bytes: &[u8]) -> usize {
    match document::read::<D>(bytes) {
        Ok(document) => {
            assert_eq!(document.to_payload().as_bytes(), bytes);
            1
        }
        Err(_) => 0,
    }
}
