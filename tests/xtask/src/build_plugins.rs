//! `cargo xtask build-plugins`: from the sources of every first-party plugin to its signed blobs.
//!
//! For each plugin it writes `component.wasm` and `release.dsse.json` under
//! `registry/first-party/<name>/<version>/`. Everything a release says of a component is read from
//! the component; the rest comes from the manifest of its crate. The result is verified with the
//! admitted keys before anything is written.

use std::fs;
use std::path::{Path, PathBuf};

use toolgate_kit::{Build, Choice, TARGET, Toolchain, component};
use toolgate_signing::{SigningKey, sign_release};

use crate::Outcome;
use crate::plugin::Plugin;
use crate::project::Project;
use crate::{keys, release, sources};

/// With which key to sign.
pub(crate) enum Signer {
    /// The seed in a file outside of the tree.
    Seed(PathBuf),
    /// The development key of this checkout.
    Development,
}

/// Builds, wraps, signs and writes every plugin.
pub(crate) fn run(project: &Project, signer: &Signer) -> Outcome<()> {
    let key = match signer {
        Signer::Seed(file) => keys::from_seed_file(project, file)?,
        Signer::Development => keys::development(project)?,
    };
    let toolchain = Toolchain::find(Choice::Any)?;
    println!("building with {}", toolchain.description());
    build(&toolchain, project)?;

    let development = matches!(signer, Signer::Development);
    keys::admit(project, &key.public(), development)?;
    if development {
        println!("signing with a development key: {} and the blobs are not for a release", keys::ADMITTED);
    }

    let metadata = project.metadata("plugins", TARGET)?;
    for plugin in Plugin::all(&metadata)? {
        let sources = sources::digest(project, &metadata, &plugin)?;
        let size = build_one(project, &plugin, &key, &sources, &toolchain.description())
            .map_err(|fault| format!("{}: {fault}", plugin.manifest.name))?;
        println!("{:<24} {} {size:>8} bytes", plugin.manifest.name, plugin.version);
    }
    Ok(())
}

/// Builds every plugin and compares it with its committed component, byte by byte; true when none
/// differs. Where the release names another toolchain there is nothing to compare.
pub(crate) fn compare(project: &Project) -> Outcome<bool> {
    let toolchain = Toolchain::find(Choice::Any)?;
    build(&toolchain, project)?;
    let trusted = keys::admitted(project)?;
    let metadata = project.metadata("plugins", TARGET)?;
    let mut same = true;
    for plugin in Plugin::all(&metadata)? {
        let committed = fs::read(plugin.blobs(project).join("component.wasm"))?;
        let envelope = fs::read(plugin.blobs(project).join("release.dsse.json"))?;
        let verified = release::verify(&plugin, &envelope, &committed, &trusted)?;
        let theirs = &verified.release().toolchain;
        let verdict = if *theirs != toolchain.description() {
            format!("not compared: built with {theirs}, and here is {}", toolchain.description())
        } else if component::wrap(&fs::read(plugin.core_module(project))?)? == committed {
            "the same bytes".to_owned()
        } else {
            same = false;
            "DIFFERS from what its sources give".to_owned()
        };
        println!("{:<24} {} {verdict}", plugin.manifest.name, plugin.version);
    }
    Ok(same)
}

/// Builds every member of the `plugins` workspace.
fn build(toolchain: &Toolchain, project: &Project) -> Outcome<()> {
    let workspace = project.path("plugins");
    let all = Build { workspace: &workspace, package: None, locked: true, known_as: "/toolgate/plugins" };
    Ok(toolchain.build(&all)?)
}

/// One plugin; returns the size of its component in bytes.
fn build_one(
    project: &Project,
    plugin: &Plugin,
    key: &SigningKey,
    sources: &str,
    toolchain: &str,
) -> Outcome<usize> {
    let core = fs::read(plugin.core_module(project))?;
    let bytes = component::wrap(&core)?;
    let interfaces = component::interfaces(&bytes)?;
    let trusted = keys::admitted(project)?;
    let previous = release::previous(project, plugin, &trusted)?;
    let statement = release::of(plugin, interfaces, sources, toolchain, previous)?;
    let envelope = sign_release(&statement, &bytes, key);
    release::verify(plugin, &envelope, &bytes, &trusted)?;
    let directory = plugin.blobs(project);
    fs::create_dir_all(&directory)?;
    write(&directory.join("component.wasm"), &bytes)?;
    write(&directory.join("release.dsse.json"), &envelope)?;
    Ok(bytes.len())
}

/// Writes a file unless it holds these bytes already, so that builds do not start for nothing.
fn write(path: &Path, bytes: &[u8]) -> Outcome<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(path, bytes).map_err(|fault| format!("{}: {fault}", path.display()).into())
}
