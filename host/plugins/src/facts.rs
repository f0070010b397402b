//! What a plugin may learn about one request, and the documents it may read.
//!
//! The gateway fills a [`Facts`] once per request and shares it behind an `Arc`; every plugin sees
//! the same facts through the `request` resource. Large texts are [`Document`]s, whose text is
//! shared and never copied into a guest unless the guest reads it.

use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use toolgate_signing::Digest;

use crate::capability::matching::hidden::{self, Finding as HiddenText};

/// One JSON text that stays with the host (`documents.document` in the WIT contract).
///
/// Cheap to clone. The text is expected to have passed the strict door of design.md 3.1; the
/// host's own look-ups stay correct, and bounded, when it has not.
#[derive(Clone, Debug)]
pub struct Document {
    text: Arc<str>,
    /// What it hides, once somebody asked: a policy, and whoever writes the row about it.
    hidden: Arc<OnceLock<Vec<HiddenText>>>,
}

impl Document {
    /// Wraps a JSON text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), hidden: Arc::default() }
    }

    /// The whole text, exactly as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every string or name in it with hidden characters, in its order. It is looked through once,
    /// however many ask, because large results take milliseconds.
    pub fn hidden_text(&self) -> &[HiddenText] {
        self.hidden.get_or_init(|| hidden::findings(&self.text))
    }

    /// Whether both are the same text in memory, which costs no look at it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text)
    }

    /// Length of the text in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether the text is empty, which no JSON document is.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Document {}

/// What of a server's surface a request is about (`types.surface-kind`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SurfaceKind {
    /// The server as a whole: hooks install and connect.
    #[default]
    Server,
    /// Its instructions.
    Instructions,
    /// One tool.
    Tool,
    /// One prompt.
    Prompt,
    /// One resource.
    Resource,
    /// One resource template.
    Template,
    /// A question that the server asks.
    Question,
}

/// How a definition compares with its pin (`types.pin-state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PinState {
    /// Nothing is pinned for this server yet.
    #[default]
    Unpinned,
    /// The definition is the pinned one.
    Matches,
    /// The definition differs from the pinned one.
    Differs,
    /// The server is pinned and this definition is not among its pins.
    Unknown,
    /// The pin store could not be read. Never a first use.
    Unreadable,
}

/// All that a plugin can ask about one request (`requests.request`). Every field is the host's
/// knowledge, except the two hints, which are claims of the server's.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// As whom the agent acts.
    pub persona: String,
    /// The lane of the caller: `main`, `background_job` or `automation`.
    pub lane: String,
    /// An opaque id of the caller's session.
    pub session: String,
    /// The name of the server in the operator's configuration.
    pub server: String,
    /// Digest of the server's identity (design.md 9a), as text.
    pub server_identity: String,
    /// What of the server's surface this is about.
    pub kind: SurfaceKind,
    /// The original name of the tool or prompt, or the URI; empty for a server.
    pub name: String,
    /// The capability label that names this request.
    pub label: String,
    /// Whether the persona has a `capabilities` block at all.
    pub has_capabilities: bool,
    /// The first label of `capabilities.allow` that covers this request.
    pub matched_allow: Option<String>,
    /// The first label of `capabilities.require_approval` that covers this request.
    pub matched_approval: Option<String>,
    /// Whether the server's `trust` block names this tool for automatic approval.
    pub auto_approved: bool,
    /// Whether the server is marked `trust.host_escape`.
    pub host_escape: bool,
    /// `sha256:…` of the definition at hand.
    pub digest: Option<String>,
    /// How that definition compares with its pin.
    pub pin: PinState,
    /// How the whole surface compares with `trust.pinned_tool_hash`.
    pub surface_pin: PinState,
    /// The `readOnlyHint` annotation, a claim of the server's.
    pub read_only_hint: Option<bool>,
    /// The `destructiveHint` annotation, a claim of the server's.
    pub destructive_hint: Option<bool>,
    /// The definition of the tool, prompt or resource.
    pub definition: Option<Document>,
    /// Digest of every byte of that definition, with what [`Facts::digest`] leaves out (`_meta`, order).
    pub bytes: Option<Digest>,
    /// What the hook is about: the arguments, the result, the plan, the question.
    pub document: Option<Document>,
}

impl Facts {
    /// Every fact that is a word or a flag, for a key: all but the session and the two documents. The
    /// definition stands in it by its digest and how that compares with its pin.
    pub fn plain(&self) -> impl Hash + '_ {
        let of_caller = (
            (&self.persona, &self.lane, self.has_capabilities),
            (&self.matched_allow, &self.matched_approval, self.auto_approved),
        );
        let of_server = (&self.server, &self.server_identity, self.host_escape, self.surface_pin);
        let of_item = (self.kind, &self.name, &self.digest, self.pin);
        (of_caller, of_server, of_item, (self.read_only_hint, self.destructive_hint, &self.label))
    }
}

/// The ten moments at which a policy can be asked (design.md 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hook {
    /// Before a server is installed.
    Install,
    /// Before a server is connected to.
    Connect,
    /// About everything that a client would see, in batches.
    List,
    /// Before a tool is called.
    Call,
    /// Before a resource is read.
    Read,
    /// Before a prompt is rendered.
    Prompt,
    /// Before a resource is subscribed to.
    Subscribe,
    /// Before an argument is completed.
    Complete,
    /// Before a server's question reaches a person.
    Elicit,
    /// Before a result reaches the client.
    Result,
}

impl Hook {
    /// Every hook, in the order of the WIT world.
    pub const ALL: [Hook; 10] = [
        Hook::Install,
        Hook::Connect,
        Hook::List,
        Hook::Call,
        Hook::Read,
        Hook::Prompt,
        Hook::Subscribe,
        Hook::Complete,
        Hook::Elicit,
        Hook::Result,
    ];

    /// The word for it in messages and audit rows, as `call`.
    pub fn word(self) -> &'static str {
        match self {
            Hook::Install => "install",
            Hook::Connect => "connect",
            Hook::List => "list",
            Hook::Call => "call",
            Hook::Read => "read",
            Hook::Prompt => "prompt",
            Hook::Subscribe => "subscribe",
            Hook::Complete => "complete",
            Hook::Elicit => "elicit",
            Hook::Result => "result",
        }
    }

    /// Whether a policy may redact here: only what is shown to a client can be shown changed.
    pub fn may_redact(self) -> bool {
        matches!(self, Hook::List | Hook::Result)
    }
}

/// What stands behind one `request` handle: the facts, shared with the gateway and other plugins.
#[allow(unreachable_pub)] // the generated bindings re-export it, which they can only for a `pub` item
pub type SharedFacts = Arc<Facts>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_document_hides_is_looked_for_once_for_all_its_copies() {
        let document = Document::new("{\"a\":\"b\u{200b}\"}");
        let copy = document.clone();
        assert_eq!(document.hidden_text().len(), 1);
        assert!(std::ptr::eq(document.hidden_text(), copy.hidden_text()));
        assert!(Document::new("{}").hidden_text().is_empty());
    }
}
