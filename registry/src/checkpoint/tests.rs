use proptest::prelude::*;

use super::*;
use crate::client::tests::fixture::{SNAPSHOT, STRANGER, note as signed, public};

fn checkpoint() -> Checkpoint {
    Checkpoint { origin: "plugins.example/main".to_owned(), size: 3, root: [7; 32] }
}

fn rule(seeds: &[u8], minimum: u32) -> Threshold {
    Threshold { keys: seeds.iter().map(|seed| public(*seed)).collect(), minimum }
}

#[test]
fn a_note_says_what_was_signed_and_counts_each_key_once() {
    let note = signed(&checkpoint(), SNAPSHOT);
    assert_eq!(Checkpoint::verify(&note, &rule(&[SNAPSHOT], 1)), Ok(checkpoint()));
    let line = note.lines().last().unwrap();
    let twice = format!("{note}{line}\n");
    let both = rule(&[SNAPSHOT, SNAPSHOT, STRANGER], 2);
    assert_eq!(Checkpoint::verify(&twice, &both), Err(NoteError::Signatures { valid: 1, minimum: 2 }));
    let other = signed(&checkpoint(), STRANGER);
    let joined = format!("{note}{}\n", other.lines().last().unwrap());
    assert_eq!(Checkpoint::verify(&joined, &both), Ok(checkpoint()));
}

#[test]
fn a_cosignature_that_this_version_does_not_know_is_left_out() {
    let note = signed(&checkpoint(), SNAPSHOT);
    let cosigned = format!("{note}\u{2014} witness.example {}\n", STANDARD.encode([9; 100]));
    assert_eq!(Checkpoint::verify(&cosigned, &rule(&[SNAPSHOT], 1)), Ok(checkpoint()));
}

#[test]
fn another_text_name_or_key_hash_is_no_signature() {
    let note = signed(&checkpoint(), SNAPSHOT);
    let keys = rule(&[SNAPSHOT], 1);
    let refused = Err(NoteError::Signatures { valid: 0, minimum: 1 });
    assert_eq!(Checkpoint::verify(&note.replacen("\n3\n", "\n4\n", 1), &keys), refused);
    assert_eq!(Checkpoint::verify(&note.replace("\u{2014} plugins", "\u{2014} other"), &keys), refused);
    for bad in [
        note.replacen("\n3\n", "\n03\n", 1),
        note.replacen("\n3\n", "\n+3\n", 1),
        note.replacen("\n\n", "\nextension\n\n", 1),
        note.replace("\u{2014} ", "- "),
        note.trim_end().to_owned(),
        String::new(),
    ] {
        assert_eq!(Checkpoint::verify(&bad, &keys), Err(NoteError::Form), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_change_of_one_byte_is_taken_for_another_checkpoint(at in 0_usize..150, bit in 0_u8..8) {
        let note = signed(&checkpoint(), SNAPSHOT);
        let mut bytes = note.clone().into_bytes();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        if let Ok(text) = std::str::from_utf8(&bytes)
            && let Ok(read) = Checkpoint::verify(text, &rule(&[SNAPSHOT], 1))
        {
            prop_assert_eq!(read, checkpoint());
        }
    }
}
