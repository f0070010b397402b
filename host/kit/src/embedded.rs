//! The contract and the SDK as they stood when this binary was built, as files of a new project.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The workspace of the first-party plugins, from which versions, profile and lints are taken.
const WORKSPACE: &str = include_str!("../../../plugins/Cargo.toml");

/// Versions and checksums of the crates that the SDK was built and tested with.
pub(crate) const LOCK: &str = include_str!("../../../plugins/Cargo.lock");

/// Flags of the guest build.
pub(crate) const CARGO_CONFIG: &str = include_str!("../../../plugins/.cargo/config.toml");

/// Where the SDK finds the contract in this tree, and where in a project.
const WIT_PATH: (&str, &str) = ("path: \"../../wit\"", "path: \"../wit\"");

/// The crates that a new project can use, of those that the first-party plugins know.
const CRATES: [&str; 4] = ["toolgate-sdk ", "serde ", "serde_json ", "wit-bindgen "];

/// The files of the contract and the SDK, by their names in a project.
pub(crate) fn files() -> impl Iterator<Item = (String, String)> {
    let wit = WIT.iter().map(|(name, text)| (format!("wit/{name}"), (*text).to_owned()));
    let sdk = SDK.iter().map(|(name, text)| (format!("sdk/{name}"), text.replace(WIT_PATH.0, WIT_PATH.1)));
    wit.chain(sdk)
}

/// The tables of the first-party workspace that hold for a project as well: package, dependencies,
/// profile and lints.
pub(crate) fn workspace_tables() -> String {
    let mut kept = String::new();
    let mut dependencies = false;
    let from = WORKSPACE.find("[workspace.package]").unwrap_or_default();
    for line in WORKSPACE.get(from..).unwrap_or_default().lines() {
        if line.starts_with('[') {
            dependencies = line == "[workspace.dependencies]";
        }
        let dropped =
            dependencies && line.contains(" = ") && !CRATES.iter().any(|name| line.starts_with(name));
        if !dropped {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}
