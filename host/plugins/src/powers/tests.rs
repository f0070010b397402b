use std::collections::BTreeMap;

use toolgate_signing::{HttpCapability, Kind, Release};

use super::{powers, widening};
use crate::tests::guests::{call_policy, release, says};

fn base() -> Release {
    release(Kind::Policy, &call_policy(&says(3)))
}

#[test]
fn a_release_that_imports_decides_or_reaches_more_is_wider_and_says_by_what() {
    let old = base();
    assert!(widening(&old, &old).is_empty());
    let mut new = old.clone();
    new.imports.push("toolgate:plugin/clock@0.1.0".to_owned());
    new.decisions = vec!["allow".to_owned(), "deny".to_owned()];
    let http = HttpCapability {
        hosts: vec!["https://a.example".to_owned()],
        methods: vec!["get".to_owned()],
        max_response: None,
    };
    new.capabilities.http = BTreeMap::from([("api".to_owned(), http)]);
    let mut old = old;
    old.decisions = vec!["deny".to_owned()];
    let about: Vec<&str> = widening(&old, &new).iter().map(|power| power.about).collect();
    assert!(about.contains(&"import") && about.contains(&"decision") && about.contains(&"http"), "{about:?}");
    assert!(widening(&new, &old).is_empty(), "to do less is no widening");
}

#[test]
fn a_larger_limit_is_wider_and_a_newer_version_of_an_interface_is_not() {
    let old = base();
    let mut new = old.clone();
    new.limits.memory_bytes = 1;
    new.limits.call_ms = 1;
    assert!(widening(&old, &new).is_empty());
    assert!(widening(&new, &old).iter().all(|power| power.about == "limit"));
    assert!(!widening(&new, &old).is_empty());
    let mut renamed = old.clone();
    renamed.imports = old.imports.iter().map(|import| import.replace("0.1.0", "0.1.1")).collect();
    assert!(widening(&old, &renamed).is_empty());
    assert!(!powers(&old).is_empty());
}
