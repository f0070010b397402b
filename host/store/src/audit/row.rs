//! One row of the log, as its makers build it and as its readers get it.
//!
//! The makers below give each event the shape that acceptance 2.5 asks for, so that the call path
//! cannot forget a member. Arguments and results are never stored, only digests of them: they may
//! hold secrets, and the log is read by more people than the call was meant for.
//!
//! Bounds: see [`super::prepare`]; they are applied when the row is handed over.

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_signing::Digest;

use super::deed::Deed;
use super::event::Event;
use crate::state::asks::{Answer, Ask};
use crate::state::standing::StandingDecision;

/// Who acts. Run and thread ids are claimed by the client and open nothing; the rest is known to
/// the host from the credential.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actor {
    /// The agent run that the client claims (AUD-003).
    pub run_id: Option<String>,
    /// The conversation that the client claims (AUD-004).
    pub thread_id: Option<String>,
    /// The persona of the credential (AUD-005).
    pub persona: Option<String>,
    /// The persona's lane.
    pub lane: Option<String>,
    /// `stdio`, `cli` or `token:<id>`; never the token itself.
    pub credential: Option<String>,
    /// The session of the client.
    pub session: Option<String>,
}

/// What is acted upon: one call, read, prompt, completion or subscription of one client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFacts {
    /// Which of them.
    pub deed: Deed,
    /// Who calls.
    pub actor: Actor,
    /// The server's configured name, where the name in the call led to one.
    pub server: Option<String>,
    /// The original name of the tool or prompt at that server, or the URI (AUD-007; design section 9a).
    pub tool: Option<String>,
    /// The name the client used.
    pub exposed: Option<String>,
    /// The client's request id, as its JSON text (AUD-008): `1` and `"1"` stay different.
    pub request_id: Option<String>,
}

/// A row before the store adds chain, sequence number, time and hash.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRow {
    /// The agent run, as claimed.
    pub run_id: Option<String>,
    /// The conversation, as claimed.
    pub thread_id: Option<String>,
    /// The executing persona.
    pub persona_id: Option<String>,
    /// Noun and verb, such as `tool.execute`.
    pub action: String,
    /// The original tool name, where a tool is concerned.
    pub tool: Option<String>,
    /// The MCP request id as JSON text, where a request is concerned.
    pub request_id: Option<String>,
    /// A JSON object with at least `event`; at most 16 KiB as text, larger members are replaced by
    /// their length and digest.
    pub details: Value,
}

impl AuditRow {
    /// A row about nothing but its event.
    pub fn new(event: Event) -> Self {
        // As many members as a row about a call has, so that the map is made once.
        let mut details = Map::with_capacity(16);
        details.insert("event".to_owned(), Value::from(event.name()));
        Self {
            run_id: None,
            thread_id: None,
            persona_id: None,
            action: event.action().to_owned(),
            tool: None,
            request_id: None,
            details: Value::Object(details),
        }
    }

    /// A row about a call: actor, server, tool and request are filled in.
    pub fn about_call(event: Event, call: &CallFacts) -> Self {
        let mut row = Self::new(event).by(&call.actor);
        row.tool.clone_from(&call.tool);
        row.request_id.clone_from(&call.request_id);
        row.with_some("server", call.server.as_deref()).with_some("exposed", call.exposed.as_deref())
    }

    /// A row about a server.
    pub fn about_server(event: Event, server: &str) -> Self {
        Self::new(event).with("server", server)
    }

    /// `mcp_called`, or its like for the other deeds: the arguments as they will be sent, after every adapter, as their digest.
    pub fn called(call: &CallFacts, arguments: &Digest) -> Self {
        Self::about_call(call.deed.begun(), call).with("args", arguments.to_string())
    }

    /// `mcp_completed`: the server's reply came back.
    pub fn completed(call: &CallFacts, is_error: bool) -> Self {
        Self::about_call(call.deed.completed(), call).with("is_error", is_error)
    }

    /// `mcp_failed`: no reply, or none that is one.
    pub fn failed(call: &CallFacts, error: &str) -> Self {
        Self::about_call(call.deed.failed(), call).with("error", error)
    }

