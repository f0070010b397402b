//! `plugin verify --rebuild DIR`: whether a release is what these sources give.
//!
//! Contract: compiling runs the build scripts and macros of the sources, so nothing is compiled whose digest
//! is not the signed one. What is compiled is a copy that holds the signed files and no other, in a new
//! directory with a new target directory, by the lock file among them; so no file beside them, and nothing
//! that was built before, has a say. The bytes can only be compared under the toolchain that the release names.

use std::path::{Path, PathBuf};

use toolgate_kit::{Build, BuildError, Choice, Toolchain, component};
use toolgate_plugins::Manifest;
use toolgate_signing::{Digest, VerifiedRelease};

use super::refusal::of_manifest;
use crate::exit::Failure;
use crate::output;

/// Compiles the sources in `directory` and compares.
///
/// # Errors
/// Exit code 5 where sources or component are not those of the release, 2 where a file cannot be used, 1
/// where this machine cannot tell.
pub(super) fn rebuild(release: &VerifiedRelease, directory: &Path) -> Result<(), Failure> {
    let stated = release.release();
    let what = format!("{} {}", stated.name, stated.version);
    let Some(signed) = stated.sources else {
        return Err(Failure::failed(format!(
            "{what} states no digest of its sources, so nothing says what to build"
        ))
        .hint("ask its author to name `sources` in plugin.toml"));
    };
    let manifest = Manifest::read(directory).map_err(|error| of_manifest(&error, directory))?;
    let toolchain = toolchain(&stated.toolchain)?;
    let place = Place::new()?;
    let found = manifest.copy_sources(&place.0).map_err(|error| of_manifest(&error, directory))?;
    if found != Some(signed) {
        let found = found.map_or_else(|| "no digest".to_owned(), |digest| digest.to_string());
        return Err(Failure::integrity(format!(
            "the sources in {} are not those of {what}: they have {found}, and {signed} was signed; nothing was compiled",
            directory.display()
        ))
        .hint("take the sources of exactly this release; a changed line end is another source"));
    }
    let given = compile(&toolchain, &place.0)?;
    if given != release.component() {
        return Err(Failure::integrity(format!(
            "{what} is not what its sources give: they give {given}, and {} was signed",
            release.component()
        ))
        .hint("tell its author, and use nothing of it until the difference is explained"));
    }
    Ok(())
}

/// The toolchain that the release names, if it is here.
fn toolchain(named: &str) -> Result<Toolchain, Failure> {
    let mut here = Vec::new();
    for choice in [Choice::Rustup, Choice::Debian] {
        match Toolchain::find(choice) {
            Ok(toolchain) if toolchain.description() == named => return Ok(toolchain),
            Ok(toolchain) => here.push(toolchain.description()),
            Err(_) => {}
        }
    }
    let have = if here.is_empty() {
        "there is none here".to_owned()
    } else {
        format!("here is {}", here.join("; "))
    };
    Err(Failure::failed(format!("it was built with {named}, and {have}, so its bytes cannot be compared"))
        .hint("install the toolchain that it names, or verify it on a machine that has it"))
}

fn compile(toolchain: &Toolchain, workspace: &Path) -> Result<Digest, Failure> {
    output::note("compiling its sources anew, the standard library included; this takes a minute or two");
    let locked = workspace.join("Cargo.lock").is_file();
    toolchain
        .build(&Build { workspace, package: None, locked, known_as: super::build::KNOWN_AS })
        .map_err(|error| match error {
            BuildError::Failed(_) => Failure::failed(error)
                .hint("the digest covers these sources, so they are the signed ones; their author has to say what they need"),
            error => Failure::failed(error),
        })?;
    let path = Toolchain::core_module(workspace, super::build::LIBRARY);
    let core = std::fs::read(&path)
        .map_err(|error| Failure::failed(format!("{} cannot be read: {error}", path.display())))?;
    Ok(Digest::of(&component::wrap(&core).map_err(Failure::failed)?))
}

/// A directory of its own, gone at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("toolgate-rebuild-{}", toolgate_base::random_hex(16)));
        toolgate_base::files::create_private_dir(&path)
            .map_err(|error| Failure::failed(format!("{} cannot be made: {error}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What is left lies in the directory for temporary files, which the system clears.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
