//! Replays the fuzz corpus through the fuzz targets' own bodies, so that what libFuzzer once found stays found.

#![allow(
    missing_docs,
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "the bodies are assertions, and are written for the fuzz targets"
)]

use std::path::Path;

#[path = "../fuzz/bodies.rs"]
mod bodies;

/// Runs every file of a target's corpus, and every head of it, and every file with one byte flipped.
fn replay(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        body(&bytes);
        for end in 0..bytes.len() {
            body(&bytes[..end]);
            let mut flipped = bytes.clone();
            flipped[end] ^= 1 << (end % 8);
            body(&flipped);
        }
        files += 1;
    }
    assert!(files > 0, "the corpus of {target} is empty");
}

#[test]
fn door_corpus() {
    replay("door", bodies::door);
}

#[test]
fn line_corpus() {
    replay("line", bodies::line);
}

#[test]
fn sse_corpus() {
    replay("sse", bodies::sse);
}

#[test]
fn edit_corpus() {
    replay("edit", bodies::edit);
}

#[test]
fn message_corpus() {
    replay("message", bodies::message);
}
