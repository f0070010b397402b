//! Lists the files of the contract and of the SDK, so that the binary carries them. It reads the
//! tree and nothing else: no network, no program.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let mut code = String::new();
    for (name, directory) in [("WIT", "wit"), ("SDK", "plugins/sdk")] {
        let directory = root.join(directory).canonicalize()?;
        let mut files = Vec::new();
        collect(&directory, &mut files)?;
        files.sort();
        let entries: String = files.iter().map(|file| entry(&directory, file)).collect();
        let _ = writeln!(code, "pub(crate) const {name}: &[(&str, &str)] = &[{entries}];");
    }
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("embedded.rs"), code)
}

/// One file as its name below the directory, with `/` on every platform, and its text.
fn entry(directory: &Path, file: &Path) -> String {
    let name = file.strip_prefix(directory).unwrap_or(file).to_string_lossy().replace('\\', "/");
    format!("({name:?}, include_str!({:?})),", file.to_string_lossy())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", directory.display());
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
