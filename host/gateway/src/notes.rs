//! What the gateway writes into the audit log, and the marks of one call that every row of it carries.

use toolgate_config::Server;
use toolgate_plugins::{Decision, Document, FaultKind, PinState, Redaction};
use toolgate_store::{Actor, AuditRow, CallFacts, Event};
use toolgate_upstream::Connection;
use toolgate_wire::Id;

use crate::Gateway;
use crate::caller::Caller;
use crate::catalog::ToolHandle;
use crate::decide::Verdict;
use crate::pin::Approved;
use crate::surface::{Surface, Tool};

/// Rows about hidden text that one listing leaves at most: a server decides how many tools it shows.
const MOST_HIDDEN: usize = 64;

/// The marks of one call.
pub(crate) fn call_facts(caller: &Caller, handle: &ToolHandle, request_id: &Id) -> CallFacts {
    CallFacts {
        actor: actor(caller),
        server: Some(handle.server.name.clone()),
        tool: Some(handle.tool.name.clone()),
        exposed: Some(handle.tool.exposed.clone()),
        request_id: serde_json::to_string(request_id).ok(),
    }
}

/// The marks of a call whose name led nowhere.
pub(crate) fn lost_call(caller: &Caller, exposed: &str, server: Option<&str>, request_id: &Id) -> CallFacts {
    CallFacts {
        actor: actor(caller),
        server: server.map(str::to_owned),
        tool: None,
        exposed: Some(exposed.to_owned()),
        request_id: serde_json::to_string(request_id).ok(),
    }
}

fn actor(caller: &Caller) -> Actor {
    Actor {
        run_id: caller.run_id.clone(),
        thread_id: caller.thread_id.clone(),
        persona: Some(caller.persona.clone()),
        lane: Some(caller.lane.clone()),
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

    pub(crate) async fn note_refusal(&self, row: AuditRow) {
        if let Err(error) = self.store.append(row).await {
            tracing::error!(%error, "a refusal could not be written to the audit log");
        }
    }

    pub(crate) fn note_connect_failed(&self, server: &Server, error: &str) {
        self.store.append_detached(AuditRow::connect_failed(&server.name, error));
    }

    pub(crate) fn note_connected(&self, server: &Server, connection: &Connection, surface: &Surface) {
        let capabilities = serde_json::from_str(connection.capabilities().get()).unwrap_or_default();
        let version = connection.protocol_version();
        self.store.append_detached(AuditRow::initialized(&server.name, version, capabilities));
        let (tools, dropped) = (surface.tools.len(), surface.dropped.len());
        self.store.append_detached(AuditRow::tools_listed(&server.name, tools, dropped));
        for (tool, reason) in &surface.dropped {
            tracing::warn!(server = %server.name, %tool, %reason, "this tool is left out");
        }
        self.note_mismatches(server, surface);
        self.note_hidden_text(server, surface, None);
        log_unpinned_hash(server, surface);
    }

    pub(crate) fn note_pinned(&self, server: &Server, surface: &Surface) {
        if let Some(digest) = &surface.digest {
            self.store.append_detached(AuditRow::pinned(&server.name, digest, surface.tools.len()));
        }
    }

    pub(crate) fn note_list_changed(&self, server: &Server) {
        self.store.append_detached(AuditRow::about_server(Event::McpToolListChanged, &server.name));
    }

    /// One row for each definition with hidden text that was not on the surface before (SE-01). It is
    /// written whatever the policies make of the text, at most [`MOST_HIDDEN`] for one listing.
    pub(crate) fn note_hidden_text(&self, server: &Server, surface: &Surface, before: Option<&Surface>) {
        let known = |tool: &Tool| {
            before.and_then(|before| before.tool(&tool.name)).is_some_and(|was| was.digest == tool.digest)
        };
        let new = surface.tools.iter().filter(|tool| !known(tool));
        let found = new.filter_map(|tool| Some((tool, findings(&tool.definition)?)));
        for (tool, findings) in found.take(MOST_HIDDEN) {
            let row = AuditRow::hidden_text_listed(&server.name, &tool.name, &tool.digest, findings);
            self.store.append_detached(row);
        }
    }

    /// The row about a result of which a policy had hidden text removed.
    pub(crate) fn note_hidden_result(&self, call: &CallFacts, verdict: &Verdict, result: &Document) {
        if verdict.redactions.iter().any(|redaction| matches!(redaction, Redaction::HiddenText))
            && let Some(findings) = findings(result)
        {
            self.store.append_detached(AuditRow::hidden_text_returned(call, findings));
        }
    }

    /// One row for each definition that is not the approved one. Where nothing was reviewed yet, as
    /// while a server is being added, there is nothing that a definition could differ from.
    pub(crate) fn note_mismatches(&self, server: &Server, surface: &Surface) {
        if matches!(self.approved(server), Approved::Unreviewed) {
            tracing::info!(server = %server.name, "nothing of this server was reviewed yet, so nothing is shown");
            return;
        }
        let blocked: Vec<&str> = surface
            .tools
            .iter()
            .filter(|tool| matches!(tool.pin, PinState::Differs | PinState::Unknown))
            .map(|tool| {
                let row = AuditRow::pin_mismatch(&server.name, &tool.name, None, Some(&tool.digest));
                self.store.append_detached(row);
                tool.name.as_str()
            })
            .collect();
        if let Some(first) = blocked.first() {
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

/// What is hidden in a document, as JSON; none where nothing is.
fn findings(document: &Document) -> Option<serde_json::Value> {
    let found = toolgate_plugins::hidden_text(document.text());
    if found.is_empty() { None } else { serde_json::to_value(found).ok() }
}