    /// `mcp_cancelled`: the caller no longer wants the reply.
    pub fn cancelled(call: &CallFacts) -> Self {
        Self::about_call(call.deed.cancelled(), call)
    }

    /// `caller_refused`: somebody claimed to be (`what`) somebody else, at this `place` of a request.
    pub fn caller_refused(actor: &Actor, place: &str, what: &str, claimed: &str) -> Self {
        Self::new(Event::CallerRefused)
            .by(actor)
            .with("place", place)
            .with("what", what)
            .with("claimed", claimed)
    }

    /// `reply_dropped`: a reply of so many bytes did not go out, because what waits for its client to read
    /// had reached `limit`. What it answers was done.
    pub fn reply_dropped(actor: &Actor, request_id: Option<String>, bytes: usize, limit: &str) -> Self {
        let mut row = Self::new(Event::ReplyDropped).by(actor).with("bytes", bytes).with("limit", limit);
        row.request_id = request_id;
        row
    }

    /// `mcp_denied`: refused before anything left. `rule` is a stable word (`binding`, `policy`,
    /// `fallback`, `pin`, `ask`), `by` the policy where one decided.
    pub fn denied(call: &CallFacts, rule: &str, by: Option<&str>, reason: &str) -> Self {
        Self::about_call(Event::McpDenied, call)
            .with_action(call.deed.begun().action())
            .with("rule", rule)
            .with_some("by", by)
            .with("reason", reason)
    }

    /// A row about a server's question in the middle of a call: of a form only the names of its fields,
    /// never a text of the server's and never an answer (ELI-015, ELI-016).
    pub fn question(event: Event, call: &CallFacts, method: &str, field_keys: &[String]) -> Self {
        let row = Self::about_call(event, call).with_action(event.action()).with("method", method);
        if field_keys.is_empty() { row } else { row.with("field_keys", field_keys.to_vec()) }
    }

    /// A row about a task that a call became: by Toolgate's own id of it, never by the server's.
    pub fn task(event: Event, call: &CallFacts, task: &str) -> Self {
        Self::about_call(event, call).with_action(event.action()).with("task", task)
    }

    /// `approval.request`: the call waits for a person.
    pub fn asked(call: &CallFacts, ask: &str, reason: &str, expires_at: u64) -> Self {
        Self::about_call(Event::ApprovalRequest, call)
            .with("ask", ask)
            .with("reason", reason)
            .with("expires_at", expires_at)
    }

    /// `approval.timeout`: nobody answered, or nobody used the answer, in time (AUD-019).
    pub fn ask_timed_out(ask: &Ask) -> Self {
        Self::about_ask(Event::ApprovalTimeout, ask)
            .with("reason", ask.about.reason.as_str())
            .with("expires_at", ask.expires_at_ms)
    }

    /// A row about an ask, with run, thread and persona of whoever asked.
    fn about_ask(event: Event, ask: &Ask) -> Self {
        let mut row = Self::about_server(event, &ask.about.server).with("ask", ask.id.as_str());
        row.run_id.clone_from(&ask.about.run_id);
        row.thread_id.clone_from(&ask.about.thread_id);
        row.persona_id = Some(ask.about.persona.clone());
        row.tool = Some(ask.about.tool.clone());
        row
    }

    /// `approval.grant` or `approval.reject`: who answered, and where (AUD-019).
    pub fn answered(ask: &Ask, answer: &Answer) -> Self {
        let event = if answer.grant { Event::ApprovalGrant } else { Event::ApprovalReject };
        Self::about_ask(event, ask)
            .with("approver", answer.by.as_str())
            .with("surface", answer.surface)
            .with("reason", ask.about.reason.as_str())
    }

    /// `approval.answer_refused`: something that was sent as an answer, and is none.
    pub fn answer_refused(ask: &Ask, surface: &str, reason: &str) -> Self {
        Self::about_ask(Event::ApprovalAnswerRefused, ask).with("surface", surface).with("reason", reason)
    }

    /// `standing_decision`: what passes, asks or is denied from now on.
    pub fn standing_set(decision: &StandingDecision) -> Self {
        let mut row = Self::new(Event::StandingDecision)
            .with("pattern", decision.pattern.as_str())
            .with("decision", decision.decision.as_str())
            .with("read_only", decision.read_only)
            .with("approver", decision.decided_by.as_str());
        row.persona_id = Some(decision.persona.clone());
        row
    }

