//! What a caller can see and by which name: the exposed-name map and the merged listing.
//!
//! A name reaches its tool through the map, never by taking it apart (FT-22). A tool that a caller
//! may not see, a tool of somebody else's server and a tool that does not exist are one and the same
//! to the caller (SCP-002). A server that is still starting is answered for from its approved
//! surface; `list_changed` follows.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use toolgate_config::Server;
use toolgate_plugins::{Change, Facts};
use toolgate_signing::Digest;
use toolgate_wire::{ErrorObject, edit};

use crate::Gateway;
use crate::caller::Caller;
use crate::connect::OpenError;
use crate::decide::{self, Ruling};
use crate::links::Live;
use crate::pin::Approved;
use crate::reply;
use crate::surface::{Surface, Tool};
use crate::{facts, redact};

/// Entries of one page of `tools/list`.
pub const PAGE: usize = 1_000;
/// How long a listing waits for a server of which nothing is approved yet.
const FIRST_LISTING: Duration = Duration::from_secs(20);

/// One page of `tools/list`.
#[derive(Debug)]
pub struct ToolPage {
    /// Definitions as the client sees them.
    pub tools: Vec<Box<RawValue>>,
    /// Pass it back for the next page; `None` at the end.
    pub next_cursor: Option<String>,
}

/// Which tool is meant.
#[derive(Debug, Clone)]
pub enum Target {
    /// By the name a client sees.
    Exposed(String),
    /// By server and original name, as the CLI does.
    Original {
        /// The server.
        server: String,
        /// The server's own name for the tool.
        tool: String,
    },
}

/// A tool with the server and the surface it stands in.
#[derive(Clone)]
pub(crate) struct ToolHandle {
    pub(crate) server: Arc<Server>,
    pub(crate) live: Arc<Live>,
    pub(crate) surface: Arc<Surface>,
    pub(crate) tool: Arc<Tool>,
}

impl Gateway {
    /// One page of the tools this caller may see. `cursor` is one that an earlier page gave.
    pub async fn list_tools(
        self: &Arc<Self>,
        caller: &Caller,
        cursor: Option<&str>,
    ) -> Result<ToolPage, ErrorObject> {
        let mut shown = Vec::new();
        for (server, surface) in self.surfaces(caller).await {
            shown.extend(self.visible(caller, &server, &surface));
        }
        page(&shown, cursor)
    }

    /// The surfaces of all servers that exist for this caller, in the order of the configuration.
    async fn surfaces(self: &Arc<Self>, caller: &Caller) -> Vec<(Arc<Server>, Arc<Surface>)> {
        let waiting: Vec<_> = self
            .servers_of(caller)
            .into_iter()
            .map(|server| {
                let (gateway, caller) = (Arc::clone(self), caller.clone());
                tokio::spawn(async move {
                    let surface = gateway.surface_at_once(&caller, &server).await;
                    (server, surface)
                })
            })
            .collect();
        let mut surfaces = Vec::with_capacity(waiting.len());
        for task in waiting {
            if let Ok((server, Some(surface))) = task.await {
                surfaces.push((server, surface));
            }
        }
        surfaces
    }

    /// The servers that exist for a caller: bound, enabled, and not narrowed away.
    pub(crate) fn servers_of(&self, caller: &Caller) -> Vec<Arc<Server>> {
        self.servers
            .values()
            .filter(|server| server.enabled && self.binding(caller, &server.name).holds())
            .map(Arc::clone)
            .collect()
    }

    /// Those of [`Self::servers_of`] whose tools' names can begin like this one.
    fn servers_that_may_show(&self, caller: &Caller, name: &str) -> Vec<Arc<Server>> {
        self.servers
            .values()
            .filter(|server| self.prefixes.get(&server.name).is_none_or(|prefix| name.starts_with(prefix)))
            .filter(|server| server.enabled && self.binding(caller, &server.name).holds())
            .map(Arc::clone)
            .collect()
    }

