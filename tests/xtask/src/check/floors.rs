//! No crate of the host imports from its own floor or from one above (docs/architecture.md).

use crate::check::Finding;
use crate::metadata::{Metadata, Package};

/// The floors from the ground up. Crates of one floor do not know each other, but for
/// [`SAME_FLOOR`].
const FLOORS: [&[&str]; 8] = [
    &["base", "wire", "labels", "signing"],
    &["net", "grants"],
    &["config", "store", "oauth", "upstream", "registry", "plugins", "kit"],
    &["gateway", "sinks", "approvals", "dbq"],
    &["agents"],
    &["downstream"],
    &["cli"],
    // What tests the house may use all of it, and nothing in it may use the tests.
    &["fixtures", "e2e", "bench", "rmcp-peer", "xtask"],
];

/// The arrows that are allowed on one floor: from, to.
const SAME_FLOOR: [(&str, &str); 3] = [("plugins", "registry"), ("e2e", "fixtures"), ("bench", "fixtures")];

/// What any crate's own tests may use: nothing of it reaches the product, and the tests of the
/// binary have to stand beside the binary, because only there does cargo name its path.
const HARNESS: [&str; 2] = ["fixtures", "e2e"];

/// Every arrow that goes up or sideways, dev-dependencies included.
pub(super) fn check(host: &Metadata) -> Vec<Finding> {
    host.members().flat_map(of_package).collect()
}

fn of_package(package: &Package) -> Vec<Finding> {
    let Some(from) = house_name(&package.name) else {
        return vec![Finding::new(&package.name, "a member's name must begin with `toolgate-`")];
    };
    let Some(floor) = floor_of(from) else {
        return vec![Finding::new(
            &package.name,
            "this crate has no floor in tests/xtask/src/check/floors.rs",
        )];
    };
    let ours = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
    ours.filter_map(|dependency| {
        let to = house_name(&dependency.name)?;
        let tested_with = dependency.kind.as_deref() == Some("dev") && HARNESS.contains(&to);
        let below = floor_of(to).is_some_and(|below| below < floor);
        let allowed = below || tested_with || SAME_FLOOR.contains(&(from, to));
        let kind = dependency.kind.as_deref().map(|kind| format!("{kind}-")).unwrap_or_default();
        (!allowed).then(|| {
            Finding::new(
                &package.name,
                format!("{kind}dependency `{}` is not on a lower floor", dependency.name),
            )
        })
    })
    .collect()
}

fn house_name(package: &str) -> Option<&str> {
    package.strip_prefix("toolgate-")
}

fn floor_of(name: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&name))
}

#[cfg(test)]
mod tests;