    /// `standing_decision`, taken back: nothing is decided about it any more.
    pub fn standing_forgotten(was: &StandingDecision, by: &str) -> Self {
        let mut row = Self::new(Event::StandingDecision)
            .with("pattern", was.pattern.as_str())
            .with("decision", "none")
            .with("was", was.decision.as_str())
            .with("read_only", was.read_only)
            .with("approver", by);
        row.persona_id = Some(was.persona.clone());
        row
    }

    /// `mcp_initialized`: the handshake of a server, in the members acceptance 2.5 names.
    pub fn initialized(server: &str, negotiated_version: &str, capabilities: Value) -> Self {
        Self::about_server(Event::McpInitialized, server)
            .with("negotiated_version", negotiated_version)
            .with("capabilities", capabilities)
    }

    /// `mcp_failed` of a connection: the server could not be started or reached.
    pub fn connect_failed(server: &str, error: &str) -> Self {
        let mut row = Self::about_server(Event::McpFailed, server).with("error", error);
        "server.connect".clone_into(&mut row.action);
        row
    }

    /// `mcp_tools_listed` and its like: how many definitions a server offers, under `counted`, and how
    /// many were dropped.
    pub fn listed(event: Event, server: &str, counted: &str, count: usize, dropped: usize) -> Self {
        Self::about_server(event, server).with(counted, count).with("dropped", dropped)
    }

    /// `mcp_resource_updated`: a subscribed resource changed. `resync`: it may have, while nobody could
    /// hear it.
    pub fn resource_updated(server: &str, uri: &str, resync: bool) -> Self {
        Self::about_server(Event::McpResourceUpdated, server).with("uri", uri).with("resync", resync)
    }

    /// `hidden_text_found` in a definition (SE-01): where, which code points, and what they spell.
    pub fn hidden_text_listed(server: &str, tool: &str, definition: &Digest, findings: Value) -> Self {
        let mut row = Self::about_server(Event::HiddenTextFound, server)
            .with("definition", definition.to_string())
            .with("findings", findings);
        row.tool = Some(tool.to_owned());
        row
    }

    /// `hidden_text_found` in what a call brought back.
    pub fn hidden_text_returned(call: &CallFacts, findings: Value) -> Self {
        let mut row = Self::about_call(Event::HiddenTextFound, call).with("findings", findings);
        Event::HiddenTextFound.action().clone_into(&mut row.action);
        row
    }

    /// `tool_pin_mismatch`: a definition is not the accepted one. `actual` is none when the
    /// definition is gone.
    pub fn pin_mismatch(
        server: &str,
        tool: &str,
        expected: Option<&Digest>,
        actual: Option<&Digest>,
    ) -> Self {
        let mut row = Self::about_server(Event::ToolPinMismatch, server)
            .with("expected", expected.map(Digest::to_string))
            .with("actual", actual.map(Digest::to_string));
        row.tool = Some(tool.to_owned());
        row
    }

    /// `server_pinned`: the operator accepted a surface.
    pub fn pinned(server: &str, surface: &Digest, definitions: usize) -> Self {
        Self::about_server(Event::ServerPinned, server)
            .with("pinned", surface.to_string())
            .with("definitions", definitions)
    }

    /// `plugin_loaded`, with the component that will decide.
    pub fn plugin_loaded(plugin: &str, version: &str, component: &Digest) -> Self {
        Self::new(Event::PluginLoaded)
            .with("plugin", plugin)
            .with("version", version)
            .with("component", component.to_string())
    }

    /// `plugin_refused`, with the reason that names what did not match.
    pub fn plugin_refused(plugin: &str, reason: &str) -> Self {
        Self::new(Event::PluginRefused).with("plugin", plugin).with("reason", reason)
    }

    /// `plugins_changed`, with the digests of both sets and what got another try.
    pub fn plugins_changed(before: &Digest, after: &Digest, retried: &[String]) -> Self {
        Self::new(Event::PluginsChanged)
            .with("before", before.to_string())
            .with("after", after.to_string())
            .with("retried", retried.join(" "))
    }

