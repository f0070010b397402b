//! What the operator lets a plugin reach: `plugins.load[].grants` and `servers.NAME.adapter.grants`.
//!
//! The reader knows shape and types; whether a grant fits the plugin's signed release is told when
//! the plugin is loaded. Values of secrets are held as [`Secret`] and shown nowhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolgate_base::Secret;
use toolgate_signing::Access;

use crate::error::{ConfigError, Problem};
use crate::expand::{Variables, expand_tree};
use crate::node;
use crate::read::{Item, Reader, read_grants};

/// The grants of one plugin, by interface and label. The default opens nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grants {
    /// `http`.
    pub http: BTreeMap<String, HttpGrant>,
    /// `secrets`.
    pub secrets: BTreeMap<String, SecretGrant>,
    /// `kv`.
    pub kv: BTreeMap<String, KvGrant>,
    /// `files`.
    pub files: BTreeMap<String, FilesGrant>,
}

/// `http.LABEL`. What is left out is as the release declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpGrant {
    /// Origins.
    pub hosts: Option<Vec<String>>,
    /// Methods, in lower case.
    pub methods: Option<Vec<String>>,
    /// Most bytes of an answer.
    pub max_response: Option<u64>,
    /// Bound on one request; 10 ms to 30 s.
    pub timeout: Option<Duration>,
}

/// `secrets.LABEL`.
#[derive(Clone, Debug, PartialEq)]
pub struct SecretGrant {
    /// The value; empty where the variable it names has none.
    pub value: Secret,
    /// Origins that it may be sent to.
    pub send_to: Option<Vec<String>>,
    /// Whether the plugin may see it.
    pub reveal: bool,
}

/// `kv.LABEL`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvGrant {
    /// Bytes of keys and values.
    pub max_bytes: Option<u64>,
}

/// `files.LABEL`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilesGrant {
    /// Absolute directories, at least one.
    pub directories: Vec<PathBuf>,
    /// What may be done there, where it is less than the release declares.
    pub access: Option<Access>,
}

/// Reads one block of grants that stands alone, as JSON or YAML. `file` is for messages; relative
/// directories count from `base`.
pub(crate) fn parse(
    text: &str,
    file: &Path,
    base: &Path,
    variables: &Variables<'_>,
) -> Result<Grants, ConfigError> {
    let mut tree = node::parse(text).map_err(|error| crate::managed::invalid(file, error))?;
    let mut problems = Vec::new();
    expand_tree(&mut tree, "grants", file, variables, &mut Vec::new(), &mut |place, what| {
        problems.push(Problem { place, what: what.to_owned(), fix: String::new() });
    });
    let mut reader = Reader::new(file, base, None, variables);
    let grants = read_grants(&mut reader, Item { node: tree, key: "grants".to_owned() });
    problems.append(&mut reader.problems);
    if problems.is_empty() { Ok(grants) } else { Err(ConfigError::Invalid(problems)) }
}
