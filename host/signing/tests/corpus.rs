//! Replays the corpus of the fuzz targets, so that what fuzzing found once stays found.

#[path = "../fuzz/checks.rs"]
mod checks;

/// Runs `check` on every file of one target's corpus; returns how many there are.
fn replay(target: &str, check: fn(&[u8])) -> std::io::Result<usize> {
    let directory = format!("{}/fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for entry in std::fs::read_dir(directory)? {
        check(&std::fs::read(entry?.path())?);
        count += 1;
    }
    Ok(count)
}

#[test]
fn the_corpus_of_both_fuzz_targets_holds() {
    assert!(replay("canonical_json", checks::canonical_json).unwrap() > 10);
    assert!(replay("envelope", checks::envelope).unwrap() > 10);
}
