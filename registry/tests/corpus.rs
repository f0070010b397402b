//! Replays the corpus of the fuzz target, and every file of the published vectors, as they are, cut short
//! and with a bit flipped: nothing panics, and what is taken is written as it was read.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what is wrong here is a failed test")]

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolgate_registry::parse_everything;

/// The bytes as they are, then damaged; how many parsers took them undamaged.
fn replay(bytes: &[u8]) -> usize {
    let step = (bytes.len() / 40).max(1);
    for at in (0..bytes.len()).step_by(step) {
        parse_everything(&bytes[..at]);
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1 << (at % 8);
        parse_everything(&flipped);
    }
    parse_everything(bytes)
}

fn files(directory: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    std::fs::read_dir(path).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn the_corpus_of_the_parsers_holds() {
    let corpus = files("fuzz/corpus/parsers");
    assert!(corpus.len() > 5);
    for bytes in corpus {
        assert!(replay(&bytes) > 0, "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn every_file_of_the_published_vectors_is_read_without_a_panic_however_it_is_damaged() {
    let (mut seen, mut taken) = (std::collections::BTreeSet::new(), 0);
    for vector in files("vectors") {
        let vector: serde_json::Value = serde_json::from_slice(&vector).unwrap();
        for visit in vector["visits"].as_array().unwrap() {
            for text in visit["files"].as_object().unwrap().values().filter_map(|text| text.as_str()) {
                if !seen.insert(text.to_owned()) {
                    continue;
                }
                let bytes = match text.strip_prefix("base64:") {
                    Some(encoded) => STANDARD.decode(encoded).unwrap(),
                    None => text.as_bytes().to_vec(),
                };
                taken += replay(&bytes);
                // What is signed stands inside an envelope.
                let payload = serde_json::from_slice::<serde_json::Value>(&bytes).ok();
                let payload = payload
                    .and_then(|envelope| Some(STANDARD.decode(envelope["payload"].as_str()?).unwrap()));
                taken += payload.map_or(0, |payload| replay(&payload));
            }
        }
    }
    assert!(seen.len() > 100 && taken > 100, "{} files, {taken} taken", seen.len());
}
