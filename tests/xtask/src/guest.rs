//! The toolchain that builds guests, and the build itself.
//!
//! Two are understood: a rustup toolchain with the target installed, and Debian's `rustc-web` with
//! the sources of the standard library, for machines where rustup can fetch nothing. Which one it
//! was stands in the release, because the bytes of a component depend on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::plugin::TARGET;
use crate::project::{Project, output};

/// How guests are built on this machine.
pub(crate) struct Toolchain {
    cargo: PathBuf,
    rustc: PathBuf,
    /// Set when the standard library is built from source.
    linker: Option<PathBuf>,
    version: String,
}

impl Toolchain {
    /// Finds one, or lists what to install.
    pub(crate) fn find() -> Outcome<Self> {
        if let Some(found) = Self::rustup().or_else(Self::debian) {
            return Ok(found);
        }
        Err(format!(
            "no toolchain for {TARGET} was found. Install one of:\n\
             - with rustup: rustup target add {TARGET}\n\
             - on Debian: apt-get install rustc-web cargo-web rust-web-src, and any rustup \
               toolchain, whose rust-lld links"
        )
        .into())
    }

    /// What a release records.
    pub(crate) fn description(&self) -> String {
        let how = if self.linker.is_some() { ", std built from source" } else { "" };
        format!("{}, {TARGET}{how}", self.version)
    }

    /// A rustup toolchain that has the target.
    fn rustup() -> Option<Self> {
        let rustc = PathBuf::from("rustc");
        let libraries = ask(&rustc, &["--print", "target-libdir", "--target", TARGET])?;
        let has_core = fs::read_dir(libraries)
            .ok()?
            .flatten()
            .any(|file| file.file_name().to_string_lossy().starts_with("libstd-"));
        let version = ask(&rustc, &["--version"])?;
        has_core.then(|| Self { cargo: "cargo".into(), rustc, linker: None, version })
    }

    /// Debian's compiler with the sources of the standard library, and a linker from rustup.
    fn debian() -> Option<Self> {
        let (rustc, cargo) = (PathBuf::from("/usr/bin/rustc"), PathBuf::from("/usr/bin/cargo"));
        if !rustc.is_file() || !cargo.is_file() {
            return None;
        }
        let version = ask(&rustc, &["--version"])?;
        let number = version.split_whitespace().nth(1)?;
        let beside = Path::new(&ask(&rustc, &["--print", "sysroot"])?).join("lib/rustlib/src/rust/library");
        let debian = PathBuf::from(format!("/usr/src/rustc-{number}/library"));
        if !beside.is_dir() && !debian.is_dir() {
            return None;
        }
        Some(Self { cargo, rustc, linker: Some(linker()?), version })
    }

    /// Builds every member of the `plugins` workspace.
    ///
    /// Flags of the caller's environment are dropped and absolute paths are mapped, so that the
    /// same sources and toolchain give the same bytes in another directory.
    pub(crate) fn build(&self, project: &Project) -> Outcome<()> {
        let mut command = Command::new(&self.cargo);
        command
            .current_dir(project.path("plugins"))
            .args(["build", "--release", "--locked", "--lib", "--target", TARGET])
            .arg("--config")
            .arg(remap(project))
            .env("RUSTC", &self.rustc)
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("LD_LIBRARY_PATH");
        if let Some(linker) = &self.linker {
            command
                .arg("-Zbuild-std=std,panic_abort")
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        let status = command.status().map_err(|fault| format!("cannot run {command:?}: {fault}"))?;
        if status.success() { Ok(()) } else { Err(format!("the guest build failed ({status})").into()) }
    }
}

/// The setting that maps the directories of this machine to names that every machine shares.
fn remap(project: &Project) -> String {
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .unwrap_or_default();
    let plugins = project.path("plugins");
    let mut flags = vec![format!("--remap-path-prefix={}=/toolgate/plugins", plugins.display())];
    if !home.is_empty() {
        flags.push(format!("--remap-path-prefix={home}=/cargo"));
    }
    format!("target.{TARGET}.rustflags={flags:?}")
}

/// The linker inside a rustup toolchain.
fn linker() -> Option<PathBuf> {
    let active = ask(Path::new("rustc"), &["--print", "sysroot"]).map(PathBuf::from);
    let home = std::env::var("RUSTUP_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.rustup")))
        .unwrap_or_default();
    let others = fs::read_dir(Path::new(&home).join("toolchains")).into_iter().flatten().flatten();
    let mut sysroots: Vec<PathBuf> = others.map(|entry| entry.path()).collect();
    sysroots.sort();
    active.into_iter().chain(sysroots).find_map(|sysroot| {
        fs::read_dir(sysroot.join("lib/rustlib"))
            .ok()?
            .flatten()
            .map(|host| host.path().join("bin/rust-lld"))
            .find(|linker| linker.is_file())
    })
}

/// One line that a compiler prints; none where it cannot be run or does not know.
fn ask(program: &Path, arguments: &[&str]) -> Option<String> {
    let said = output(Command::new(program).args(arguments)).ok()?;
    Some(String::from_utf8(said).ok()?.trim().to_owned())
}
