//! Proof of the operator.

use toolgate_base::ManualClock;

use super::*;

fn operator() -> (tempfile::TempDir, Arc<ManualClock>, Operator) {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(1_000_000));
    let operator = Operator::of(dir.path(), Arc::clone(&clock) as Arc<dyn Clock>);
    (dir, clock, operator)
}

#[test]
fn only_the_pin_that_was_set_is_taken_and_the_file_is_private_and_does_not_hold_it() {
    let (dir, _, operator) = operator();
    assert_eq!(operator.proof().unwrap(), OperatorProof::None);
    operator.set_pin(&"correct-horse".into()).unwrap();
    assert_eq!(operator.proof().unwrap(), OperatorProof::Pin);
    operator.check_pin(&"correct-horse".into()).unwrap();
    assert!(matches!(operator.check_pin(&"correct-hors".into()), Err(OperatorError::WrongPin(_))));
    let text = std::fs::read_to_string(dir.path().join(OPERATOR)).unwrap();
    assert!(!text.contains("correct"), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(dir.path().join(OPERATOR)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn wrong_pins_cost_ever_longer_pauses_that_a_restart_does_not_end() {
    let (dir, clock, operator) = operator();
    operator.set_pin(&"246810".into()).unwrap();
    for _ in 0..FREE_ATTEMPTS {
        assert!(matches!(operator.check_pin(&"135791".into()), Err(OperatorError::WrongPin(_))));
    }
    // The right one does not count either while the pause lasts, in a new process as well.
    let again = Operator::of(dir.path(), Arc::clone(&clock) as Arc<dyn Clock>);
    assert!(
        matches!(again.check_pin(&"246810".into()), Err(OperatorError::Wait(pause)) if pause.as_millis() == 2_000)
    );
    clock.advance(2_000);
    assert!(
        matches!(again.check_pin(&"x".into()), Err(OperatorError::WrongPin(pause)) if pause.as_secs() == 4)
    );
    clock.set(0);
    assert_eq!(again.pause().unwrap().as_secs(), 4, "a clock set back shortens nothing");
    clock.set(2_000_000);
    again.check_pin(&"246810".into()).unwrap();
    assert!(again.pause().unwrap().is_zero(), "a right one starts over");
}

#[test]
fn an_attempt_is_written_down_before_it_is_compared() {
    let (dir, _, operator) = operator();
    operator.set_pin(&"246810".into()).unwrap();
    let path = dir.path().join(OPERATOR);
    let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    // A hash that cannot be computed stands for a process that is killed while it compares.
    record["pin"]["cost"]["memory_kib"] = 0.into();
    std::fs::write(&path, record.to_string()).unwrap();
    assert!(matches!(operator.check_pin(&"246810".into()), Err(OperatorError::Hash(_))));
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(record["failures"], 1);
}

#[test]
fn the_pause_never_exceeds_its_longest() {
    let (_dir, clock, operator) = operator();
    operator.set_pin(&"246810".into()).unwrap();
    let mut record = operator.read().unwrap().unwrap();
    record.failures = u32::MAX;
    record.failed_at_ms = clock.now_ms();
    operator.write(&record).unwrap();
    assert_eq!(operator.pause().unwrap(), Duration::from_millis(MAX_PAUSE_MS));
}

#[test]
fn what_cannot_be_read_is_an_error_and_no_missing_proof() {
    let (dir, _, operator) = operator();
    for text in [
        "",
        "{}",
        r#"{"format":1,"failures":0,"failed_at_ms":0}"#,
        r#"{"format":9,"failures":0,"failed_at_ms":0}"#,
    ] {
        std::fs::write(dir.path().join(OPERATOR), text).unwrap();
        assert!(matches!(operator.proof(), Err(OperatorError::Damaged { .. })), "{text}");
    }
}

#[test]
fn a_pin_that_is_too_short_or_one_character_is_not_taken() {
    let (_dir, _, operator) = operator();
    for pin in ["", "12345", "000000", &"9".repeat(MAX_PIN + 1)] {
        assert!(matches!(operator.set_pin(&pin.into()), Err(OperatorError::Unfit)), "{pin}");
    }
}
