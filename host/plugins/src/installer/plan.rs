//! What an installer proposes, as plain values.

use crate::bindings::installer;
use crate::fault::{Fault, FaultKind};
use crate::state::Shared;
use crate::text;

/// Most entries of any list in a plan or a page (`wit/installer.wit`).
const MAX_ENTRIES: usize = 256;
/// Most hits in one page.
const MAX_CANDIDATES: usize = 100;

/// One hit of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The id that `lookup` and `resolve` understand.
    pub id: String,
    /// The newest version.
    pub version: Option<String>,
    /// One line for a person, without hidden characters.
    pub description: String,
    /// `active`, `deprecated` or `deleted`, as the source says.
    pub status: String,
}

/// One page of hits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The hits, at most 100.
    pub candidates: Vec<Candidate>,
    /// What to pass to get the next page; none at the end.
    pub cursor: Option<String>,
}

/// A value of an environment variable, a header or an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The text itself.
    Literal(String),
    /// A secret of this name, asked for by the host.
    Secret(String),
    /// A setting of this name, asked for by the host.
    Setting(String),
}

/// A name with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Name of the variable or header.
    pub name: String,
    /// What it is set to.
    pub value: Value,
    /// One line for the person who is asked, without hidden characters.
    pub description: String,
    /// Whether the server cannot start without it.
    pub required: bool,
}

/// A file that the host fetches and checks before anything runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Where it is.
    pub url: String,
    /// `sha256:<hex>`, not yet checked for form.
    pub digest: String,
    /// Bytes.
    pub size: Option<u64>,
    /// Where it goes, relative to the server's own directory; not yet checked.
    pub path: String,
}

/// How to start a local server: argv, never a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// Its environment.
    pub environment: Vec<Binding>,
}

/// How to reach a remote server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `streamable-http` or `sse`.
    pub transport: String,
    /// The URL.
    pub url: String,
    /// Headers.
    pub headers: Vec<Binding>,
}

/// How the server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launch {
    /// As a child process.
    Stdio(CommandLine),
    /// Over HTTP.
    Http(Endpoint),
}

/// What the installer proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The id it was resolved from.
    pub id: String,
    /// The exact version.
    pub version: Option<String>,
    /// A name for the server that the operator may change.
    pub suggested_name: String,
    /// The program it needs on the machine, as `npx`.
    pub runtime: Option<String>,
    /// Files to fetch.
    pub artifacts: Vec<Artifact>,
    /// How it is reached.
    pub launch: Launch,
    /// Lines to show before it is accepted, without hidden characters.
    pub warnings: Vec<String>,
}

impl Candidate {
    pub(super) fn read(said: installer::Candidate) -> Self {
        Self {
            id: said.id,
            version: said.version,
            description: text::reason(&said.description),
            status: text::reason(&said.status),
        }
    }
}

impl Page {
    pub(super) fn read(said: installer::Page, shared: &Shared) -> Result<Self, Fault> {
        bounded("hits", said.candidates.len(), MAX_CANDIDATES, shared)?;
        Ok(Self {
            candidates: said.candidates.into_iter().map(Candidate::read).collect(),
            cursor: said.cursor,
        })
    }
}

impl Plan {
    pub(super) fn read(said: installer::Plan, shared: &Shared) -> Result<Self, Fault> {
        bounded("artifacts", said.artifacts.len(), MAX_ENTRIES, shared)?;
        bounded("warnings", said.warnings.len(), MAX_ENTRIES, shared)?;
        let launch = match said.launch {
            installer::Launch::Stdio(command) => {
                bounded("arguments", command.arguments.len(), MAX_ENTRIES, shared)?;
                bounded("variables", command.environment.len(), MAX_ENTRIES, shared)?;
                Launch::Stdio(CommandLine {
                    program: command.program,
                    arguments: command.arguments.into_iter().map(Value::read).collect(),
                    environment: command.environment.into_iter().map(Binding::read).collect(),
                })
            }
            installer::Launch::Http(endpoint) => {
                bounded("headers", endpoint.headers.len(), MAX_ENTRIES, shared)?;
                Launch::Http(Endpoint {
                    transport: endpoint.transport,
                    url: endpoint.url,
                    headers: endpoint.headers.into_iter().map(Binding::read).collect(),
                })
            }
        };
        Ok(Self {
            id: said.id,
            version: said.version,
            suggested_name: said.suggested_name,
            runtime: said.runtime,
            artifacts: said.artifacts.into_iter().map(Artifact::read).collect(),
            launch,
            warnings: said.warnings.iter().map(|line| text::reason(line)).collect(),
        })
    }
}

impl Artifact {
    fn read(said: installer::Artifact) -> Self {
        Self { url: said.url, digest: said.digest, size: said.size, path: said.path }
    }
}

impl Value {
    fn read(said: installer::Value) -> Self {
        match said {
            installer::Value::Literal(text) => Value::Literal(text),
            installer::Value::Secret(name) => Value::Secret(name),
            installer::Value::Setting(name) => Value::Setting(name),
        }
    }
}

impl Binding {
    fn read(said: installer::Binding) -> Self {
        Self {
            name: said.name,
            value: Value::read(said.value),
            description: text::reason(&said.description),
            required: said.required,
        }
    }
}

fn bounded(what: &str, count: usize, limit: usize, shared: &Shared) -> Result<(), Fault> {
    if count <= limit {
        return Ok(());
    }
    Err(shared.misbehaved(FaultKind::BadAnswer, format!("{count} {what} are more than the limit of {limit}")))
}
