//! The toolchain that builds guests, and the build itself.
//!
//! Two are understood: a rustup toolchain with the target installed, and Debian's `rustc-web` with
//! the sources of the standard library, for machines where rustup can fetch nothing. Which one it
//! was stands in the release, because the bytes of a component depend on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The platform that components are built for.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Which toolchain to look for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The one that rustup has, else Debian's.
    #[default]
    Any,
    /// Only the one that rustup has.
    Rustup,
    /// Only Debian's.
    Debian,
}

/// How guests are built on this machine.
#[derive(Clone, Debug)]
pub struct Toolchain {
    cargo: PathBuf,
    rustc: PathBuf,
    /// Set when the standard library is built from source.
    linker: Option<PathBuf>,
    version: String,
}

/// What to build.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// The workspace.
    pub workspace: &'a Path,
    /// One package of it; all of them where none is given.
    pub package: Option<&'a str>,
    /// Nothing but what the lock file names.
    pub locked: bool,
    /// The name that stands for the workspace in the component, as `/toolgate/plugins`: the same
    /// sources give the same bytes in another directory.
    pub known_as: &'a str,
}

/// Why nothing was built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No toolchain; the text is a list of what is missing and what to install.
    #[error("no toolchain for {TARGET} was found.{0}")]
    NoToolchain(String),
    /// The compiler cannot be started.
    #[error("{program} cannot be started: {source}")]
    NotStarted {
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The compiler found a fault, and has said so on standard error.
    #[error("the guest build failed ({0}); the compiler's words stand above")]
    Failed(ExitStatus),
}

impl Toolchain {
    /// Finds one, or lists what to install.
    pub fn find(choice: Choice) -> Result<Self, BuildError> {
        let rustup = || Self::rustup().map_err(|missing| vec![("with rustup", missing)]);
        let debian = || Self::debian().map_err(|missing| vec![("on Debian", missing)]);
        let found = match choice {
            Choice::Rustup => rustup(),
            Choice::Debian => debian(),
            Choice::Any => rustup().or_else(|mut ways| {
                debian().map_err(|more| {
                    ways.extend(more);
                    ways
                })
            }),
        };
        found.map_err(|ways| {
            let lines = ways.iter().map(|(how, what)| format!("\n  - {how}: {what}"));
            BuildError::NoToolchain(format!(" One of these is enough:{}", lines.collect::<String>()))
        })
    }

    /// What a release records.
    pub fn description(&self) -> String {
        let how = if self.linker.is_some() { ", std built from source" } else { "" };
        format!("{}, {TARGET}{how}", self.version)
    }

    /// Builds, in release mode. Flags of the caller's environment are dropped and absolute paths are
    /// mapped, so that the same sources and toolchain give the same bytes elsewhere.
    pub fn build(&self, build: &Build<'_>) -> Result<(), BuildError> {
        let mut command = Command::new(&self.cargo);
        command
            .current_dir(build.workspace)
            .args(["build", "--release", "--lib", "--target", TARGET])
            .arg("--config")
            .arg(remap(build))
            .stdin(Stdio::null())
            .env("RUSTC", &self.rustc)
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("LD_LIBRARY_PATH");
        if build.locked {
            command.arg("--locked");
        }
        if let Some(package) = build.package {
            command.args(["--package", package]);
        }
        if let Some(linker) = &self.linker {
            command
                .arg("-Zbuild-std=std,panic_abort")
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        let program = self.cargo.display().to_string();
        let status = command.status().map_err(|source| BuildError::NotStarted { program, source })?;
        if status.success() { Ok(()) } else { Err(BuildError::Failed(status)) }
    }

    /// Where a build leaves the core module of a library of this name.
    pub fn core_module(workspace: &Path, library: &str) -> PathBuf {
        workspace.join(format!("target/{TARGET}/release/{library}.wasm"))
    }

    /// A rustup toolchain that has the target; else what is missing.
    fn rustup() -> Result<Self, String> {
        let install = format!("rustup target add {TARGET}");
        let rustc = PathBuf::from("rustc");
        let found = || {
            let libraries = ask(&rustc, &["--print", "target-libdir", "--target", TARGET])?;
            let mut files = fs::read_dir(libraries).ok()?.flatten();
            files.find(|file| file.file_name().to_string_lossy().starts_with("libstd-"))?;
            ask(&rustc, &["--version"])
        };
        match found() {
            Some(version) => Ok(Self { cargo: "cargo".into(), rustc, linker: None, version }),
            None => Err(install),
        }
    }

    /// Debian's compiler with the sources of the standard library, and a linker; else what is missing.
    fn debian() -> Result<Self, String> {
        let (rustc, cargo) = (PathBuf::from("/usr/bin/rustc"), PathBuf::from("/usr/bin/cargo"));
        let version = ask(&rustc, &["--version"]);
        let mut packages = Vec::new();
        if version.is_none() {
            packages.push("rustc-web");
        }
        if !cargo.is_file() {
            packages.push("cargo-web");
        }
        if !version.as_deref().is_some_and(|version| has_std_sources(&rustc, version)) {
            packages.push("rust-web-src");
        }
        let linker = linker();
        match (version, linker) {
            (Some(version), Some(linker)) if packages.is_empty() => {
                Ok(Self { cargo, rustc, linker: Some(linker), version })
            }
            (_, linker) => {
                if linker.is_none() {
                    packages.push("lld");
                }
                Err(format!("apt-get install {}", packages.join(" ")))
            }
        }
    }
}

fn has_std_sources(rustc: &Path, version: &str) -> bool {
    let beside =
        ask(rustc, &["--print", "sysroot"]).map(|root| format!("{root}/lib/rustlib/src/rust/library"));
    let number = version.split_whitespace().nth(1).unwrap_or_default();
    let debian = format!("/usr/src/rustc-{number}/library");
    beside.into_iter().chain([debian]).any(|directory| Path::new(&directory).is_dir())
}

/// The setting that maps the directories of this machine to names that every machine shares.
fn remap(build: &Build<'_>) -> String {
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .unwrap_or_default();
    let workspace = build.workspace.canonicalize().unwrap_or_else(|_| build.workspace.to_owned());
    let mut flags = vec![format!("--remap-path-prefix={}={}", workspace.display(), build.known_as)];
    if !home.is_empty() {
        flags.push(format!("--remap-path-prefix={home}=/cargo"));
    }
    format!("target.{TARGET}.rustflags={flags:?}")
}

/// A linker for WebAssembly: that of LLVM's packages, or the one inside a rustup toolchain.
fn linker() -> Option<PathBuf> {
    rustup_linker().or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|directory| directory.join("wasm-ld")).find(|file| file.is_file())
    })
}

fn rustup_linker() -> Option<PathBuf> {
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
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| said.trim().to_owned())
}
