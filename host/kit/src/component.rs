//! From a core module to a component, and what a component imports and exports.

use wit_component::{ComponentEncoder, DecodedWasm};

/// Why a module could not be wrapped, or a component not be read.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The core module is none that `wit-bindgen` described, or the result is not valid.
    #[error("the core module makes no component: {0}")]
    Wrap(String),
    /// The bytes are no component.
    #[error("this is no component: {0}")]
    Read(String),
}

/// Names of the interfaces of a component, sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interfaces {
    /// What it imports, `types` included.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
}

/// Wraps a core module that `wit-bindgen` described, and validates the result.
pub fn wrap(core: &[u8]) -> Result<Vec<u8>, ComponentError> {
    ComponentEncoder::default()
        .validate(true)
        .module(core)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|fault| ComponentError::Wrap(format!("{fault:#}")))
}

/// Reads the interfaces from the binary itself, never from what somebody says of it.
pub fn interfaces(component: &[u8]) -> Result<Interfaces, ComponentError> {
    let read = |fault: String| ComponentError::Read(fault);
    let decoded = wit_component::decode(component).map_err(|fault| read(format!("{fault:#}")))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err(read("it is a WIT package".to_owned()));
    };
    let world = resolve.worlds.get(world).ok_or_else(|| read("it has no world".to_owned()))?;
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
