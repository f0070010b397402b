//! `permissions`: what the operator says beforehand about whole servers, for every persona (rows APR-010,
//! APR-011).
//!
//! Contract: it answers asks and opens nothing else. `allow` has the server's tools pass without an ask
//! where a persona may use them at all; labels that are missing go on denying, and what stands under
//! `require_approval` goes on asking. `ask` and `deny` take away.

use std::collections::BTreeMap;

use crate::error::Level;
use crate::node::Value;
use crate::read::{Item, Reader, keys};

/// What is said about a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// Its tools need no ask.
    Allow,
    /// They do, whatever `trust.auto_approve_tools` says.
    Ask,
    /// They are denied.
    Deny,
}

impl Permit {
    /// `allow`, `ask` or `deny`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The `permissions` block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// `mcp: allow`: every server that nothing else is said about.
    pub all: Option<Permit>,
    /// `mcp: {NAME: allow}`.
    pub servers: BTreeMap<String, Permit>,
}

impl Permissions {
    /// What is said about a server.
    pub fn of(&self, server: &str) -> Option<Permit> {
        self.servers.get(server).copied().or(self.all)
    }
}

const WORDS: [(&str, Permit); 3] = [("allow", Permit::Allow), ("ask", Permit::Ask), ("deny", Permit::Deny)];

pub(crate) fn read_permissions(reader: &mut Reader<'_>, item: Item, known: &[&str]) -> Permissions {
    let mut permissions = Permissions::default();
    let Some(mut fields) = reader.fields(item, &keys::PERMISSIONS) else { return permissions };
    let Some(item) = fields.take("mcp") else { return permissions };
    if !matches!(item.node.value, Value::Map(_)) {
        permissions.all = reader.choice(&item, &WORDS);
        return permissions;
    }
    for (name, value) in reader.entries(item) {
        let Some(permit) = reader.choice(&value, &WORDS) else { continue };
        let server = name.name().to_owned();
        if !known.contains(&server.as_str()) {
            reader.notice(
                Level::Warning,
                &name,
                "no server of this name stands in toolgate.yaml; one that is added may",
            );
        }
        permissions.servers.insert(server, permit);
    }
    permissions
}
