//! Builds what policies and adapters learn of a request. One place, so that listing and calling
//! cannot tell a policy different stories about the same tool.

use std::sync::Arc;

use toolgate_config::{Persona, Server};
use toolgate_labels::Label;
use toolgate_plugins::{Document, Facts, PinState, SurfaceKind};
use toolgate_store::Standing;

use crate::Gateway;
use crate::caller::Caller;
use crate::surface::{Surface, Tool};
use crate::watch::Decided;

/// Facts about a server as a whole, for the hook connect.
pub(crate) fn of_server(gateway: &Gateway, caller: &Caller, server: &Server) -> Facts {
    let label = Label::new("mcp", "connect", &server.name);
    Facts {
        kind: SurfaceKind::Server,
        pin: PinState::Unpinned,
        ..common(gateway, caller, server, label.as_ref().ok())
    }
}

/// Facts about one tool; `document` is what the hook is about, where it is about something.
pub(crate) fn of_tool(
    gateway: &Gateway,
    caller: &Caller,
    server: &Server,
    surface: &Surface,
    tool: &Tool,
    document: Option<Document>,
) -> Facts {
    let label = Label::new("mcp", "call", &format!("{}/{}", server.name, tool.name));
    let reads_only = tool.read_only_hint == Some(true);
    let decided = label
        .as_ref()
        .ok()
        .and_then(|label| gateway.watch.current().decided(&caller.persona, label, reads_only));
    let facts = Facts {
        kind: SurfaceKind::Tool,
        name: tool.name.clone(),
        auto_approved: names_tool(&server.trust.auto_approve_tools, tool),
        digest: Some(tool.digest.to_string()),
        pin: tool.pin,
        surface_pin: surface.surface_pin(),
        read_only_hint: tool.read_only_hint,
        destructive_hint: tool.destructive_hint,
        definition: Some(tool.definition.clone()),
        document,
        ..common(gateway, caller, server, label.as_ref().ok())
    };
    with_decided(facts, decided)
}

/// What `mcp allow|ask|deny` decided beforehand, in the words that policies understand: labels and
/// automatic approval. Policies decide, as they do about toolgate.yaml, whose `require_approval` wins.
fn with_decided(mut facts: Facts, decided: Option<Decided>) -> Facts {
    let Some(Decided { decision, pattern }) = decided else { return facts };
    match decision {
        Standing::Allow => {
            facts.auto_approved = true;
            facts.matched_allow.get_or_insert(pattern);
        }
        Standing::Ask => {
            facts.auto_approved = false;
            // With labels an ask has to be one of them; without, whatever nothing allows asks.
            if facts.has_capabilities && facts.matched_allow.is_some() {
                facts.matched_approval.get_or_insert(pattern);
            }
        }
        Standing::Deny => {
            // As for a persona with labels of which none covers this.
            facts.auto_approved = false;
            facts.has_capabilities = true;
            facts.matched_allow = None;
            facts.matched_approval = None;
        }
    }
    facts
}

/// Whether a list of the operator's names this tool. Original names and exposed names are both
/// understood (9a; row TRU-002).
pub(crate) fn names_tool(list: &[String], tool: &Tool) -> bool {
    list.iter().any(|name| *name == tool.name || *name == tool.exposed)
}

fn common(gateway: &Gateway, caller: &Caller, server: &Server, label: Option<&Label>) -> Facts {
    let persona = gateway.config.personas.get(&caller.persona);
    let capabilities = persona.and_then(|persona: &Persona| persona.capabilities.as_ref());
    let covering = |patterns: &[toolgate_labels::Pattern]| {
        label.and_then(|label| patterns.iter().find(|pattern| pattern.covers(label)).map(ToString::to_string))
    };
    Facts {
        persona: caller.persona.clone(),
        lane: caller.lane.clone(),
        session: caller.session.clone(),
        server: server.name.clone(),
        server_identity: gateway.identity_text(server),
        // A name that no label can express is covered by none, and shown as what it is.
        label: label.map_or_else(|| format!("mcp.call:{}", server.name), ToString::to_string),
        has_capabilities: capabilities.is_some(),
        matched_allow: capabilities.and_then(|both| covering(&both.allow)),
        matched_approval: capabilities.and_then(|both| covering(&both.require_approval)),
        host_escape: server.trust.host_escape,
        ..Facts::default()
    }
}

/// Facts are shared between policies and threads, never copied.
pub(crate) fn shared(facts: Facts) -> Arc<Facts> {
    Arc::new(facts)
}
