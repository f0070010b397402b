//! What the gateway writes into the audit log, and the marks of one call that every row of it carries.

use toolgate_config::Server;
use toolgate_plugins::{Decision, Document, FaultKind, PinState};
use toolgate_signing::DefinitionKind;
use toolgate_store::{Actor, AuditRow, CallFacts, Deed, Event};
use toolgate_upstream::Connection;
use toolgate_wire::{Id, ListKind};

use crate::Gateway;
use crate::caller::{Caller, DroppedReply, FalseClaim};
use crate::decide::Verdict;
use crate::find::Handle;
use crate::pin::Approved;
use crate::surface::{Item, Surface};

/// Rows about hidden text that one listing leaves at most: a server decides how much it shows.
const MOST_HIDDEN: usize = 64;

/// Tools that a warning names at most.
const MOST_ADVERTISED: usize = 32;

/// The listings that a connection leaves rows of: event, and the member that counts.
const LISTED: [(DefinitionKind, Event, &str); 4] = [
    (DefinitionKind::Tool, Event::McpToolsListed, "tools"),
    (DefinitionKind::Prompt, Event::McpPromptsListed, "prompts"),
    (DefinitionKind::Resource, Event::McpResourcesListed, "resources"),
    (DefinitionKind::Template, Event::McpResourceTemplatesListed, "templates"),
];

/// The marks of one call.
pub(crate) fn call_facts(
    caller: &Caller,
    deed: Deed,
    handle: &Handle,
    used: &str,
    request_id: &Id,
) -> CallFacts {
    CallFacts {
        deed,
        actor: actor(caller),
        server: Some(handle.server.name.clone()),
        tool: Some(handle.subject.clone()),
        exposed: Some(used.to_owned()),
        request_id: serde_json::to_string(request_id).ok(),
    }
}

/// The marks of a call whose name led nowhere.
pub(crate) fn lost_call(
    caller: &Caller,
    deed: Deed,
    exposed: &str,
    server: Option<&str>,
    request_id: &Id,
) -> CallFacts {
    CallFacts {
        deed,
        actor: actor(caller),
        server: server.map(str::to_owned),
        tool: None,
        exposed: Some(exposed.to_owned()),
        request_id: serde_json::to_string(request_id).ok(),
    }
}

/// Who acts, as rows have it.
pub(crate) fn actor(caller: &Caller) -> Actor {
    Actor {
        run_id: caller.run_id.clone(),
        thread_id: caller.thread_id.clone(),
        persona: Some(caller.persona.clone()),
        lane: Some(caller.lane.as_str().to_owned()),
        credential: Some(caller.credential.clone()),
        session: Some(caller.session.clone()),
    }
}

impl Gateway {
    /// That a plugin was put aside is one row for each set it is put aside in, not one for each call.
    pub(crate) fn note_aside(&self, plugin: &str) {
        let in_force = self.plugins();
        // A poisoned lock only costs a second row.
        let mut noted = in_force.noted_aside.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if noted.insert(plugin.to_owned()) {
            self.store.append_detached(AuditRow::new(Event::PluginPutAside).with("plugin", plugin));
        }
    }

    /// Awaited: a refusal that the caller hears of is in the log, whatever happens next. That it
    /// cannot be written does not turn it into a permission; the log says so by itself.
    pub(crate) async fn note_denial(&self, call: &CallFacts, verdict: &Verdict) {
        for said in &verdict.decisions {
            if let Decision::Deny { fault: Some(fault), .. } = &said.decision {
                let row = AuditRow::plugin_trap(&said.plugin, &fault.to_string(), Some(call));
                self.store.append_detached(row);
                if fault.kind == FaultKind::PutAside {
                    self.note_aside(&said.plugin);
                }
            }
        }
        let rule = if verdict.decisions.is_empty() { "binding" } else { "policy" };
        self.note_refusal(AuditRow::denied(call, rule, verdict.by.as_deref(), &verdict.reason)).await;
    }

    /// That a reply was dropped because its client does not read. Not awaited, as nothing depends on it.
    pub fn note_dropped(&self, dropped: DroppedReply) {
        let DroppedReply { credential, persona, request_id, bytes, limit } = dropped;
        tracing::warn!(credential, bytes, limit, "a reply was dropped because its client does not read");
        let actor = Actor { persona: Some(persona), credential: Some(credential), ..Actor::default() };
        let request = request_id.map(|id| id.to_json());
        self.store.append_detached(AuditRow::reply_dropped(&actor, request, bytes, limit));
    }

