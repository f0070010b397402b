//! The parts of `cargo metadata` that the checks read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One workspace with its resolved dependencies.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_members: Vec<String>,
    pub(crate) resolve: Resolve,
}

/// One package.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) license_file: Option<String>,
    /// None for a package of the tree.
    pub(crate) source: Option<String>,
    pub(crate) manifest_path: String,
    #[serde(default)]
    pub(crate) metadata: Value,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One declared dependency.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev`, `build`, or none for a normal one.
    pub(crate) kind: Option<String>,
    /// Directory of a path dependency.
    pub(crate) path: Option<String>,
}

/// The resolved graph.
#[derive(Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// One package in the graph.
#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<NodeDep>,
}

/// One edge of the graph.
#[derive(Deserialize)]
pub(crate) struct NodeDep {
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<DepKind>,
}

/// Why an edge exists.
#[derive(Deserialize)]
pub(crate) struct DepKind {
    pub(crate) kind: Option<String>,
}

impl Metadata {
    /// The packages of the tree.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The packages that are really in the graph of the platform asked for.
    pub(crate) fn resolved(&self) -> impl Iterator<Item = &Package> {
        let nodes: std::collections::HashSet<&str> =
            self.resolve.nodes.iter().map(|node| node.id.as_str()).collect();
        self.packages.iter().filter(move |package| nodes.contains(package.id.as_str()))
    }

    /// Everything that a package needs to be built, itself excluded, dev-dependencies left out.
    pub(crate) fn closure(&self, id: &str) -> Vec<&Package> {
        let nodes: BTreeMap<&str, &Node> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let mut found = std::collections::BTreeSet::new();
        let mut open = vec![id];
        while let Some(node) = open.pop().and_then(|id| nodes.get(id)) {
            for dep in &node.deps {
                let built = dep.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"));
                if built && found.insert(dep.pkg.as_str()) {
                    open.push(&dep.pkg);
                }
            }
        }
        self.packages.iter().filter(|package| found.contains(package.id.as_str())).collect()
    }
}
