//! The first-party plugins in the binary: signed bytes, verified at start like any other plugin.
//!
//! They are built and signed by `cargo xtask build-plugins` and committed under `registry/`, so that
//! the first run needs no guest toolchain. Only the keys of `registry/first-party/keys.txt` may sign
//! a plugin whose name begins with [`PREFIX`].

use toolgate_signing::PublicKey;

use crate::assemble::PluginFiles;

/// Names that belong to Toolgate.
pub const PREFIX: &str = "toolgate/";

const KEYS: &str = include_str!("../../../registry/first-party/keys.txt");

macro_rules! embedded {
    ($($name:literal $version:literal),* $(,)?) => {
        &[$((
            concat!("toolgate/", $name),
            include_bytes!(concat!("../../../registry/first-party/", $name, "/", $version, "/component.wasm")).as_slice(),
            include_bytes!(concat!("../../../registry/first-party/", $name, "/", $version, "/release.dsse.json")).as_slice(),
        )),*]
    };
}

/// Name, component, release.
type Embedded = (&'static str, &'static [u8], &'static [u8]);

/// In the order they are asked: the cheap ones that mostly decide come first.
const POLICIES: &[Embedded] =
    embedded!["capabilities" "0.1.0", "trust" "0.1.0", "hidden-text" "0.1.0", "ask" "0.1.0"];
const ADAPTERS: &[Embedded] = embedded!["filesystem" "0.1.0", "fetch" "0.1.0", "sqlite" "0.1.0"];
/// Policies that are off until `plugins.load` names them: what they judge by stands in their settings.
const ON_REQUEST: &[Embedded] = embedded!["arguments" "0.1.0", "taint" "0.1.0"];

/// The keys that may sign first-party plugins; more than one, so that one can be lost. A line that is
/// no admissible key is left out, and fewer keys open nothing.
pub fn keys() -> Vec<PublicKey> {
    let lines = KEYS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| PublicKey::parse(line).ok()).collect()
}

/// The policies that are on unless `plugins.bundle: none`.
pub fn policies() -> Vec<PluginFiles> {
    POLICIES.iter().map(files).collect()
}

/// Every plugin of the bundle, adapters included.
pub fn all() -> Vec<PluginFiles> {
    POLICIES.iter().chain(ADAPTERS).chain(ON_REQUEST).map(files).collect()
}

/// A plugin of the bundle by its name.
pub fn find(name: &str) -> Option<PluginFiles> {
    POLICIES.iter().chain(ADAPTERS).chain(ON_REQUEST).find(|embedded| embedded.0 == name).map(files)
}

fn files(embedded: &Embedded) -> PluginFiles {
    let (name, component, release) = *embedded;
    PluginFiles {
        plugin: name.to_owned(),
        component: component.into(),
        release: release.into(),
        schema: None,
    }
}
