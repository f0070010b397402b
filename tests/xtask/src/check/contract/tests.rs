//! What the check finds, and what it lets pass.

use std::fs;

use super::{compare, undocumented};

const THEN: &str = "package toolgate:plugin@0.1.0;
/// A.
interface log {
    /// B.
    write: func(message: string);
}
/// C.
interface hook {
    /// D.
    check: func() -> bool;
}
/// E.
world policy { import log; export hook; }
";

/// What is found where the contract of today is that of then with `from` replaced by `to`.
fn found(from: &str, to: &str) -> Vec<String> {
    let [today, then] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    assert!(THEN.contains(from));
    fs::write(today.path().join("all.wit"), THEN.replace(from, to)).unwrap();
    fs::write(then.path().join("all.wit"), THEN).unwrap();
    let findings = compare(today.path(), then.path(), "0.1.0").unwrap();
    let silent = undocumented(today.path()).unwrap();
    findings.into_iter().chain(silent).map(|finding| finding.what).collect()
}

#[test]
fn an_addition_that_a_component_need_not_use_passes() {
    assert_eq!(found("message: string);", "message: string);\n    /// N.\n    more: func();"), [""; 0]);
    assert_eq!(
        found(
            "import log;",
            "import log; import extra;\n}\n/// X.\ninterface extra {\n /// Y.\n f: func();\n}\n/// Z.\nworld other {"
        ),
        [""; 0]
    );
    assert_eq!(found("@0.1.0", "@0.2.0"), [""; 0], "the version is no part of it");
}

#[test]
fn a_changed_type_a_removed_function_and_a_lost_world_are_found() {
    for (from, to) in [
        ("message: string", "message: u32"),
        ("write: func", "print: func"),
        ("-> bool", "-> u8"),
        ("export hook;", "export hook; export new: interface { f: func(); }"),
        ("world policy", "world judge"),
    ] {
        let found = found(from, to);
        assert!(found.iter().any(|what| what.contains("policy")), "{from} to {to}: {found:?}");
    }
}

#[test]
fn an_item_without_a_word_is_found() {
    assert_eq!(found("    /// B.\n", ""), ["log.write has no documentation"]);
    assert_eq!(found("/// E.\n", ""), ["world policy has no documentation"]);
}
