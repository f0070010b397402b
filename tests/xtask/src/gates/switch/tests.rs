//! What a switch leaves of the source, and what cannot have one.

use super::{VARIABLE, switched};
use crate::gates::Gate;

fn gate(name: &str, call: &str, without: &str) -> Gate {
    Gate {
        name: name.into(),
        file: "a.rs".into(),
        call: call.into(),
        without: without.into(),
        test: "gate_a".into(),
    }
}

/// The source with its switches, written shortly: a switch asks for `off("name")`, and space is one blank.
fn short(source: &str, gates: &[Gate]) -> Result<String, String> {
    let text = switched(source, &gates.iter().collect::<Vec<_>>())?;
    let asked = format!("::std::env::var_os({VARIABLE:?}).is_some_and(|gate| gate == ");
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(words.join(" ").replace(&asked, "off("))
}

#[test]
fn a_condition_is_switched_by_itself() {
    let text =
        short("fn a() { if b > MOST { c(); } }", &[gate("limit", "if b > MOST {", "if b > u8::MAX {")]);
    assert_eq!(
        text.unwrap(),
        r#"fn a() { if { if off("limit") { b > u8::MAX } else { b > MOST } } { c(); } }"#
    );
}

#[test]
fn a_condition_that_binds_a_name_is_switched_with_its_block() {
    let gate = gate("some", "if let Some(x) = y {", "if let Some(x) = y.filter(|_| false) {");
    assert_eq!(
        short("fn a() { if let Some(x) = y { c(x); } }", &[gate]).unwrap(),
        r#"fn a() {{ if off("some") { if let Some(x) = y.filter(|_| false) { c(x); } } else { if let Some(x) = y { c(x); } } }}"#
    );
}

#[test]
fn what_is_bound_for_later_is_switched_with_all_that_uses_it() {
    let gate = gate("standing", "let s = renew();", "let s = Same;");
    assert_eq!(
        short("fn a() { loop { let s = renew(); b(s); } }", &[gate]).unwrap(),
        r#"fn a() { loop {{ if off("standing") { let s = Same; b(s); } else { let s = renew(); b(s); } }} }"#
    );
}

#[test]
fn arms_and_closures_are_switched_where_they_stand() {
    let source = "fn a() -> bool { match b { Deny => false, _ => c.iter().all(|d| e(d)) } }";
    let gates = [gate("arm", "Deny => false,", "Deny => true,"), gate("closure", "e(d)", "e(d) || true")];
    assert_eq!(
        short(source, &gates).unwrap(),
        r#"fn a() -> bool { match b { Deny => { if off("arm") { true } else { false } }, _ => c.iter().all(|d| { if off("closure") { e(d) || true } else { e(d) } }) } }"#
    );
}

#[test]
fn gates_in_one_piece_and_one_in_another_are_switched_one_at_a_time() {
    let source = "fn a() { b(); if c { d(); } e(); }";
    let gates = [gate("b", "b();", ""), gate("e", "e();", ""), gate("c", "if c {", "if f {")];
    let inner = r#"if { if off("c") { f } else { c } } { d(); }"#;
    assert_eq!(
        short(source, &gates).unwrap(),
        format!(
            r#"fn a() {{{{ if off("b") {{ {inner} e(); }} else if off("e") {{ b(); {inner} }} else {{ b(); {inner} e(); }} }}}}"#
        )
    );
}

#[test]
fn what_a_gate_takes_away_has_no_switch_in_that_copy() {
    let source = "fn a() { if c { d(); } }";
    let gates = [gate("whole", "if c { d(); }", ""), gate("inner", "d();", "")];
    assert_eq!(
        short(source, &gates).unwrap(),
        r#"fn a() {{ if off("whole") { } else { if c {{ if off("inner") { } else { d(); } }} } }}"#
    );
}

#[test]
fn what_cannot_be_switched_is_an_error_with_its_name() {
    let wrong = |source: &str, gate: Gate, what: &str| {
        let error = short(source, &[gate]).unwrap_err();
        assert!(error.contains(what), "{error}");
    };
    wrong("const A: u8 = 1;", gate("most", "1", "2"), "`most` stands in no body");
    wrong("const fn a() -> u8 { 1 }", gate("most", "1", "2"), "`most` stands in no body");
    wrong("fn a() { b(); b(); }", gate("twice", "b();", ""), "`twice` does not stand there exactly once");
    wrong("fn a() { b(); }", gate("broken", "b();", "b("), "no Rust any more");
    wrong("fn a( { b(); }", gate("no rust", "b();", ""), "cannot be read as Rust");
}
