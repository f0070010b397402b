use std::fs;

use super::{Anchors, Head, Heads, LOCK_PAUSES, MAX_SLOTS, SLOT};

fn head(seq: i64) -> Head {
    Head { seq, hash: [u8::try_from(seq).unwrap(); 32] }
}

fn fresh() -> (tempfile::TempDir, Heads) {
    let dir = tempfile::tempdir().unwrap();
    let heads = Heads::of(dir.path());
    heads.create().unwrap();
    (dir, heads)
}

#[test]
fn a_slot_is_reserved_moved_forward_and_never_back() {
    let (_dir, mut heads) = fresh();
    assert!(heads.reserve("gateway").unwrap());
    assert!(heads.reserve("cli").unwrap());
    assert_eq!(heads.read().unwrap().of("gateway"), Some(Head::EMPTY));
    assert!(heads.advance("gateway", &head(9), LOCK_PAUSES).unwrap());
    assert!(heads.advance("gateway", &head(4), LOCK_PAUSES).unwrap(), "a late writer is no error");
    assert!(heads.reserve("gateway").unwrap());
    assert_eq!(heads.read().unwrap().of("gateway"), Some(head(9)));
    assert_eq!(heads.read().unwrap().of("cli"), Some(Head::EMPTY));
    assert!(!heads.advance("stranger", &head(1), LOCK_PAUSES).unwrap());
}

#[test]
fn the_file_is_private_and_made_of_slots_that_fill_pages() {
    let (_dir, mut heads) = fresh();
    heads.reserve("gateway").unwrap();
    heads.advance("gateway", &head(1), LOCK_PAUSES).unwrap();
    let bytes = fs::read(heads.path()).unwrap();
    assert_eq!(bytes.len(), 2 * SLOT);
    assert_eq!(4096 % SLOT, 0);
    assert!(bytes.chunks(SLOT).all(|line| line.ends_with(b"\n")));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(heads.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn creating_it_again_changes_nothing() {
    let (_dir, heads) = fresh();
    heads.reserve("gateway").unwrap();
    heads.create().unwrap();
    assert_eq!(heads.read().unwrap().of("gateway"), Some(Head::EMPTY));
}

#[test]
fn a_missing_file_is_neither_made_nor_moved_by_writing() {
    let dir = tempfile::tempdir().unwrap();
    let mut heads = Heads::of(dir.path());
    assert!(!heads.reserve("gateway").unwrap());
    assert!(!heads.advance("gateway", &head(1), LOCK_PAUSES).unwrap());
    assert_eq!(heads.read().unwrap(), Anchors::Missing);
    assert!(!heads.path().exists());
}

#[test]
fn any_changed_byte_makes_it_damaged_and_it_is_left_alone() {
    let (_dir, mut heads) = fresh();
    heads.reserve("gateway").unwrap();
    heads.advance("gateway", &head(3), LOCK_PAUSES).unwrap();
    let good = fs::read(heads.path()).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(heads.path(), &bad).unwrap();
        assert!(matches!(heads.read().unwrap(), Anchors::Damaged(_)), "byte {at}");
        assert!(!heads.advance("gateway", &head(4), LOCK_PAUSES).unwrap());
        assert_eq!(fs::read(heads.path()).unwrap(), bad);
    }
    for cut in [1, SLOT - 1, SLOT + 1, good.len() - 1] {
        fs::write(heads.path(), &good[..cut]).unwrap();
        assert!(matches!(heads.read().unwrap(), Anchors::Damaged(_)), "cut to {cut}");
    }
}

#[test]
fn another_writer_of_the_same_chain_is_seen() {
    let (dir, mut heads) = fresh();
    let mut other = Heads::of(dir.path());
    heads.reserve("gateway").unwrap();
    for (late, seq) in [(false, 1), (true, 2), (false, 3), (false, 4), (true, 6), (false, 5)] {
        let writer = if late { &mut other } else { &mut heads };
        assert!(writer.advance("gateway", &head(seq), LOCK_PAUSES).unwrap());
    }
    assert_eq!(heads.read().unwrap().of("gateway"), Some(head(6)));
}

#[test]
fn it_has_a_bounded_number_of_slots() {
    let (_dir, heads) = fresh();
    for number in 0..MAX_SLOTS {
        assert!(heads.reserve(&format!("w{number}")).unwrap());
    }
    assert!(!heads.reserve("one-more").unwrap());
    assert!(matches!(heads.read().unwrap(), Anchors::Slots(slots) if slots.len() == MAX_SLOTS));
}

/// The file stays open between two rows; what stands at its path counts all the same.
#[test]
fn a_file_that_is_moved_away_while_it_is_open_is_missed_and_not_written_to() {
    let (dir, mut heads) = fresh();
    heads.reserve("gateway").unwrap();
    assert!(heads.advance("gateway", &head(1), LOCK_PAUSES).unwrap());
    let (there, away) = (heads.path().to_owned(), dir.path().join("away"));
    fs::rename(&there, &away).unwrap();
    let before = fs::read(&away).unwrap();
    assert!(!heads.advance("gateway", &head(2), LOCK_PAUSES).unwrap());
    assert_eq!(fs::read(&away).unwrap(), before);
    fs::copy(&away, &there).unwrap();
    assert!(heads.advance("gateway", &head(3), LOCK_PAUSES).unwrap());
    assert_eq!(heads.read().unwrap().of("gateway"), Some(head(3)));
}
