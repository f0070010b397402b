//! The first-party plugins: the members of the `plugins` workspace that carry
//! `[package.metadata.toolgate]`, and where their signed blobs lie.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toolgate_kit::Toolchain;

use crate::Outcome;
use crate::metadata::{Metadata, Package};
use crate::project::Project;

/// One plugin of the tree.
pub(crate) struct Plugin {
    /// Name of its crate.
    pub(crate) crate_name: String,
    /// Id of its package in the metadata.
    pub(crate) package_id: String,
    /// Directory of its crate.
    pub(crate) directory: PathBuf,
    /// Version of its crate, which is the version of the plugin.
    pub(crate) version: String,
    /// What its manifest says beyond that.
    pub(crate) manifest: Manifest,
}

/// `[package.metadata.toolgate]`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Manifest {
    /// `toolgate/<name>`.
    pub(crate) name: String,
    /// Goes up by one with each release.
    pub(crate) sequence: u64,
    /// `policy`, `installer` or `adapter`.
    pub(crate) kind: String,
    /// The decisions that the plugin may give.
    pub(crate) decisions: Vec<String>,
    /// The oldest host that can load it.
    pub(crate) min_host: String,
    /// When this version was published, UTC; written by hand, so that a rebuild gives the same bytes.
    pub(crate) published: String,
    /// What it asks of the host.
    pub(crate) limits: Limits,
    /// What it wants to reach beyond its own memory.
    #[serde(default)]
    pub(crate) capabilities: toolgate_signing::Capabilities,
    /// Where its settings may name hosts.
    #[serde(default)]
    pub(crate) settings_hosts: Vec<String>,
    /// For an adapter: the servers it is made for.
    #[serde(default)]
    pub(crate) servers: Vec<String>,
}

/// `limits` of a manifest.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Limits {
    /// Largest linear memory, bytes.
    pub(crate) memory_bytes: u64,
    /// Longest call, milliseconds.
    pub(crate) call_ms: u64,
    /// Longest start of an instance, milliseconds.
    pub(crate) init_ms: u64,
    /// Largest text taken from the host at once, bytes.
    pub(crate) host_bytes: u64,
}

impl Plugin {
    /// Every plugin of the tree, by name.
    pub(crate) fn all(metadata: &Metadata) -> Outcome<Vec<Self>> {
        let mut plugins = Vec::new();
        for package in metadata.members() {
            if let Some(manifest) = package.metadata.get("toolgate") {
                plugins.push(Self::new(package, manifest)?);
            }
        }
        plugins.sort_by(|one, other| one.manifest.name.cmp(&other.manifest.name));
        Ok(plugins)
    }

    fn new(package: &Package, manifest: &serde_json::Value) -> Outcome<Self> {
        let manifest = Manifest::deserialize(manifest)
            .map_err(|fault| format!("{}: package.metadata.toolgate: {fault}", package.manifest_path))?;
        let directory = Path::new(&package.manifest_path).parent().unwrap_or(Path::new(".")).to_owned();
        Ok(Self {
            crate_name: package.name.clone(),
            package_id: package.id.clone(),
            directory,
            version: package.version.clone(),
            manifest,
        })
    }

    /// The name without its namespace.
    pub(crate) fn short_name(&self) -> &str {
        self.manifest.name.rsplit('/').next().unwrap_or(&self.manifest.name)
    }

    /// Where the guest build leaves the core module.
    pub(crate) fn core_module(&self, project: &Project) -> PathBuf {
        let file = self.crate_name.replace('-', "_");
        Toolchain::core_module(&project.path("plugins"), &file)
    }

    /// Where the signed blobs of its version lie.
    pub(crate) fn blobs(&self, project: &Project) -> PathBuf {
        project.path(&format!("registry/first-party/{}/{}", self.short_name(), self.version))
    }
}
