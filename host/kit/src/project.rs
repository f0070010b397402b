//! A new plugin's project: what `plugin new` writes.
//!
//! Contract: the files build, test and sign as they are. A directory that holds something already
//! is refused, so nothing of anybody's is ever overwritten. The contract and the SDK lie in the
//! project, in the version of this binary: the project needs no checkout of Toolgate.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::embedded;
use crate::names::{Kind, Name};

/// The files of a new project.
#[derive(Clone, Debug)]
pub struct Project {
    files: Vec<(String, String)>,
}

/// Why a project was not written.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The directory has something in it.
    #[error("{0} is not empty; a new project is written only into a new or an empty directory")]
    NotEmpty(PathBuf),
    /// A file could not be written; what was written before it is there.
    #[error("{path} cannot be written: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What differs between the kinds.
struct Template {
    library: &'static str,
    tests: &'static str,
    readme: &'static str,
    settings: &'static str,
    schema: &'static str,
    /// The decisions that the manifest declares, as TOML.
    decisions: &'static str,
    documents: &'static [(&'static str, &'static str)],
}

/// One template, from its directory. Each document stands beside what is expected of it.
macro_rules! template {
    ($kind:literal, $decisions:literal, [$($document:literal),+ $(,)?]) => {
        Template {
            library: include_str!(concat!("../templates/", $kind, "/lib.rs.txt")),
            tests: include_str!(concat!("../templates/", $kind, "/tests.rs.txt")),
            readme: include_str!(concat!("../templates/", $kind, "/README.md")),
            settings: include_str!(concat!("../templates/", $kind, "/settings.json")),
            schema: include_str!(concat!("../templates/", $kind, "/settings.schema.json")),
            decisions: $decisions,
            documents: &[$(
                (
                    concat!($document, ".json"),
                    include_str!(concat!("../templates/", $kind, "/documents/", $document, ".json")),
                ),
                (
                    concat!($document, ".expected.json"),
                    include_str!(concat!("../templates/", $kind, "/documents/", $document, ".expected.json")),
                ),
            )+],
        }
    };
}

const POLICY: Template = template!(
    "policy",
    r#"["ask", "deny"]"#,
    ["call-delete", "call-destructive", "call-read", "list-delete"]
);
const ADAPTER: Template =
    template!("adapter", "[]", ["arguments-spaces", "arguments-tidy", "arguments-too-long"]);
const INSTALLER: Template = template!("installer", "[]", ["lookup", "resolve", "search"]);

const MANIFEST: &str = include_str!("../templates/common/plugin.toml");
const CARGO: &str = include_str!("../templates/common/Cargo.toml.txt");
const README: &str = include_str!("../templates/common/README.md");
const IGNORED: &str = "/target\n/component.wasm\n/component.toolchain\n/release.dsse.json\n*.seed\n*.pem\n";

impl Project {
    /// The project of a plugin of this kind and name; `version` is this host's, the oldest that
    /// will load the plugin.
    pub fn new(kind: Kind, name: &Name, version: &str) -> Self {
        let template = match kind {
            Kind::Policy => &POLICY,
            Kind::Installer => &INSTALLER,
            Kind::Adapter => &ADAPTER,
        };
        let filled = |text: &str| {
            text.replace("{{readme}}", template.readme.trim_end())
                .replace("{{name}}", &name.to_string())
                .replace("{{short}}", name.short())
                .replace("{{kind}}", kind.word())
                .replace("{{type}}", &type_name(name))
                .replace("{{decisions}}", template.decisions)
                .replace("{{version}}", version)
        };
        let mut files = vec![
            (".gitignore".to_owned(), IGNORED.to_owned()),
            (".cargo/config.toml".to_owned(), embedded::CARGO_CONFIG.to_owned()),
            ("Cargo.lock".to_owned(), embedded::LOCK.to_owned()),
            ("Cargo.toml".to_owned(), filled(CARGO) + &embedded::workspace_tables()),
            ("README.md".to_owned(), filled(README)),
            ("plugin.toml".to_owned(), filled(MANIFEST)),
            ("settings.json".to_owned(), template.settings.to_owned()),
            ("settings.schema.json".to_owned(), template.schema.to_owned()),
            ("src/lib.rs".to_owned(), filled(template.library)),
            ("src/tests.rs".to_owned(), filled(template.tests)),
        ];
        let documents = template.documents.iter();
        files.extend(documents.map(|(name, text)| (format!("documents/{name}"), (*text).to_owned())));
        files.extend(embedded::files());
        files.sort();
        Self { files }
    }

    /// The files by their names below the project's directory, with `/`.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Writes all files into a directory that is new or empty.
    pub fn write(&self, directory: &Path) -> Result<(), ProjectError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ProjectError::Io { path, source }
        };
        fs::create_dir_all(directory).map_err(failed(directory))?;
        if fs::read_dir(directory).map_err(failed(directory))?.next().is_some() {
            return Err(ProjectError::NotEmpty(directory.to_owned()));
        }
        for (name, text) in &self.files {
            let path = directory.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed(parent))?;
            }
            fs::write(&path, text).map_err(failed(&path))?;
        }
        Ok(())
    }
}

/// `github-guard` as a name for a Rust type.
fn type_name(name: &Name) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    // With an ending, so that a plugin called `installer` or `string` takes no name that its file uses.
    name.short().split('-').filter_map(capital).chain(["Plugin".to_owned()]).collect()
}

#[cfg(test)]
mod tests;
