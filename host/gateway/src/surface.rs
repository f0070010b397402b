//! The tool surface of one server as one caller gets it: definitions with their digests, pins and
//! exposed names, computed once per listing so that a call computes none of them.
//!
//! The digest is always that of the definition as the server gave it; what an adapter or a policy
//! changes is shown, never pinned. Threat: the definitions are a server's words. They are kept as
//! text and judged by policies; nothing here trusts a hint.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolgate_config::Server;
use toolgate_plugins::{Document, PinState};
use toolgate_signing::{DefinitionKind, Digest, definition_digest, surface_digest};
use toolgate_wire::edit;

use crate::pin::Approved;

/// One tool of a server.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The server's own name for it.
    pub name: String,
    /// The name a client sees.
    pub exposed: String,
    /// The definition as received.
    pub definition: Document,
    /// Digest of the definition.
    pub digest: Digest,
    /// How it compares with its pin.
    pub pin: PinState,
    /// The server's claim that it only reads.
    pub read_only_hint: Option<bool>,
    /// The server's claim that it may destroy.
    pub destructive_hint: Option<bool>,
}

/// All tools of a server at one moment.
#[derive(Debug, Default)]
pub struct Surface {
    /// In the server's own order.
    pub tools: Vec<Arc<Tool>>,
    /// Definitions that were left out, with the reason.
    pub dropped: Vec<(String, String)>,
    /// How the whole compares with `trust.pinned_tool_hash`.
    pub surface_pin: Option<PinState>,
    /// Digest of the whole.
    pub digest: Option<Digest>,
    by_name: HashMap<String, usize>,
    by_exposed: HashMap<String, usize>,
}

impl Surface {
    /// Builds the surface from raw definitions. A definition without a digest is left out and named.
    pub(crate) fn build(
        server: &Server,
        max_name: usize,
        approved: &Approved,
        definitions: &[Box<RawValue>],
        mut dropped: Vec<(String, String)>,
    ) -> Self {
        let mut tools = Vec::with_capacity(definitions.len());
        for raw in definitions {
            match Tool::read(server, max_name, approved, raw.get()) {
                Ok(tool) => tools.push(Arc::new(tool)),
                Err(reason) => dropped.push(reason),
            }
        }
        leave_out_twins(&mut tools, &mut dropped);
        let digest = digest_of(&tools);
        let by_name = tools.iter().enumerate().map(|(index, tool)| (tool.name.clone(), index)).collect();
        let by_exposed =
            tools.iter().enumerate().map(|(index, tool)| (tool.exposed.clone(), index)).collect();
        let surface_pin =
            server.trust.pinned_tool_hash.as_deref().map(|pinned| {
                if pinned == digest.to_string() { PinState::Matches } else { PinState::Differs }
            });
        Self { tools, dropped, surface_pin, digest: Some(digest), by_name, by_exposed }
    }

    /// The same definitions compared with other pins; no digest is computed again.
    pub(crate) fn compared_with(&self, approved: &Approved) -> Self {
        let again = |tool: &Arc<Tool>| {
            let pin = approved.state_of(&tool.name, &tool.digest);
            Arc::new(Tool { pin, ..Tool::clone(tool) })
        };
        Self {
            tools: self.tools.iter().map(again).collect(),
            dropped: self.dropped.clone(),
            surface_pin: self.surface_pin,
            digest: self.digest,
            by_name: self.by_name.clone(),
            by_exposed: self.by_exposed.clone(),
        }
    }

    /// Whether both show the same definitions in the same standing; order does not count.
    pub(crate) fn shows_the_same(&self, other: &Self) -> bool {
        let standing = |surface: &Self| {
            let mut pins: Vec<_> = surface.tools.iter().map(|tool| (tool.name.clone(), tool.pin)).collect();
            pins.sort_by(|left, right| left.0.cmp(&right.0));
            pins
        };
        self.digest == other.digest && standing(self) == standing(other)
    }

    /// The tool of that original name.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).and_then(|index| self.tools.get(*index))
    }

    /// The tool that a client sees under this name.
    pub(crate) fn exposed(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_exposed.get(name).and_then(|index| self.tools.get(*index))
    }

    /// How the whole compares with the operator's pin of the whole.
    pub fn surface_pin(&self) -> PinState {
        self.surface_pin.unwrap_or(PinState::Unpinned)
    }
}

impl Tool {
    fn read(
        server: &Server,
        max_name: usize,
        approved: &Approved,
        definition: &str,
    ) -> Result<Self, (String, String)> {
        let name = edit::get(definition, "/name")
            .and_then(edit::string)
            .ok_or_else(|| ("(unnamed)".to_owned(), "the definition has no name".to_owned()))?;
        let digest = definition_digest(DefinitionKind::Tool, definition)
            .map_err(|error| (name.clone(), format!("the definition has no digest: {error}")))?;
        let hint = |pointer: &str| match edit::get(definition, pointer) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        Ok(Self {
            exposed: toolgate_labels::exposed_name(&server.name, &name, max_name),
            pin: approved.state_of(&name, &digest),
            read_only_hint: hint("/annotations/readOnlyHint"),
            destructive_hint: hint("/annotations/destructiveHint"),
            definition: Document::new(definition),
            digest,
            name,
        })
    }
}

/// Two tools that would be seen under one name are both left out: a caller could not say which is
/// meant, and a server could have made the name on purpose.
fn leave_out_twins(tools: &mut Vec<Arc<Tool>>, dropped: &mut Vec<(String, String)>) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for tool in tools.iter() {
        *seen.entry(tool.exposed.clone()).or_default() += 1;
    }
    tools.retain(|tool| {
        let alone = seen.get(&tool.exposed) == Some(&1);
        if !alone {
            dropped.push((tool.name.clone(), format!("another tool is exposed as {} too", tool.exposed)));
        }
        alone
    });
}

fn digest_of(tools: &[Arc<Tool>]) -> Digest {
    let parts: Vec<(DefinitionKind, String, Digest)> =
        tools.iter().map(|tool| (DefinitionKind::Tool, tool.name.clone(), tool.digest)).collect();
    surface_digest(&parts)
}
