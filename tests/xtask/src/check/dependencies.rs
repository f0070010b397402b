//! What must not be in the tree of dependencies, and where the rest may come from.
//!
//! One TLS stack, built from Rust with ring: a second one means certificates checked by rules that
//! nobody chose. Guests are checked too, because a component that imports WASI would be refused
//! only at load.

use crate::check::Finding;
use crate::metadata::Metadata;

/// The only registry that a package may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Name or `prefix*`, and why it is banned.
const BANNED: [(&str, &str); 9] = [
    ("aws-lc*", "a second cryptography provider, with a C toolchain of its own"),
    ("openssl*", "a second TLS stack"),
    ("native-tls", "a second TLS stack"),
    ("tokio-native-tls", "a second TLS stack"),
    ("hyper-tls", "a second TLS stack"),
    ("boring*", "a second TLS stack"),
    ("mbedtls*", "a second TLS stack"),
    ("s2n-tls*", "a second TLS stack"),
    ("gnutls*", "a second TLS stack"),
];

/// Names that a pattern of [`BANNED`] covers and that are not what it is about.
const EXCEPT: [&str; 1] = [
    "openssl-probe", // only looks where the system keeps its certificates; holds no TLS
];

/// Crates of which two versions at once would be two TLS stacks.
const SINGLE: [&str; 3] = ["rustls", "ring", "rustls-webpki"];

/// Banned packages, doubled TLS stacks and foreign sources of both workspaces.
pub(super) fn check(host: &Metadata, guests: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for metadata in [host, guests] {
        for package in metadata.resolved() {
            let place = format!("{} {}", package.name, package.version);
            if let Some(why) = banned(&package.name) {
                findings.push(Finding::new(&place, format!("is banned: {why}")));
            }
            if let Some(source) = package.source.as_deref().filter(|source| *source != REGISTRY) {
                findings.push(Finding::new(&place, format!("comes from {source}, not from the registry")));
            }
        }
    }
    for name in SINGLE {
        let versions: Vec<&str> =
            host.resolved().filter(|package| package.name == name).map(|p| p.version.as_str()).collect();
        if versions.len() > 1 {
            findings
                .push(Finding::new(name, format!("is there in several versions: {}", versions.join(", "))));
        }
    }
    for package in guests.resolved().filter(|package| matches!(package.name.as_str(), "wasi" | "wasip2")) {
        findings.push(Finding::new(&package.name, "guests link no WASI"));
    }
    findings
}

fn banned(name: &str) -> Option<&'static str> {
    if EXCEPT.contains(&name) {
        return None;
    }
    BANNED.iter().find_map(|(pattern, why)| {
        let hit = match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == *pattern,
        };
        hit.then_some(*why)
    })
}

#[cfg(test)]
mod tests {
    use super::banned;

    #[test]
    fn a_star_covers_the_family_and_a_plain_name_only_itself() {
        assert!(banned("aws-lc-rs").is_some() && banned("openssl-sys").is_some());
        assert!(banned("native-tls").is_some());
        assert!(
            banned("openssl-probe").is_none() && banned("rustls").is_none() && banned("openssh").is_none()
        );
    }
}
