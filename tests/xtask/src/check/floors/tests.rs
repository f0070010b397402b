//! Arrows down pass; arrows up and sideways do not.

use serde_json::json;

use super::of_package;
use crate::metadata::Package;

fn package(name: &str, dependency: &str, kind: Option<&str>) -> Package {
    serde_json::from_value(json!({
        "id": name, "name": name, "version": "0.1.0", "manifest_path": "/x/Cargo.toml",
        "license": null, "license_file": null, "source": null,
        "dependencies": [
            { "name": dependency, "kind": kind, "path": "/y" },
            { "name": "serde", "kind": null, "path": null }
        ]
    }))
    .unwrap()
}

#[test]
fn an_arrow_down_passes() {
    assert!(of_package(&package("toolgate-gateway", "toolgate-wire", None)).is_empty());
    assert!(of_package(&package("toolgate-plugins", "toolgate-registry", None)).is_empty());
}

#[test]
fn an_arrow_up_or_sideways_is_found_even_for_tests() {
    for (from, to, kind) in [
        ("toolgate-wire", "toolgate-gateway", None),
        ("toolgate-upstream", "toolgate-config", None),
        ("toolgate-registry", "toolgate-plugins", None),
        ("toolgate-store", "toolgate-cli", Some("dev")),
    ] {
        let findings = of_package(&package(from, to, kind));
        assert_eq!(findings.len(), 1, "{from} -> {to}");
        assert!(findings[0].what.contains(to));
    }
}

#[test]
fn tests_may_use_the_harness_and_the_product_may_not() {
    assert!(of_package(&package("toolgate-cli", "toolgate-e2e", Some("dev"))).is_empty());
    assert_eq!(of_package(&package("toolgate-cli", "toolgate-e2e", None)).len(), 1);
}

#[test]
fn a_crate_without_a_floor_is_found() {
    assert_eq!(of_package(&package("toolgate-attic", "toolgate-base", None)).len(), 1);
}
