use toolgate_signing::{SigningKey, sign_payload};

use super::{CHECKPOINT_TYPE, Checkpoint};
use crate::testing::Bench;
use crate::{Problem, Store, VerifyOptions, audit::verify};

fn signed(bench: &Bench) -> (Checkpoint, Vec<u8>, SigningKey) {
    let key = SigningKey::from_seed(&[3; 32]);
    let checkpoint = Checkpoint::of(&bench.verify(), 7).unwrap();
    let envelope = sign_payload(CHECKPOINT_TYPE, &checkpoint.payload(), &[&key]);
    (checkpoint, envelope, key)
}

fn against(bench: &Bench, checkpoint: &Checkpoint) -> Vec<Problem> {
    let options = VerifyOptions {
        checkpoints: vec![("monday".to_owned(), checkpoint.clone())],
        ..VerifyOptions::default()
    };
    let report = verify::verify(bench.path(), &options).unwrap();
    report.findings.iter().map(|finding| finding.problem).collect()
}

#[test]
fn a_checkpoint_is_read_back_under_its_key_and_under_no_other() {
    let bench = Bench::new();
    bench.append(4);
    let (checkpoint, envelope, key) = signed(&bench);
    assert_eq!(Checkpoint::open(&envelope, &[key.public()]).unwrap(), checkpoint);
    assert_eq!((checkpoint.last_id, checkpoint.heads["gateway"].seq), (4, 4));
    let other = SigningKey::from_seed(&[4; 32]);
    Checkpoint::open(&envelope, &[other.public()]).unwrap_err();
    let text = String::from_utf8(envelope).unwrap();
    Checkpoint::open(text.replace(CHECKPOINT_TYPE, "text/plain").as_bytes(), &[key.public()]).unwrap_err();
}

/// Whoever can write the data directory can rewrite log and anchors together; not what was signed.
#[test]
fn a_log_that_was_cut_or_written_anew_with_its_anchors_contradicts_a_checkpoint() {
    let mut bench = Bench::new();
    bench.append(6);
    let (checkpoint, ..) = signed(&bench);
    bench.append(2);
    assert_eq!(against(&bench, &checkpoint), [], "rows that follow contradict nothing");
    for rows in [3, 9] {
        bench.close();
        for file in crate::protected_files(bench.path()) {
            let _ = std::fs::remove_file(file);
        }
        bench.clock.advance(5);
        bench.open();
        bench.append(rows);
        assert!(Store::verify(bench.path()).unwrap().is_intact(), "by itself it looks whole");
        let expected = if rows == 3 { Problem::CheckpointCut } else { Problem::CheckpointMismatch };
        assert_eq!(against(&bench, &checkpoint), [expected]);
    }
}

#[test]
fn a_log_with_findings_is_not_vouched_for() {
    let mut bench = Bench::new();
    bench.append(3);
    bench.close();
    bench.tamper("UPDATE audit_log SET tool = 'x' WHERE seq = 2");
    assert!(Checkpoint::of(&bench.verify(), 7).is_none());
}
