//! From a core module to a component, and what a component imports and exports.

use wit_component::{ComponentEncoder, DecodedWasm};

use crate::Outcome;

/// Names of the interfaces of a component, sorted.
pub(crate) struct Interfaces {
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
}

/// Wraps a core module that `wit-bindgen` described, and validates the result.
pub(crate) fn wrap(core: &[u8]) -> Outcome<Vec<u8>> {
    ComponentEncoder::default()
        .validate(true)
        .module(core)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|fault| format!("{fault:#}").into())
}

/// Reads the interfaces from the binary itself, never from what somebody says of it.
pub(crate) fn interfaces(component: &[u8]) -> Outcome<Interfaces> {
    let decoded = wit_component::decode(component).map_err(|fault| format!("{fault:#}"))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err("this is a WIT package, not a component".into());
    };
    let world = resolve.worlds.get(world).ok_or("the component has no world")?;
    let names = |keys: Vec<&_>| {
        let mut names: Vec<String> = keys.into_iter().map(|key| resolve.name_world_key(key)).collect();
        names.sort();
        names
    };
    Ok(Interfaces {
        imports: names(world.imports.keys().collect()),
        exports: names(world.exports.keys().collect()),
    })
}
