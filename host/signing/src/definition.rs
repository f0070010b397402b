//! Digests of what a server shows a model (design 5, "Surface digest").
//!
//! Everything in a definition counts: names, titles, descriptions, schemas, annotations, icons,
//! execution, and members that no specification knows yet, because a model may see those too
//! (PI-02). Order of members, white space, escapes and the order of the listing do not (PI-01).
//!
//! Before it is hashed a definition is normalised:
//! - Of `_meta` at its top only the member `ui` stays; without one, `_meta` goes. It carries what a
//!   host renders; everything else in it is bookkeeping between programs.
//! - In `inputSchema` and `outputSchema` of a tool, wherever a schema stands, `required` and `type`
//!   are sets if they are arrays of strings: sorted by UTF-16 code units, each string once. Every other
//!   array keeps its order, and so does everything below `default`, `const`, `enum`, `examples` and
//!   keywords that no draft of JSON Schema has schemas in, which is data.
//!
//! The raw text is what is hashed; escaping for display comes later and elsewhere (SE-01).

mod schema;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::canonical::{CanonicalError, Node, parse, quote};
use crate::digest::Digest;

/// Begins the bytes under a definition digest. A change of the rules above is a new version here.
const DEFINITION_DOMAIN: &str = "toolgate definition v1\n";

/// Begins the bytes under a surface digest.
const SURFACE_DOMAIN: &str = "toolgate surface v1\n";

/// What of a server's surface a definition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DefinitionKind {
    /// A tool, as `tools/list` has it.
    Tool,
    /// A prompt, as `prompts/list` has it.
    Prompt,
    /// A resource, as `resources/list` has it.
    Resource,
    /// A resource template, as `resources/templates/list` has it.
    Template,
    /// The server's instructions: a JSON string.
    Instructions,
}

impl DefinitionKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Tool, Self::Prompt, Self::Resource, Self::Template, Self::Instructions];

    /// The word for it in digests, stores and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Instructions => "instructions",
        }
    }
}

impl fmt::Display for DefinitionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for DefinitionKind {
    type Err = DefinitionError;

    fn from_str(text: &str) -> Result<Self, DefinitionError> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(DefinitionError::UnknownKind)
    }
}

/// Why a definition has no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// It is not JSON that all readers read alike.
    #[error(transparent)]
    Json(#[from] CanonicalError),
    /// A definition of this kind is a JSON object, and this is not.
    #[error("a {0} is a JSON object")]
    NotAnObject(DefinitionKind),
    /// Instructions are a JSON string, and this is not.
    #[error("instructions are a JSON string")]
    NotAString,
    /// The word names no kind of definition.
    #[error("a kind of definition is tool, prompt, resource, template or instructions")]
    UnknownKind,
}

/// The digest of one definition, given as the JSON text that the server sent.
pub fn definition_digest(kind: DefinitionKind, json: &str) -> Result<Digest, DefinitionError> {
    let node = normalise(kind, parse(json)?)?;
    let text = node.to_text();
    Ok(Digest::of_parts(&[DEFINITION_DOMAIN.as_bytes(), kind.as_str().as_bytes(), b"\n", text.as_bytes()]))
}

/// The digest of a whole surface: kind, name and digest of each definition, in any order. A name that
/// comes twice counts twice.
pub fn surface_digest(definitions: &[(DefinitionKind, String, Digest)]) -> Digest {
    let mut lines: Vec<String> =
        definitions.iter().map(|(kind, name, digest)| format!("{kind} {} {digest}\n", quote(name))).collect();
    lines.sort_unstable();
    Digest::of_parts(&[SURFACE_DOMAIN.as_bytes(), lines.concat().as_bytes()])
}

fn normalise(kind: DefinitionKind, node: Node) -> Result<Node, DefinitionError> {
    let mut members = match (kind, node) {
        (DefinitionKind::Instructions, Node::String(text)) => return Ok(Node::String(text)),
        (DefinitionKind::Instructions, _) => return Err(DefinitionError::NotAString),
        (_, Node::Object(members)) => members,
        _ => return Err(DefinitionError::NotAnObject(kind)),
    };
    members.retain_mut(|(name, value)| name != "_meta" || keep_ui(value));
    if kind == DefinitionKind::Tool {
        for (name, value) in &mut members {
            if matches!(name.as_str(), "inputSchema" | "outputSchema") {
                schema::normalise(value);
            }
        }
    }
    Ok(Node::Object(members))
}

/// Leaves only `ui` in a `_meta`; `false` if nothing stays.
fn keep_ui(meta: &mut Node) -> bool {
    match meta {
        Node::Object(members) => {
            members.retain(|(name, _)| name == "ui");
            !members.is_empty()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
