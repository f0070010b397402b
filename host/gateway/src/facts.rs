//! Builds what policies and adapters learn of a request. One place, so that listing and calling
//! cannot tell a policy different stories about the same tool.

use std::sync::Arc;

use toolgate_base::display::is_label_text;
use toolgate_config::{Permit, Persona, Server};
use toolgate_labels::{Label, Pattern};
use toolgate_plugins::{Document, Facts, PinState, SurfaceKind};
use toolgate_signing::DefinitionKind;
use toolgate_store::Standing;

use crate::Gateway;
use crate::caller::Caller;
use crate::question;
use crate::surface::{self, Item, Surface};
use crate::watch::Decided;

/// Facts about a server as a whole, for the hook connect.
pub(crate) fn of_server(gateway: &Gateway, caller: &Caller, server: &Server) -> Facts {
    let label = Label::new("mcp", "connect", &server.name);
    Facts {
        kind: SurfaceKind::Server,
        pin: PinState::Unpinned,
        ..common(gateway, caller, server, label.as_ref().ok(), None)
    }
}

/// Facts about one definition; `subject` is the name or URI at hand and `document` what the hook is
/// about, where it is about something.
pub(crate) fn of_item(
    gateway: &Gateway,
    caller: &Caller,
    server: &Server,
    surface: &Surface,
    item: &Item,
    about: About<'_>,
) -> Facts {
    let label = Label::new("mcp", about.action, &format!("{}/{}", server.name, about.subject));
    // The grant of a whole server is one for all that it offers, not for its tools alone (RES-004,
    // PRM-003); a grant of one tool is for that tool.
    let is_tool = item.kind == DefinitionKind::Tool;
    let whole = if is_tool { None } else { Label::new("mcp", "call", &server.name).ok() };
    let reads_only = item.read_only_hint == Some(true);
    let labels: Vec<&Label> = label.as_ref().ok().into_iter().chain(&whole).collect();
    let decided = gateway.watch.current().decided(&caller.persona, &labels, reads_only);
    let facts = Facts {
        kind: surface::plugin_kind(item.kind),
        name: about.subject.to_owned(),
        auto_approved: names_tool(&server.trust.auto_approve_tools, item),
        digest: Some(item.digest.to_string()),
        pin: item.pin,
        surface_pin: surface.surface_pin(),
        read_only_hint: item.read_only_hint,
        destructive_hint: item.destructive_hint,
        definition: Some(item.definition.clone()),
        bytes: Some(item.bytes),
        document: about.document,
        ..common(gateway, caller, server, label.as_ref().ok(), whole.as_ref())
    };
    let taken = decided.as_ref().is_some_and(|decided| decided.decision != Standing::Allow);
    let permit = gateway.config.permissions.of(&server.name);
    with_permit(with_decided(facts, decided), permit.filter(|permit| !taken || *permit != Permit::Allow))
}

/// Where it stands that a tool was approved beforehand; `None` where it was not. Policies learn only that it was.
pub(crate) fn approved_by(
    gateway: &Gateway,
    caller: &Caller,
    server: &Server,
    item: &Item,
    facts: &Facts,
) -> Option<String> {
    if !facts.auto_approved {
        return None;
    }
    if names_tool(&server.trust.auto_approve_tools, item) {
        return Some(format!("trust.auto_approve_tools of server '{}'", server.name));
    }
    let label = facts.label.parse::<Label>().ok();
    let labels: Vec<&Label> = label.iter().collect();
    let reads_only = item.read_only_hint == Some(true);
    match gateway.watch.current().decided(&caller.persona, &labels, reads_only) {
        Some(decided) if decided.decision == Standing::Allow => {
            Some(format!("`toolgate mcp allow` of `{}`", decided.pattern))
        }
        _ => Some("permissions.mcp of toolgate.yaml".to_owned()),
    }
}