    /// `secret_revealed`, committed before the plugin has a byte of it.
    pub fn secret_revealed(plugin: &str, label: &str, persona: &str) -> Self {
        let mut row = Self::new(Event::SecretRevealed).with("plugin", plugin).with("label", label);
        if !persona.is_empty() {
            row.persona_id = Some(persona.to_owned());
        }
        row
    }

    /// `plugin_trap`, tied to the call it happened in where there was one.
    pub fn plugin_trap(plugin: &str, fault: &str, call: Option<&CallFacts>) -> Self {
        let row = match call {
            Some(call) => {
                let mut row = Self::about_call(Event::PluginTrap, call);
                Event::PluginTrap.action().clone_into(&mut row.action);
                row
            }
            None => Self::new(Event::PluginTrap),
        };
        row.with("plugin", plugin).with("fault", fault)
    }

    /// `token_issued`: the id and persona, never the token.
    pub fn token_issued(token_id: &str, persona: &str, lane: &str) -> Self {
        let mut row = Self::new(Event::TokenIssued).with("token", token_id).with("lane", lane);
        row.persona_id = Some(persona.to_owned());
        row
    }

    /// `config_trusted`: which file, and as which bytes.
    pub fn config_trusted(path: &str, digest: &Digest) -> Self {
        Self::new(Event::ConfigTrusted).with("path", path).with("digest", digest.to_string())
    }

    /// Says who acts.
    #[must_use]
    pub fn by(mut self, actor: &Actor) -> Self {
        self.run_id.clone_from(&actor.run_id);
        self.thread_id.clone_from(&actor.thread_id);
        self.persona_id.clone_from(&actor.persona);
        self.with_some("lane", actor.lane.as_deref())
            .with_some("credential", actor.credential.as_deref())
            .with_some("session", actor.session.as_deref())
            .with_some("surface", actor.credential.as_deref().map(surface_of))
    }

    /// Adds who runs the process, unless the row is about somebody who came with a token.
    pub(crate) fn run_by(self, person: Option<&str>) -> Self {
        let credential = self.details.get("credential").and_then(Value::as_str);
        if credential.is_some_and(|credential| surface_of(credential) == "http") {
            return self;
        }
        self.with_some("person", person)
    }

    /// Adds a member to the details. Secrets must not be among them.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Value::Object(details) = &mut self.details {
            details.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Replaces the action, for an event that several actions share (such as a denied listing).
    #[must_use]
    pub fn with_action(mut self, action: &str) -> Self {
        action.clone_into(&mut self.action);
        self
    }

    pub(crate) fn with_some(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }
}

/// Where somebody with this credential comes in.
fn surface_of(credential: &str) -> &'static str {
    match credential {
        "stdio" => "stdio",
        "cli" => "cli",
        _ => "http",
    }
}

/// Where a committed row stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Its number in the whole log, ascending in the order of commits; what `follow` goes by.
    pub id: i64,
    /// The chain it belongs to, one per writer.
    pub chain: String,
    /// Its number in that chain, from 1 without gaps.
    pub seq: i64,
}

/// A row as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredRow {
    /// Number in the whole log.
    pub id: i64,
    /// The chain.
    pub chain: String,
    /// Number in the chain.
    pub seq: i64,
    /// The agent run, as claimed.
    pub run_id: Option<String>,
    /// The conversation, as claimed.
    pub thread_id: Option<String>,
    /// The executing persona.
    pub persona_id: Option<String>,
    /// Noun and verb.
    pub action: String,
    /// The original tool name.
    pub tool: Option<String>,
    /// The MCP request id as JSON text.
    pub request_id: Option<String>,
    /// The details object.
    pub details: Value,
    /// When it was committed, in seconds since the Unix epoch (AUD-010).
    pub created_at: i64,
    /// The same instant in milliseconds.
    pub created_at_ms: i64,
    /// The row's hash, 64 hex digits.
    pub hash: String,
}

impl StoredRow {
    /// `details.event`, empty where the details were damaged.
    pub fn event(&self) -> &str {
        self.details.get("event").and_then(Value::as_str).unwrap_or_default()
    }

    /// `details.server`, where the row is about one.
    pub fn server(&self) -> Option<&str> {
        self.details.get("server").and_then(Value::as_str)
    }
}

#[cfg(test)]
mod tests;
