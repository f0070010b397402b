use super::*;

fn id(text: &str) -> Id {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_number_and_a_string_with_the_same_digits_are_two_requests() {
    let running = Running::new(8);
    let root = CancellationToken::new();
    let number = running.begin(&id("1"), &root).unwrap();
    let text = running.begin(&id("\"1\""), &root).unwrap();
    assert!(running.cancel(&id("1")));
    assert!(!number.finish(), "a cancelled request is not answered");
    assert!(text.finish());
}

#[test]
fn an_id_can_be_used_again_after_it_was_cancelled_and_the_old_ticket_takes_nothing() {
    let running = Running::new(8);
    let root = CancellationToken::new();
    let old = running.begin(&id("7"), &root).unwrap();
    assert_eq!(running.begin(&id("7"), &root).unwrap_err(), BeginError::InUse);
    running.cancel(&id("7"));
    let new = running.begin(&id("7"), &root).unwrap();
    assert!(!old.finish());
    assert!(!new.cancelled().is_cancelled());
    assert!(new.finish());
    assert!(running.is_empty());
}

#[test]
fn one_request_too_many_is_refused_and_a_dropped_ticket_makes_room() {
    let running = Running::new(1);
    let root = CancellationToken::new();
    let first = running.begin(&id("1"), &root).unwrap();
    assert_eq!(running.begin(&id("2"), &root).unwrap_err(), BeginError::TooMany(1));
    drop(first);
    assert!(running.begin(&id("2"), &root).is_ok());
}
