//! A gate that is as it should be passes; each way to be wrong is found.

use super::{compare, unswitched};
use crate::gates::Gate;

fn gate(name: &str) -> Gate {
    Gate {
        name: name.into(),
        file: "a.rs".into(),
        call: "check()?;".into(),
        without: String::new(),
        test: "gate_a".into(),
    }
}

fn findings(gates: &[Gate], source: Option<&str>, table: &str) -> Vec<String> {
    let source = |_: &str| source.map(str::to_owned);
    compare(gates, &source, "fn gate_a_works() {}", table).into_iter().map(|found| found.what).collect()
}

#[test]
fn a_gate_that_is_called_once_tested_and_explained_passes() {
    assert!(findings(&[gate("a")], Some("check()?;"), "| a | there | then |").is_empty());
}

#[test]
fn each_way_to_be_wrong_is_found() {
    let table = "| a | there | then |";
    let wrong = |gates: &[Gate], source: Option<&str>, table: &str, what: &str| {
        let found = findings(gates, source, table);
        assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
    };
    wrong(&[gate("a")], Some(""), table, "stands 0 times");
    wrong(&[gate("a")], Some("check()?; check()?;"), table, "stands 2 times");
    wrong(&[gate("a")], None, table, "cannot be read");
    wrong(&[gate("a")], Some("check()?;"), "", "does not explain");
    wrong(&[gate("a"), gate("a")], Some("check()?;"), table, "another gate");
    wrong(&[Gate { test: "gate_b".into(), ..gate("a") }], Some("check()?;"), table, "0 tests of the binary");
    wrong(&[Gate { without: "check()?;".into(), ..gate("a") }], Some("check()?;"), table, "nothing changes");
}

#[test]
fn a_test_that_two_gates_could_mean_is_found() {
    let source = |_: &str| Some("check()?;".to_owned());
    let found = compare(&[gate("a")], &source, "fn gate_a_works() {}\nfn gate_a_too() {}", "| a | there |");
    assert!(found.len() == 1 && found[0].what.contains("2 tests of the binary"));
}

#[test]
fn a_gate_that_cannot_be_switched_is_found() {
    let found = |text: &'static str| unswitched(&[gate("a")], &|_| Some(text.to_owned())).len();
    assert_eq!(found("fn a() -> Option<()> { check()?; None }"), 0);
    assert_eq!(found("const A: Option<()> = { check()?; None };"), 1);
}
