//! What a component is, imports and exports, read from its bytes before anything is compiled.
//!
//! Threat: bytes that pretend to be a plugin. Only a component is read on; it is validated by
//! `wasmparser` with no more features than the engine has; and what it imports and exports must be
//! exactly what its signed release says (design.md 4 "Three gates"; spec plugin-host 2.4; WA-09).

use std::collections::BTreeSet;

use toolgate_signing::{Kind, Release, VerifiedRelease, Wasi};
use wasmparser::{
    ComponentExternalKind, ComponentTypeRef, Encoding, Parser, Payload, Validator, WasmFeatures,
};

use crate::capability::wasi;
use crate::contract::{self, Offer};
use crate::error::LoadErrorKind;
use crate::limits::{MAX_COMPONENT, MAX_SEALED_COMPONENT};

/// The outer shape of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Names of what it imports, sorted, as `toolgate:plugin/log@0.1.0`. The interface that holds
    /// only types (`toolgate:plugin/types`) is left out: it cannot be called, so no release lists it.
    pub imports: Vec<String>,
    /// Names of what it exports, sorted.
    pub exports: Vec<String>,
    /// Names of instances that it exports beside its interfaces, sorted: what a linker of a language
    /// left standing, as `exports` of componentize-py. A plain name belongs to no package, so nothing
    /// can be meant by it that the contract knows, and no release lists it; the host never looks at
    /// it, and only sealed guests may have one.
    pub helpers: Vec<String>,
}

/// Reads the imports and exports of a component, as a release has to declare them.
///
/// # Errors
/// The kinds of [`LoadErrorKind`] up to `Malformed`.
pub fn inspect(component: &[u8]) -> Result<Inspection, LoadErrorKind> {
    check_form(component)?;
    Validator::new_with_features(features())
        .validate_all(component)
        .map_err(|error| LoadErrorKind::Malformed(error.to_string()))?;
    let mut found = outer_shape(component)?;
    found.imports.retain(|name| !contract::is_types_only(name));
    found.imports.sort();
    found.exports.sort();
    found.helpers.sort();
    Ok(found)
}

/// All checks of a plugin before it is compiled, in the order of spec plugin-host 2.4. The caller
/// has verified the signature: that is what a [`VerifiedRelease`] is.
pub(crate) fn admit(component: &[u8], verified: &VerifiedRelease) -> Result<Inspection, LoadErrorKind> {
    let sealed = verified.release().capabilities.wasi == Some(Wasi::Sealed);
    check_size(component, if sealed { MAX_SEALED_COMPONENT } else { MAX_COMPONENT })?;
    verified.check_component(component).map_err(LoadErrorKind::Digest)?;
    let found = inspect(component)?;
    let release = verified.release();
    check_imports(&found, release)?;
    check_exports(&found, release)?;
    check_world(release)?;
    check_host_version(release)?;
    Ok(found)
}

fn check_size(component: &[u8], limit: usize) -> Result<(), LoadErrorKind> {
    if component.is_empty() {
        return Err(LoadErrorKind::Empty);
    }
    if component.len() > limit {
        return Err(LoadErrorKind::TooLarge { bytes: component.len(), limit });
    }
    Ok(())
}

/// What kind of file it is, by its first bytes.
fn check_form(component: &[u8]) -> Result<(), LoadErrorKind> {
    check_size(component, MAX_SEALED_COMPONENT)?;
    if component.starts_with(b"\x7fELF") {
        return Err(LoadErrorKind::NativeCode);
    }
    if Parser::is_core_wasm(component) {
        return Err(LoadErrorKind::CoreModule);
    }
    if !Parser::is_component(component) {
        return Err(LoadErrorKind::NotWasm);
    }
    Ok(())
}

/// What the engine accepts and no more (`engine::base_config`).
fn features() -> WasmFeatures {
    let mut features = WasmFeatures::WASM2;
    features.insert(WasmFeatures::TAIL_CALL | WasmFeatures::EXTENDED_CONST | WasmFeatures::COMPONENT_MODEL);
    features
}

