//! Everything that a release can name has its line.

use std::path::Path;

use wit_parser::Resolve;

use super::{DECISIONS, INTERFACES, of_decision, of_interface};

#[test]
fn card_008_every_interface_of_the_contract_has_a_line_and_no_line_is_about_nothing() {
    let mut resolve = Resolve::default();
    resolve.push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit")).unwrap();
    let names: Vec<String> =
        resolve.interfaces.iter().filter_map(|(_, interface)| interface.name.clone()).collect();
    for name in &names {
        assert!(of_interface(name).is_some(), "wit/ has `{name}`, and nothing says what it means");
        assert_eq!(of_interface(&format!("toolgate:plugin/{name}@0.1.0")), of_interface(name));
    }
    // Capabilities are described before a host offers them: a release may be newer than its reader.
    let ahead = ["kv", "http", "secrets", "secrets-reveal", "files"];
    for (known, _) in INTERFACES {
        assert!(names.iter().any(|name| name == known) || ahead.contains(known), "{known} is not in wit/");
    }
}

#[test]
fn every_decision_of_the_contract_has_a_line() {
    let mut resolve = Resolve::default();
    resolve.push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit")).unwrap();
    let (_, decision) =
        resolve.types.iter().find(|(_, kind)| kind.name.as_deref() == Some("decision")).unwrap();
    let wit_parser::TypeDefKind::Variant(variant) = &decision.kind else { panic!("no variant") };
    for case in &variant.cases {
        assert!(of_decision(&case.name).is_some(), "`{}` has no line", case.name);
    }
    assert_eq!(variant.cases.len(), DECISIONS.len());
}

#[test]
fn what_the_contract_does_not_have_is_unknown() {
    assert_eq!(of_interface("other:package/log@0.1.0"), None);
    assert_eq!(of_interface("toolgate:plugin/sockets@0.1.0"), None);
    assert!(of_interface("wasi:io/streams@0.2.6").unwrap().contains("sealed"));
}
