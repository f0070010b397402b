use super::*;

#[test]
fn control_and_hidden_characters_leave_a_reason() {
    assert_eq!(reason("no\u{1b}[31m way\u{0}\u{202e}\u{200b}!\nnext"), "no way! next");
}

#[test]
fn a_reason_is_cut_between_characters() {
    let long = "é".repeat(MAX_REASON);
    let cut = reason(&long);
    assert_eq!(cut.len(), MAX_REASON);
    assert!(cut.chars().all(|character| character == 'é'));
    assert_eq!(super::cut("aé", 2), "a");
}
