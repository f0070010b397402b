//! The digest of everything that a component is made of.
//!
//! It covers the crate of the plugin, the SDK and the WIT, the flags of the guest build, and name,
//! version and checksum of each dependency out of the registry. Tests are left out, because they
//! are not in the component. A change to any of it makes the committed blob stale, which
//! `cargo xtask check` says.
//!
//! Form: sha256 over a domain line, then for each entry in the order of its name the length of the
//! name, the name, the length of the content and the content; lengths are 8 bytes, big-endian.
//! So no two trees share a digest by moving a byte from one file to the next.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::Outcome;
use crate::metadata::Metadata;
use crate::plugin::Plugin;
use crate::project::Project;

const DOMAIN: &[u8] = b"toolgate plugin sources v1\n";

/// `sha256:<hex>` of the sources of a plugin.
pub(crate) fn digest(project: &Project, metadata: &Metadata, plugin: &Plugin) -> Outcome<String> {
    let mut entries = BTreeMap::new();
    for directory in [plugin.directory.as_path(), &project.path("plugins/sdk"), &project.path("wit")] {
        collect(project, directory, &mut entries)?;
    }
    let flags = project.path("plugins/.cargo/config.toml");
    entries.insert("plugins/.cargo/config.toml".to_owned(), fs::read(flags)?);
    entries.insert("dependencies".to_owned(), dependencies(project, metadata, plugin)?.into_bytes());
    Ok(over(&entries))
}

fn over(entries: &BTreeMap<String, Vec<u8>>) -> String {
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    for (name, content) in entries {
        for part in [name.as_bytes(), content] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    format!("sha256:{}", hex::encode(hash.finalize()))
}

/// Every file below a directory, by its path in the tree, with `/` on every platform.
fn collect(project: &Project, directory: &Path, entries: &mut BTreeMap<String, Vec<u8>>) -> Outcome<()> {
    for entry in fs::read_dir(directory).map_err(|fault| format!("{}: {fault}", directory.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(project, &path, entries)?;
        } else if path.file_name().is_some_and(|name| name != "tests.rs") {
            let name = project.relative(&path).to_string_lossy().replace('\\', "/");
            entries.insert(name, fs::read(&path)?);
        }
    }
    Ok(())
}

/// One line for each registry package that the plugin is built with: name, version, checksum.
fn dependencies(project: &Project, metadata: &Metadata, plugin: &Plugin) -> Outcome<String> {
    let checksums = checksums(&fs::read_to_string(project.path("plugins/Cargo.lock"))?);
    let mut lines = Vec::new();
    for package in metadata.closure(&plugin.package_id) {
        if package.source.is_some() {
            let key = (package.name.clone(), package.version.clone());
            let checksum = checksums
                .get(&key)
                .ok_or_else(|| format!("plugins/Cargo.lock has no checksum of {} {}", key.0, key.1))?;
            lines.push(format!("{} {} {checksum}\n", key.0, key.1));
        }
    }
    lines.sort();
    Ok(lines.concat())
}

/// The checksums of a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    lock.split("[[package]]")
        .filter_map(|block| {
            let key = (value(block, "name")?, value(block, "version")?);
            Some((key, value(block, "checksum")?))
        })
        .collect()
}

#[cfg(test)]
mod tests;
