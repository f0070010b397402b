//! Which interfaces the contract has, who may import and export them, and who opens them.
//!
//! This one table is the third gate (design.md 4): an interface that a plugin's linker does not
//! hold cannot be called. The linker of a plugin is built from the imports of its component, after
//! each was found in its signed release and in this table.

use semver::Version;
use toolgate_signing::Kind;
use wasmtime::component::{HasSelf, Linker};

use crate::bindings;
use crate::facts::Hook;
use crate::state::State;

/// The package of the contract.
const PACKAGE: &str = "toolgate:plugin";

/// The version of the contract that this host speaks.
pub(crate) const VERSION: &str = "0.1.0";

/// The interface of types only: nothing in it can be called, so nobody needs to declare it.
const TYPES: &str = "types";

/// What adds one interface to a linker.
type Link = fn(&mut Linker<State>) -> wasmtime::Result<()>;

/// Every interface that a guest may import in this version. Those from `kv` on are capabilities: they
/// are linked only where a label of them is open to the plugin (`opened`).
const IMPORTS: [(&str, Link); 13] = [
    (TYPES, |_| Ok(())),
    ("log", |linker| bindings::log::add_to_linker::<_, HasSelf<State>>(linker, |state| state)),
    ("clock", |linker| bindings::clock::add_to_linker::<_, HasSelf<State>>(linker, |state| state)),
    ("hashing", |linker| bindings::hashing::add_to_linker::<_, HasSelf<State>>(linker, |state| state)),
    ("settings", |linker| bindings::settings::add_to_linker::<_, HasSelf<State>>(linker, |state| state)),
    ("matching", |linker| bindings::matching::add_to_linker::<_, HasSelf<State>>(linker, |state| state)),
    ("documents", |linker| bindings::documents::add_to_linker::<_, HasSelf<State>>(linker, |state| state)),
    ("requests", |linker| bindings::requests::add_to_linker::<_, HasSelf<State>>(linker, |state| state)),
    ("kv", |linker| bindings::kv::add_to_linker::<_, HasSelf<State>>(linker, |state| state)),
    ("http", |linker| bindings::http::add_to_linker::<_, HasSelf<State>>(linker, |state| state)),
    ("secrets", |linker| bindings::secrets::add_to_linker::<_, HasSelf<State>>(linker, |state| state)),
    ("secrets-reveal", |linker| {
        bindings::secrets_reveal::add_to_linker::<_, HasSelf<State>>(linker, |state| state)
    }),
    ("files", |linker| bindings::files::add_to_linker::<_, HasSelf<State>>(linker, |state| state)),
];

/// What the contract says about one import.
pub(crate) enum Offer {
    /// The host has it; this puts it into a linker.
    Here(Link),
    /// The host does not have it, and this is what it has, as a sentence.
    Missing(String),
}

/// Whether the host offers the interface `name`, as `toolgate:plugin/log@0.1.0`.
pub(crate) fn offer(name: &str) -> Offer {
    let Some(interface) = interface_of(name) else {
        return Offer::Missing(format!("it offers interfaces of {PACKAGE}@{VERSION} and nothing else"));
    };
    match IMPORTS.iter().find(|(offered, _)| *offered == interface.name) {
        Some((_, link)) if interface.fits() => Offer::Here(*link),
        Some(_) => Offer::Missing(format!("it offers {}", full_name(interface.name))),
        None => Offer::Missing(format!("{PACKAGE}@{VERSION} has no interface `{}`", interface.name)),
    }
}

/// Whether an import or export is about types only.
pub(crate) fn is_types_only(name: &str) -> bool {
    interface_of(name).is_some_and(|interface| interface.name == TYPES && interface.fits())
}

/// Whether this import makes answers depend on more than the request (design.md 4).
pub(crate) fn is_clock(name: &str) -> bool {
    is(name, "clock")
}

/// Whether an import is this interface, in whatever version.
pub(crate) fn is(name: &str, interface: &str) -> bool {
    interface_of(name).is_some_and(|found| found.name == interface)
}

/// The world that a release of this kind names, as `toolgate:plugin/policy@0.1.0`.
pub fn world_of(kind: Kind) -> String {
    full_name(match kind {
        Kind::Policy => "policy",
        Kind::Installer => "installer-plugin",
        Kind::Adapter => "adapter-plugin",
    })
}

/// Whether a component of this kind may export `name`; if not, why.
pub(crate) fn check_export(kind: Kind, name: &str) -> Result<(), String> {
    let allowed: Vec<String> = match kind {
        Kind::Policy => Hook::ALL.into_iter().map(hook_interface).collect(),
        Kind::Installer => vec![full_name("installer")],
        Kind::Adapter => vec![full_name("adapter")],
    };
    if allowed.iter().any(|export| export == name) {
        return Ok(());
    }
    Err(format!("is not in its world {}", world_of(kind)))
}

/// The full name of a hook's interface.
pub(crate) fn hook_interface(hook: Hook) -> String {
    full_name(&format!("{}-hook", hook.word()))
}

/// The full name of an interface in this host's version.
pub(crate) fn full_name(interface: &str) -> String {
    format!("{PACKAGE}/{interface}@{VERSION}")
}

/// A name taken apart.
struct Interface<'a> {
    name: &'a str,
    version: Option<Version>,
}

fn interface_of(name: &str) -> Option<Interface<'_>> {
    let (package, rest) = name.split_once('/')?;
    let (name, version) = rest.split_once('@').unwrap_or((rest, ""));
    (package == PACKAGE).then(|| Interface { name, version: Version::parse(version).ok() })
}

impl Interface<'_> {
    /// Same track, and no newer than the host: then the host has all that the guest may call.
    fn fits(&self) -> bool {
        let (Some(version), Ok(own)) = (&self.version, Version::parse(VERSION)) else {
            return false;
        };
        version.major == own.major && version.minor == own.minor && *version <= own && version.pre.is_empty()
    }
}