    /// That a client claimed to be somebody else. Not awaited: nothing of it runs, whatever happens next.
    pub fn note_false_claim(&self, claim: FalseClaim) {
        let actor = Actor {
            persona: Some(claim.persona),
            lane: Some(claim.lane.as_str().to_owned()),
            credential: Some(claim.credential),
            ..Actor::default()
        };
        let row = AuditRow::caller_refused(&actor, claim.place, claim.what, &claim.claimed);
        self.store.append_detached(row);
    }

    /// Awaited, so that the row is there before its caller hears of it where that can be. Where it cannot, it is
    /// kept and tried again like a row that nobody awaits, and is counted where it has to be given up (AUD-019).
    pub(crate) async fn note_refusal(&self, row: AuditRow) {
        let kept = row.clone();
        if let Err(error) = self.store.append(row).await {
            tracing::error!(%error, "a refusal is not in the audit log yet; it is tried again");
            self.store.append_detached(kept);
        }
    }

    pub(crate) fn note_connect_failed(&self, server: &Server, error: &str) {
        self.store.append_detached(AuditRow::connect_failed(&server.name, error));
    }

    pub(crate) fn note_connected(&self, server: &Server, connection: &Connection, surface: &Surface) {
        let capabilities = serde_json::from_str(connection.capabilities().get()).unwrap_or_default();
        let version = connection.protocol_version();
        self.store.append_detached(AuditRow::initialized(&server.name, version, capabilities));
        for (kind, event, counted) in LISTED {
            let count = surface.of(kind).count();
            // A server that has none of a kind was not asked for it, or has nothing to tell of.
            if count > 0 || kind == DefinitionKind::Tool {
                let dropped = if kind == DefinitionKind::Tool { surface.dropped.len() } else { 0 };
                let row = AuditRow::listed(event, &server.name, counted, count, dropped);
                self.store.append_detached(row);
            }
        }
        for (item, reason) in &surface.dropped {
            tracing::warn!(server = %server.name, %item, %reason, "this definition is left out");
        }
        self.note_mismatches(server, surface);
        warn_of_inert_names(server, surface);
        self.note_hidden_text(server, surface, None);
        log_unpinned_hash(server, surface);
    }

    pub(crate) fn note_pinned(&self, server: &Server, surface: &Surface) {
        if let Some(digest) = &surface.digest {
            self.store.append_detached(AuditRow::pinned(&server.name, digest, surface.items().len()));
        }
    }

    /// A question of a server's that belongs to no call, or to one of several.
    pub(crate) fn note_unplaced(&self, server: &Server, method: &str, why: &str) {
        let row = AuditRow::about_server(Event::McpQuestionRefused, &server.name);
        self.store.append_detached(row.with("method", method).with("reason", why));
    }

    pub(crate) fn note_list_changed(&self, server: &Server, kind: ListKind) {
        let event = match kind {
            ListKind::Tools => Event::McpToolListChanged,
            ListKind::Prompts => Event::McpPromptListChanged,
            ListKind::Resources | ListKind::Templates => Event::McpResourceListChanged,
        };
        self.store.append_detached(AuditRow::about_server(event, &server.name));
    }

    /// One row for each definition with hidden text that was not on the surface before (SE-01). It is
    /// written whatever the policies make of the text, at most [`MOST_HIDDEN`] for one listing.
    pub(crate) fn note_hidden_text(&self, server: &Server, surface: &Surface, before: Option<&Surface>) {
        let known = |item: &Item| {
            let was = before.and_then(|before| before.item(item.kind, &item.name));
            was.is_some_and(|was| was.bytes == item.bytes)
        };
        let new = surface.items().iter().filter(|item| !known(item));
        let found = new.filter_map(|item| Some((item, findings(&item.definition)?)));
        for (item, findings) in found.take(MOST_HIDDEN) {
            let row = AuditRow::hidden_text_listed(&server.name, &item.name, &item.digest, findings);
            self.store.append_detached(row.with("kind", item.kind.as_str()));
        }
    }

