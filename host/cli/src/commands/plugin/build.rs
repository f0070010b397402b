//! `plugin build`: from a project to `component.wasm`.

use std::path::Path;

use serde_json::json;
use toolgate_kit::{Build, BuildError, Choice, Toolchain, component};
use toolgate_signing::Digest;

use crate::args::plugin::{GuestToolchain, PluginBuild};
use crate::exit::Failure;
use crate::output;

/// The name that stands for a project in its component, wherever it lies.
pub(super) const KNOWN_AS: &str = "/plugin";
/// What the library of a project is called.
pub(super) const LIBRARY: &str = "plugin";

/// Compiles with the toolchain that is there, wraps the module, and writes the component beside a
/// line that says what it was compiled with.
pub(super) fn build(args: &PluginBuild) -> Result<(), Failure> {
    let directory = &args.dir;
    if !directory.join("Cargo.toml").is_file() || !directory.join("plugin.toml").is_file() {
        return Err(Failure::usage(format!(
            "{} is no plugin's project: it has no Cargo.toml and plugin.toml",
            directory.display()
        ))
        .hint("make one with `toolgate plugin new policy|installer|adapter NAME`"));
    }
    let choice = match args.toolchain {
        None => Choice::Any,
        Some(GuestToolchain::Rustup) => Choice::Rustup,
        Some(GuestToolchain::Debian) => Choice::Debian,
    };
    let toolchain = Toolchain::find(choice).map_err(|error| failure(&error))?;
    let how = toolchain.description();
    output::note(&format!("compiling with {how}; the first time takes a minute or two"));
    toolchain
        .build(&Build { workspace: directory, package: None, locked: false, known_as: KNOWN_AS })
        .map_err(|error| failure(&error))?;
    let core = read(&Toolchain::core_module(directory, LIBRARY))?;
    let bytes = component::wrap(&core).map_err(Failure::failed)?;
    let interfaces = component::interfaces(&bytes).map_err(Failure::failed)?;
    let path = directory.join("component.wasm");
    write(&path, &bytes)?;
    write(&directory.join("component.toolchain"), format!("{how}\n").as_bytes())?;
    let digest = Digest::of(&bytes);
    if args.json {
        return output::json(&json!({
            "component": path,
            "bytes": bytes.len(),
            "digest": digest.to_string(),
            "toolchain": how,
            "imports": interfaces.imports,
            "exports": interfaces.exports,
        }));
    }
    output::line(&format!("{}: {} bytes, {digest}", path.display(), bytes.len()))?;
    output::line(&format!("  imports {}", interfaces.imports.join(", ")))?;
    output::line(&format!("  exports {}", interfaces.exports.join(", ")))
}

fn failure(error: &BuildError) -> Failure {
    match error {
        BuildError::NoToolchain(_) => Failure::usage(error),
        BuildError::NotStarted { .. } | BuildError::Failed(_) => Failure::failed(error),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        Failure::failed(format!("{} cannot be read: {error}", path.display()))
            .hint("the library of the project is called `plugin` ([lib] name in Cargo.toml)")
    })
}

/// Whole or not at all: a build that is stopped leaves the component that was there.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let temporary = path.with_extension("new");
    std::fs::write(&temporary, bytes)
        .and_then(|()| std::fs::rename(&temporary, path))
        .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))
}
