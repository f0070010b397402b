//! What can be asked of a client in the middle of a call, and what a server may be told of it.
//!
//! Contract: a server is told what its callers can do and its entry lets it ask for, and nothing more
//! (design.md sections 3.2 and 9). `instance: shared` has many callers, so it is told what its entry
//! says, and each question meets what its own caller can do.

use serde_json::{Map, Value, json};
use toolgate_config::{Instance, Server};
use toolgate_wire::edit;

use crate::apps;

/// A set of abilities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Abilities(u8);

impl Abilities {
    /// Nothing can be asked.
    pub const NONE: Self = Self(0);
    /// Shows a form to a person: `elicitation`, without members or with `form`.
    pub const FORMS: Self = Self(1);
    /// Opens a page for a person: `elicitation.url`.
    pub const PAGES: Self = Self(2);
    /// Asks its model: `sampling`.
    pub const SAMPLING: Self = Self(4);
    /// Lets its model use tools of the server's: `sampling.tools`.
    pub const SAMPLING_TOOLS: Self = Self(8);
    /// Names its directories: `roots`.
    pub const ROOTS: Self = Self(16);
    /// Takes the id of a task in place of a result: the extension `io.modelcontextprotocol/tasks`. It is
    /// about Toolgate and no server is told of it.
    pub const TASKS: Self = Self(32);
    /// Shows the views of apps: the extension `io.modelcontextprotocol/ui`. Nothing is asked by it.
    pub const VIEWS: Self = Self(64);

    /// What a client declared, a JSON object.
    pub fn of(capabilities: &str) -> Self {
        let has = |pointer: &str| {
            edit::get(capabilities, pointer).is_some_and(|value| value != "null" && value != "false")
        };
        let elicits = has("/elicitation");
        let sampling = has("/sampling");
        let declared = [
            (elicits && (has("/elicitation/form") || !has("/elicitation/url")), Self::FORMS),
            (elicits && has("/elicitation/url"), Self::PAGES),
            (sampling, Self::SAMPLING),
            (sampling && has("/sampling/tools"), Self::SAMPLING_TOOLS),
            (has("/roots"), Self::ROOTS),
            (has("/extensions/io.modelcontextprotocol~1tasks"), Self::TASKS),
            (apps::shows_views(capabilities), Self::VIEWS),
        ];
        Self(declared.into_iter().filter(|(has, _)| *has).fold(0, |all, (_, one)| all | one.0))
    }

    /// What the operator lets a server ask for.
    pub(crate) fn of_entry(server: &Server) -> Self {
        let questions = &server.questions;
        let sampling =
            if questions.sampling { Self::SAMPLING.0 | Self::SAMPLING_TOOLS.0 } else { Self::NONE.0 };
        let roots = if questions.roots { Self::ROOTS.0 } else { Self::NONE.0 };
        Self(Self::FORMS.0 | Self::PAGES.0 | Self::VIEWS.0 | sampling | roots)
    }

    /// What a server is told at its connection of a caller with these abilities.
    pub(crate) fn told_to(self, server: &Server) -> Self {
        let entry = Self::of_entry(server);
        if server.instance == Instance::Shared { entry } else { self.and(entry) }
    }

    /// The same as bits, for the journal.
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// From what [`Self::bits`] gave.
    pub(crate) fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Whether all of `other` is in here.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Those by which something can be asked.
    pub(crate) fn questions(self) -> Self {
        Self(self.0 & !Self::VIEWS.0)
    }

    /// What is in either.
    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The same as a client's capabilities, which a server understands.
    pub(crate) fn to_json(self) -> String {
        let mut all = Map::new();
        let (forms, pages) = (self.has(Self::FORMS), self.has(Self::PAGES));
        if forms || pages {
            let mut modes = Map::new();
            for (mode, _) in [("form", forms), ("url", pages)].into_iter().filter(|(_, has)| *has) {
                modes.insert(mode.to_owned(), json!({}));
            }
            all.insert("elicitation".to_owned(), Value::Object(modes));
        }
        if self.has(Self::SAMPLING) {
            let sampling = if self.has(Self::SAMPLING_TOOLS) { json!({ "tools": {} }) } else { json!({}) };
            all.insert("sampling".to_owned(), sampling);
        }
        if self.has(Self::ROOTS) {
            all.insert("roots".to_owned(), json!({}));
        }
        if self.has(Self::VIEWS) {
            all.insert(
                "extensions".to_owned(),
                json!({ (apps::EXTENSION): { "mimeTypes": [apps::VIEW_TYPE] } }),
            );
        }
        Value::Object(all).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_asked_only_for_what_it_declared() {
        let forms = |capabilities: &str| Abilities::of(capabilities).has(Abilities::FORMS);
        assert!(forms(r#"{"elicitation":{}}"#));
        assert!(forms(r#"{"elicitation":{"form":{},"url":{}}}"#));
        assert!(!forms(r#"{"elicitation":{"url":{}}}"#));
        assert!(!forms(r#"{"sampling":{}}"#));
        assert!(!forms("{}"));
    }

    /// Design section 9: sampling and roots pass only where the entry says `forward`.
    #[test]
    fn a_server_is_told_what_its_caller_can_do_and_its_entry_lets_it_ask_for() {
        let all = Abilities::of(r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#);
        let mut server = Server::stdio("s", "x", Vec::new());
        assert_eq!(all.told_to(&server).to_json(), r#"{"elicitation":{"form":{},"url":{}}}"#);
        server.questions.sampling = true;
        server.questions.roots = true;
        assert_eq!(
            all.told_to(&server).to_json(),
            r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#
        );
        assert_eq!(Abilities::NONE.told_to(&server).to_json(), "{}");
        server.instance = Instance::Shared;
        assert!(Abilities::NONE.told_to(&server).has(Abilities::ROOTS));
    }
}