    /// The row about hidden text in what a server said while it worked on a call, or answered at its end.
    /// Whether there was any.
    pub(crate) fn note_hidden_result(&self, call: &CallFacts, said: &Document) -> bool {
        let found = findings(said);
        let is_found = found.is_some();
        if let Some(findings) = found {
            self.store.append_detached(AuditRow::hidden_text_returned(call, findings));
        }
        is_found
    }

    /// The row about hidden text in a question that a server asks.
    pub(crate) fn note_hidden_question(&self, call: &CallFacts, question: &Document) {
        if let Some(findings) = findings(question) {
            self.store.append_detached(AuditRow::hidden_text_returned(call, findings));
        }
    }

    /// One row for each definition that is not the approved one. Where nothing was reviewed yet, as
    /// while a server is being added, there is nothing that a definition could differ from.
    pub(crate) fn note_mismatches(&self, server: &Server, surface: &Surface) {
        let approved = self.approved(server);
        if matches!(approved, Approved::Unreviewed) {
            tracing::info!(server = %server.name, "nothing of this server was reviewed yet, so nothing is shown");
            return;
        }
        let is_another = matches!(approved, Approved::OtherIdentity);
        let blocked: Vec<&str> = surface
            .items()
            .iter()
            .filter(|tool| matches!(tool.pin, PinState::Differs | PinState::Unknown))
            .map(|tool| {
                let row = AuditRow::pin_mismatch(&server.name, &tool.name, None, Some(&tool.digest))
                    .with("kind", tool.kind.as_str());
                let row = if is_another { row.with("identity", "changed") } else { row };
                self.store.append_detached(row);
                tool.name.as_str()
            })
            .collect();
        if is_another && !blocked.is_empty() {
            tracing::warn!(
                server = %server.name, blocked = blocked.len(),
                "this server has another command, other arguments or another URL than when it was approved (a \
                 secret in them that was changed counts), so all of its definitions are blocked; where that is \
                 meant, accept it with `toolgate mcp pin {} --accept`",
                server.name
            );
        } else if let Some(first) = blocked.first() {
            tracing::warn!(
                server = %server.name, blocked = blocked.len(), tool = %first,
                "definitions that are not the approved ones are blocked; see `toolgate mcp diff {}`",
                server.name
            );
        }
    }
}

/// TRU-005: an unpinned server's digest, ready to be copied.
fn log_unpinned_hash(server: &Server, surface: &Surface) {
    if let (None, Some(digest)) = (&surface.surface_pin, &surface.digest) {
        tracing::info!(server = %server.name, "pinned_tool_hash: \"{digest}\"");
    }
}

/// A name in `trust.auto_approve_tools`, `tools.allow` or `tools.deny` that no tool has does nothing, and
/// whoever wrote it believes that it does (TRU-003, TRB-005).
fn warn_of_inert_names(server: &Server, surface: &Surface) {
    let tools: Vec<&std::sync::Arc<Item>> = surface.of(DefinitionKind::Tool).collect();
    let lists = [
        ("trust.auto_approve_tools", &server.trust.auto_approve_tools, "approves nothing"),
        ("tools.allow", &server.tools.allow, "allows nothing"),
        ("tools.deny", &server.tools.deny, "denies nothing"),
    ];
    for (key, names, what) in lists {
        let has = |name: &String| tools.iter().any(|tool| tool.name == *name || tool.exposed == *name);
        for name in names.iter().filter(|name| !has(name)) {
            let advertised: Vec<&str> =
                tools.iter().take(MOST_ADVERTISED).map(|tool| tool.exposed.as_str()).collect();
            let more = tools.len().saturating_sub(advertised.len());
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            tracing::warn!(
                server = %server.name,
                "`{name}` in {key} is inert: no tool has this name, so it {what}. Names are <server>__<tool>, or \
                 the server's own; it advertises {}{more}",
                if advertised.is_empty() { "none".to_owned() } else { advertised.join(", ") },
            );
        }
    }
}

/// What is hidden in a document, as JSON; none where nothing is.
fn findings(document: &Document) -> Option<serde_json::Value> {
    // What is printable ASCII without an escape or a blob hides nothing, and nearly everything is.
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    let text = document.text();
    if text.bytes().all(plain) && !text.contains("\\u") && !text.contains("\"blob\"") {
        return None;
    }
    // A policy that asked has it looked for already.
    let found = document.hidden_text();
    if found.is_empty() { None } else { serde_json::to_value(found).ok() }
}