    /// Live, else approved, else whatever a short wait brings.
    async fn surface_at_once(
        self: &Arc<Self>,
        caller: &Caller,
        server: &Arc<Server>,
    ) -> Option<Arc<Surface>> {
        if let Some(live) = self.live_now(caller, server) {
            return Some(live.surface.load_full());
        }
        if let Some(surface) = self.approved_surface(server) {
            let (gateway, caller, server) = (Arc::clone(self), caller.clone(), Arc::clone(server));
            tokio::spawn(async move {
                // Its failure is in the status and the log; the approved surface stands meanwhile.
                let _ = gateway.live(&caller, &server).await;
            });
            return Some(surface);
        }
        match tokio::time::timeout(FIRST_LISTING, self.live(caller, server)).await {
            Ok(Ok(live)) => Some(live.surface.load_full()),
            Ok(Err(error)) => {
                tracing::warn!(server = %server.name, %error, "its tools are not listed");
                None
            }
            Err(_) => {
                tracing::warn!(server = %server.name, "still starting; its tools follow when it is ready");
                None
            }
        }
    }

    /// What the operator approved of a server, as a surface; none where nothing is approved.
    pub(crate) fn approved_surface(&self, server: &Server) -> Option<Arc<Surface>> {
        let approved = self.approved(server);
        let Approved::Definitions(pinned) = &approved else { return None };
        let raw = pinned
            .iter()
            .filter_map(|definition| RawValue::from_string(definition.definition_json.clone()).ok())
            .collect::<Vec<_>>();
        let max_name = self.config.serve.max_tool_name;
        Some(Arc::new(Surface::build(server, max_name, &approved, &raw, Vec::new())))
    }

    /// The definitions of one server as this caller sees them.
    fn visible(&self, caller: &Caller, server: &Server, surface: &Surface) -> Vec<Box<RawValue>> {
        let offered: Vec<&Arc<Tool>> = surface.tools.iter().filter(|tool| offers(server, tool)).collect();
        let facts: Vec<Arc<Facts>> = offered
            .iter()
            .map(|tool| {
                let definition = Some(tool.definition.clone());
                Arc::new(facts::of_tool(self, caller, server, surface, tool, definition))
            })
            .collect();
        let binding = self.binding(caller, &server.name);
        let verdicts = decide::decide_list(&self.plugins().plugins, &binding, &facts);
        let adapted = self.adapted_definitions(server, &facts);
        let mut shown = Vec::with_capacity(offered.len());
        for ((tool, verdict), change) in offered.iter().zip(verdicts).zip(adapted) {
            if verdict.ruling == Ruling::Deny {
                tracing::debug!(server = %server.name, tool = %tool.name, reason = %verdict.reason, "hidden");
                continue;
            }
            match show(tool, &change, &verdict.redactions) {
                Ok(Some(definition)) => shown.push(definition),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(server = %server.name, tool = %tool.name, %error, "hidden: a plugin's change failed");
                }
            }
        }
        shown
    }

    /// One change for each definition; an adapter that fails hides all of its server's tools.
    fn adapted_definitions(&self, server: &Server, facts: &[Arc<Facts>]) -> Vec<Change> {
        let hide = |reason: String| vec![Change::Fail(reason); facts.len()];
        match self.adapter_of(server) {
            Ok(None) => vec![Change::Unchanged; facts.len()],
            Ok(Some(adapter)) => adapter.tools(facts).unwrap_or_else(|fault| hide(fault.to_string())),
            Err(error) => hide(error.to_string()),
        }
    }

    /// Finds a tool by either name. Everything that this caller cannot reach is an unknown tool.
    pub(crate) async fn find_tool(
        self: &Arc<Self>,
        caller: &Caller,
        target: &Target,
    ) -> Result<ToolHandle, FindError> {
        match target {
            Target::Original { server, tool } => {
                let selector = format!("{server}.{tool}");
                let servers = self.servers_of(caller);
                let Some(server) = servers.iter().find(|candidate| candidate.name == *server) else {
                    return Err(FindError::Unknown(selector));
                };
                self.on_live(caller, server, &selector, |surface| surface.tool(tool)).await
            }
            Target::Exposed(name) => self.find_exposed(caller, name).await,
        }
    }

    async fn find_exposed(self: &Arc<Self>, caller: &Caller, name: &str) -> Result<ToolHandle, FindError> {
        let mut unknown = Vec::new();
        // First what is known without waiting: live surfaces, then approved ones. Servers none of whose
        // tools can have the name are not looked at, so that one call does not pay for all of them.
        for server in self.servers_that_may_show(caller, name) {
            let known = self.live_now(caller, &server).map(|live| live.surface.load_full());
            match known.or_else(|| self.approved_surface(&server)) {
                Some(surface) if surface.exposed(name).is_some() => {
                    return self.on_live(caller, &server, name, |surface| surface.exposed(name)).await;
                }
                Some(_) => {}
                None => unknown.push(server),
            }
        }
        for server in unknown {
            match self.on_live(caller, &server, name, |surface| surface.exposed(name)).await {
                Err(FindError::Unknown(_) | FindError::Open { .. }) => {}
                found => return found,
            }
        }
        Err(FindError::Unknown(name.to_owned()))
    }

    /// The tool as its server shows it now: a call is never judged by an old definition.
    async fn on_live(
        self: &Arc<Self>,
        caller: &Caller,
        server: &Arc<Server>,
        name: &str,
        look: impl Fn(&Surface) -> Option<&Arc<Tool>>,
    ) -> Result<ToolHandle, FindError> {
        let live = self.live(caller, server).await.map_err(|error| FindError::Open {
            server: server.name.clone(),
            name: name.to_owned(),
            error,
        })?;
        let surface = live.surface.load_full();
        let tool = look(&surface).filter(|tool| offers(server, tool)).map(Arc::clone);
        match tool {
            Some(tool) => Ok(ToolHandle { server: Arc::clone(server), live, surface, tool }),
            None => Err(FindError::Unknown(name.to_owned())),
        }
    }
}

