//! Length and marks.

use super::{LONGEST, MARKS, NO_AUDIT, of_file};

#[test]
fn a_file_over_the_limit_is_found_and_one_at_it_is_not() {
    assert!(of_file("a.rs", &"x\n".repeat(LONGEST)).is_empty());
    assert_eq!(of_file("a.rs", &"x\n".repeat(LONGEST + 1)).len(), 1);
    assert!(of_file("a.wit", &"x\n".repeat(LONGEST + 1)).is_empty());
}

#[test]
fn each_mark_is_found_with_its_line() {
    for mark in MARKS {
        let findings = of_file("a.rs", &format!("fine\n// {mark} later\n"));
        assert_eq!(findings[0].place, "a.rs:2", "{mark}");
    }
}

#[test]
fn a_mark_inside_a_longer_word_is_none() {
    assert!(of_file("a.rs", &format!("let {}S = 1; // U+{}X", MARKS[0], MARKS[2])).is_empty());
}

#[test]
fn a_store_without_an_audit_log_is_for_the_bench_alone() {
    let line = format!("let store = Store::{NO_AUDIT}(dir, clock)?;\n");
    assert_eq!(of_file("host/cli/src/context.rs", &line).len(), 1);
    assert_eq!(of_file("tests/e2e/tests/calls.rs", &line).len(), 1);
    assert!(of_file("tests/bench/src/inside.rs", &line).is_empty());
}