/// What `permissions.mcp` of toolgate.yaml says about the server. It answers asks and opens nothing: a
/// label that is missing is missing still, and what was taken away otherwise stays so.
fn with_permit(mut facts: Facts, permit: Option<Permit>) -> Facts {
    let pattern = || format!("mcp.call:{}", facts.server);
    match permit {
        None => {}
        // What can leave its sandbox is approved tool by tool, or for a session (TRU-006).
        Some(Permit::Allow) => facts.auto_approved |= !facts.host_escape,
        Some(Permit::Ask) => {
            facts.auto_approved = false;
            if facts.has_capabilities && facts.matched_allow.is_some() && facts.matched_approval.is_none() {
                facts.matched_approval = Some(pattern());
            }
        }
        // No policy is asked about it (`decide::floor`); what one learns elsewhere is no approval.
        Some(Permit::Deny) => facts.auto_approved = false,
    }
    facts
}

/// What `mcp allow|ask|deny` decided beforehand, in the words that policies understand: labels and
/// automatic approval. An allow is theirs to give, as it is of toolgate.yaml, whose `require_approval` wins.
fn with_decided(mut facts: Facts, decided: Option<Decided>) -> Facts {
    let Some(Decided { decision, pattern }) = decided else { return facts };
    match decision {
        // Nothing stands for what can leave its sandbox (APR-020), whenever that was said of it.
        Standing::Allow if facts.host_escape => {}
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
        // As above: denied without them.
        Standing::Deny => facts.auto_approved = false,
    }
    facts
}

/// Facts about a question that a server asks while it works on `item`. The operator's `forward` is in
/// them as an approval beforehand; a question to a person has none, since that person decides.
pub(crate) fn of_question(
    gateway: &Gateway,
    caller: &Caller,
    server: &Server,
    surface: &Surface,
    item: &Item,
    about: About<'_>,
    question: question::Kind,
) -> Facts {
    Facts {
        kind: SurfaceKind::Question,
        name: question.method().to_owned(),
        auto_approved: !question.is_for_a_person(),
        ..of_item(gateway, caller, server, surface, item, about)
    }
}

/// The label of just this, where a model or a person may be told to write it. A name that no label can express has
/// that of its whole server, which is more; and a server chose the name, which is repeated in a label only where
/// it ends no quote and a shell obeys nothing in it.
pub(crate) fn offered_label(facts: &Facts) -> Option<&str> {
    let label = facts.label.parse::<Label>().ok()?;
    let scope = label.scope()?;
    let of = scope.split_once('/').map(|(server, _)| server);
    let is_of_this = match facts.kind {
        SurfaceKind::Server => scope == facts.server,
        _ => of == Some(facts.server.as_str()),
    };
    Some(facts.label.as_str()).filter(|label| is_of_this && is_label_text(label))
}

/// What is being done with a definition.
pub(crate) struct About<'a> {
    /// The action of the capability label that names it, as `call`.
    pub(crate) action: &'a str,
    /// The name or URI at hand.
    pub(crate) subject: &'a str,
    /// The arguments, the result, the definition.
    pub(crate) document: Option<Document>,
}

/// The action of the label under which a definition is listed: that of what one would do with it.
pub(crate) fn list_action(kind: DefinitionKind) -> &'static str {
    match kind {
        DefinitionKind::Tool => "call",
        DefinitionKind::Prompt => "prompt",
        DefinitionKind::Resource | DefinitionKind::Template => "read",
        DefinitionKind::Instructions => "connect",
    }
}

/// Whether a list of the operator's names this tool; other definitions it never names. Original names
/// and exposed names are both understood (9a; row TRU-002).
pub(crate) fn names_tool(list: &[String], item: &Item) -> bool {
    item.kind == DefinitionKind::Tool && list.iter().any(|name| *name == item.name || *name == item.exposed)
}

fn common(
    gateway: &Gateway,
    caller: &Caller,
    server: &Server,
    label: Option<&Label>,
    whole: Option<&Label>,
) -> Facts {
    let persona = gateway.config.personas.get(&caller.persona);
    let capabilities = persona.and_then(|persona: &Persona| persona.capabilities.as_ref());
    let covers = |pattern: &Pattern| {
        let covers = |label: Option<&Label>| label.is_some_and(|label| pattern.covers(label));
        covers(label) || covers(whole)
    };
    let covering = |patterns: &[toolgate_labels::Pattern]| {
        patterns.iter().find(|pattern| covers(pattern)).map(ToString::to_string)
    };
    Facts {
        persona: caller.persona.clone(),
        lane: caller.lane.as_str().to_owned(),
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