/// Why a tool was not found.
pub(crate) enum FindError {
    /// For this caller there is none of this name.
    Unknown(String),
    /// Its server could not be reached.
    Open {
        /// The server.
        server: String,
        /// The name asked for.
        name: String,
        /// Why.
        error: OpenError,
    },
}

/// The exact-name filters of the entry: deny wins, and an empty allow list allows all (TRU-010).
fn offers(server: &Server, tool: &Tool) -> bool {
    let filter = &server.tools;
    let named = |list: &[String]| facts::names_tool(list, tool);
    !named(&filter.deny) && (filter.allow.is_empty() || named(&filter.allow))
}

/// A definition as shown: the adapter's change, then the policies' redactions, then the name.
fn show(
    tool: &Tool,
    change: &Change,
    redactions: &[toolgate_plugins::Redaction],
) -> Result<Option<Box<RawValue>>, redact::ChangeError> {
    if matches!(change, Change::Fail(_)) {
        return Ok(None);
    }
    let mut text =
        redact::changed(tool.definition.text(), change)?.unwrap_or_else(|| tool.definition.text().to_owned());
    if !redactions.is_empty() {
        text = redact::redact(&text, redactions)?;
    }
    let name = serde_json::Value::from(tool.exposed.as_str()).to_string();
    edit::set(&text, "/name", &name)
        .and_then(edit::raw)
        .map(Some)
        .map_err(|error| redact::ChangeError { pointer: "/name".to_owned(), reason: error.to_string() })
}

/// Cuts a page. The cursor names the last entry that was given, so that a listing that changed in
/// between is noticed instead of skipping or repeating entries.
fn page(shown: &[Box<RawValue>], cursor: Option<&str>) -> Result<ToolPage, ErrorObject> {
    let start = match cursor {
        None => 0,
        Some(cursor) => resume(shown, cursor).ok_or_else(|| {
            reply::invalid_params(
                "this cursor is no longer valid: the list changed. Start again without one.",
            )
        })?,
    };
    let tools: Vec<Box<RawValue>> = shown.iter().skip(start).take(PAGE).cloned().collect();
    let end = start + tools.len();
    let next_cursor = match tools.last() {
        Some(last) if end < shown.len() => Some(format!("{end}.{}", mark(last))),
        _ => None,
    };
    Ok(ToolPage { tools, next_cursor })
}

fn resume(shown: &[Box<RawValue>], cursor: &str) -> Option<usize> {
    let (end, given) = cursor.split_once('.')?;
    let end: usize = end.parse().ok()?;
    let last = shown.get(end.checked_sub(1)?)?;
    (mark(last) == given).then_some(end)
}

fn mark(definition: &RawValue) -> String {
    let digest = Digest::of(definition.get().as_bytes()).to_string();
    digest.trim_start_matches("sha256:").chars().take(16).collect()
}
