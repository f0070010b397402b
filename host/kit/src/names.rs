//! What a new plugin is, and what it is called.

use std::fmt;

/// The kinds of plugins that a project can be made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It judges.
    Policy,
    /// It knows one source of servers.
    Installer,
    /// It knows one server.
    Adapter,
}

impl Kind {
    /// The word for it, as the manifest writes it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Policy => "policy",
            Kind::Installer => "installer",
            Kind::Adapter => "adapter",
        }
    }
}

/// `namespace/name`, both of lowercase letters, digits and `-`, as a release states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    namespace: String,
    short: String,
}

/// A text that is no name of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name for a plugin: write NAMESPACE/NAME, each of 1 to 64 lowercase letters, digits and `-`, beginning with a letter"
)]
pub struct NameError(pub String);

impl Name {
    /// Reads `acme/guard`. A name alone gets the namespace `local`, which nobody else can know.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let (namespace, short) = text.split_once('/').unwrap_or(("local", text));
        if [namespace, short].into_iter().all(is_part) {
            return Ok(Self { namespace: namespace.to_owned(), short: short.to_owned() });
        }
        Err(NameError(text.to_owned()))
    }

    /// The part after the namespace.
    pub fn short(&self) -> &str {
        &self.short
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.short)
    }
}

/// What the host takes, and what cargo takes as the name of a crate.
fn is_part(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests;