/// Top-level imports and exports; those of nested components are satisfied inside.
fn outer_shape(component: &[u8]) -> Result<Inspection, LoadErrorKind> {
    let malformed = |error: wasmparser::BinaryReaderError| LoadErrorKind::Malformed(error.to_string());
    let mut found = Inspection::default();
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(malformed)? {
            Payload::Version { encoding, .. } => {
                if depth == 0 && encoding != Encoding::Component {
                    return Err(LoadErrorKind::CoreModule);
                }
                depth = depth.saturating_add(1);
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    let import = import.map_err(malformed)?;
                    found.imports.push(named(import.name.name, import.ty));
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    let export = export.map_err(malformed)?;
                    let name = export.name.name.to_owned();
                    let helper = export.kind == ComponentExternalKind::Instance && !name.contains([':', '/']);
                    if helper { &mut found.helpers } else { &mut found.exports }.push(name);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The name of an import; with its sort where that is no instance, which no contract offers.
fn named(name: &str, ty: ComponentTypeRef) -> String {
    match ty {
        ComponentTypeRef::Instance(_) => name.to_owned(),
        other => format!("{} `{name}`", other.kind().desc()),
    }
}

fn check_imports(found: &Inspection, release: &Release) -> Result<(), LoadErrorKind> {
    let declared: BTreeSet<&str> = release.imports.iter().map(String::as_str).collect();
    for import in &found.imports {
        let from_wasi = import.starts_with("wasi:");
        if from_wasi && (release.capabilities.wasi != Some(Wasi::Sealed) || !wasi::offers(import)) {
            return Err(LoadErrorKind::Wasi(import.clone()));
        }
        if !declared.contains(import.as_str()) {
            return Err(LoadErrorKind::Undeclared(import.clone()));
        }
        if !from_wasi && let Offer::Missing(offered) = contract::offer(import) {
            return Err(LoadErrorKind::Unknown { import: import.clone(), offered });
        }
    }
    let absent = declared
        .into_iter()
        .find(|name| !contract::is_types_only(name) && !found.imports.iter().any(|import| import == name));
    match absent {
        Some(name) => Err(LoadErrorKind::NotThere { what: "the import", name: name.to_owned() }),
        None => Ok(()),
    }
}

fn check_exports(found: &Inspection, release: &Release) -> Result<(), LoadErrorKind> {
    if release.capabilities.wasi != Some(Wasi::Sealed)
        && let Some(name) = found.helpers.first()
    {
        let why = "is no interface; only a guest with wasi = \"sealed\" may have such an instance".to_owned();
        return Err(LoadErrorKind::Export { name: name.clone(), why });
    }
    for export in &found.exports {
        if !release.exports.contains(export) {
            let why = "its signed release does not declare".to_owned();
            return Err(LoadErrorKind::Export { name: export.clone(), why });
        }
        contract::check_export(release.kind, export)
            .map_err(|why| LoadErrorKind::Export { name: export.clone(), why })?;
    }
    if let Some(name) = release.exports.iter().find(|name| !found.exports.contains(name)) {
        return Err(LoadErrorKind::NotThere { what: "the export", name: name.clone() });
    }
    if found.exports.is_empty() {
        let name = match release.kind {
            Kind::Policy => "any hook",
            Kind::Installer => "installer",
            Kind::Adapter => "adapter",
        };
        return Err(LoadErrorKind::NotThere { what: "the export", name: name.to_owned() });
    }
    Ok(())
}

fn check_world(release: &Release) -> Result<(), LoadErrorKind> {
    let needed = contract::world_of(release.kind);
    if release.world != needed {
        return Err(LoadErrorKind::World { found: release.world.clone(), needed });
    }
    Ok(())
}

fn check_host_version(release: &Release) -> Result<(), LoadErrorKind> {
    let have = env!("CARGO_PKG_VERSION");
    match semver::Version::parse(have) {
        Ok(own) if release.min_host <= own => Ok(()),
        _ => Err(LoadErrorKind::HostTooOld { needed: release.min_host.to_string(), have: have.to_owned() }),
    }
}

#[cfg(test)]
mod tests;
