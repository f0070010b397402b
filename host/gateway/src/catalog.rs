//! What a caller can see and by which name: the merged listings of all its servers.
//!
//! One engine lists tools, prompts, resources and templates. Every entry is decided by the hook list;
//! what an adapter or a policy changes is shown changed. A server that is still starting is answered
//! for from its approved surface; one that was never seen is waited for a little, once; `list_changed` follows.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tokio::task::JoinSet;
use toolgate_config::Server;
use toolgate_plugins::{Change, Facts, Hook, Moment};
use toolgate_signing::{DefinitionKind, Digest};
use toolgate_wire::{ErrorObject, ListKind, edit};

use crate::Gateway;
use crate::apps;
use crate::caller::Caller;
use crate::decide::{self, Ruling, Verdict};
use crate::find::offers;
use crate::links::Key;
use crate::pin::Approved;
use crate::reply;
use crate::surface::{self, Item, Raw, Surface};
use crate::uris::{self, Claims};
use crate::{facts, redact};

/// Entries of one page of a listing.
pub const PAGE: usize = 1_000;
/// How long a listing waits for servers of which nothing is approved yet, where it would be empty without
/// them.
const FIRST_LISTING: Duration = Duration::from_secs(20);
/// The same beside servers that are known: what is slow does not delay what is there.
const BESIDE_OTHERS: Duration = Duration::from_secs(2);

/// One page of a listing.
#[derive(Debug)]
pub struct Page {
    /// Definitions as the client sees them.
    pub items: Vec<Box<RawValue>>,
    /// Pass it back for the next page; `None` at the end.
    pub next_cursor: Option<String>,
}

impl Gateway {
    /// One page of what this caller may see of a kind. `cursor` is one that an earlier page gave.
    pub async fn list(
        self: &Arc<Self>,
        caller: &Caller,
        kind: ListKind,
        cursor: Option<&str>,
    ) -> Result<Page, ErrorObject> {
        let surfaces = self.surfaces(caller).await;
        let names = Names { claims: claims_among(&surfaces), own: apps::own_names(caller, &surfaces) };
        let mut shown = Vec::new();
        for (server, surface) in &surfaces {
            shown.extend(self.visible(caller, server, surface, kind, &names));
        }
        page(&shown, cursor)
    }

    /// The surfaces of all servers that exist for this caller, in the order of the configuration.
    pub(crate) async fn surfaces(self: &Arc<Self>, caller: &Caller) -> Vec<(Arc<Server>, Arc<Surface>)> {
        let servers = self.servers_of(caller);
        let mut found: Vec<_> = servers.iter().map(|server| self.surface_at_once(caller, server)).collect();
        if found.iter().any(Option::is_none) {
            self.await_unknown(caller, &servers, &mut found).await;
        }
        servers.into_iter().zip(found).filter_map(|(server, surface)| Some((server, surface?))).collect()
    }

    /// Waits a little for servers of which nothing is known, all at once. Whatever comes later is told of
    /// as a change.
    async fn await_unknown(
        self: &Arc<Self>,
        caller: &Caller,
        servers: &[Arc<Server>],
        found: &mut [Option<Arc<Surface>>],
    ) {
        let began = Instant::now();
        let mut opening = JoinSet::new();
        let mut awaited = BTreeMap::new();
        for (index, server) in servers.iter().enumerate() {
            if found.get(index).is_some_and(Option::is_some) {
                continue;
            }
            awaited.insert(index, self.awaited(caller, server));
            let (gateway, caller, server) = (Arc::clone(self), caller.clone(), Arc::clone(server));
            opening.spawn(async move { (index, gateway.live(&caller, &server).await) });
        }
        loop {
            let anything = found.iter().any(Option::is_some);
            let limit = if anything { BESIDE_OTHERS } else { FIRST_LISTING };
            let Some(left) = awaited.values().map(|before| limit.saturating_sub(*before)).max() else {
                break;
            };
            let until = tokio::time::Instant::from_std(began + left);
            match tokio::time::timeout_at(until, opening.join_next()).await {
                Ok(Some(Ok((index, opened)))) => {
                    awaited.remove(&index);
                    let name = servers.get(index).map_or("", |server| server.name.as_str());
                    match (opened, found.get_mut(index)) {
                        (Ok(live), Some(place)) => *place = Some(live.surface.load_full()),
                        (Err(error), _) => {
                            tracing::warn!(server = name, %error, "nothing of it is listed");
                        }
                        (Ok(_), None) => {}
                    }
                }
                // A task that panicked has said so.
                Ok(Some(Err(_))) => {}
                Ok(None) | Err(_) => break,
            }
        }
        for server in awaited.keys().filter_map(|index| servers.get(*index)) {
            tracing::warn!(server = %server.name, "still starting; what it offers follows when it is ready");
        }
        // They go on: whoever comes next finds them further.
        opening.detach_all();
    }

    /// How long this caller's place at a server is waited for already.
    pub(crate) fn awaited(&self, caller: &Caller, server: &Server) -> Duration {
        let link = self.links.claim(&Key::of(server, caller), server);
        link.map_or(Duration::ZERO, |link| link.awaited())
    }

    /// What is known of these servers without waiting for any.
    pub(crate) fn known_surfaces(&self, caller: &Caller) -> Vec<(Arc<Server>, Arc<Surface>)> {
        let servers = self.servers_of(caller).into_iter();
        servers
            .filter_map(|server| Some((Arc::clone(&server), self.known_surface(caller, &server)?)))
            .collect()
    }

    /// The servers that exist for a caller: bound, enabled, and not narrowed away.
    pub(crate) fn servers_of(&self, caller: &Caller) -> Vec<Arc<Server>> {
        self.servers
            .values()
            .filter(|server| server.enabled && self.binding(caller, &server.name).holds())
            .map(Arc::clone)
            .collect()
    }

    /// Those of [`Self::servers_of`] whose tools and prompts can have a name like this one.
    pub(crate) fn servers_that_may_show(&self, caller: &Caller, name: &str) -> Vec<Arc<Server>> {
        self.servers
            .values()
            .filter(|server| self.prefixes.get(&server.name).is_none_or(|prefix| name.starts_with(prefix)))
            .filter(|server| server.enabled && self.binding(caller, &server.name).holds())
            .map(Arc::clone)
            .collect()
    }

    /// Live, else approved while it is opened; none where nothing is known of it.
    fn surface_at_once(self: &Arc<Self>, caller: &Caller, server: &Arc<Server>) -> Option<Arc<Surface>> {
        if let Some(live) = self.live_now(caller, server) {
            return Some(live.surface.load_full());
        }
        let surface = self.approved_surface(server)?;
        let (gateway, caller, server) = (Arc::clone(self), caller.clone(), Arc::clone(server));
        tokio::spawn(async move {
            // Its failure is in the status and the log; the approved surface stands meanwhile.
            let _ = gateway.live(&caller, &server).await;
        });
        Some(surface)
    }

    /// What the operator approved of a server, as a surface; none where nothing is approved.
    pub(crate) fn approved_surface(&self, server: &Server) -> Option<Arc<Surface>> {
        let approved = self.approved(server);
        let Approved::Definitions(pinned) = &approved else { return None };
        let raw: Vec<Raw> = pinned
            .iter()
            .filter_map(|pinned| {
                let kind = pinned.kind.parse::<DefinitionKind>().ok()?;
                Some((kind, RawValue::from_string(pinned.definition_json.clone()).ok()?))
            })
            .collect();
        let max_name = self.config.serve.max_tool_name;
        Some(Arc::new(Surface::build(server, max_name, &approved, &raw, Vec::new())))
    }

    /// The definitions of one kind of one server as this caller sees them.
    fn visible(
        &self,
        caller: &Caller,
        server: &Server,
        surface: &Surface,
        kind: ListKind,
        names: &Names<'_>,
    ) -> Vec<Box<RawValue>> {
        let exists =
            |item: &Item| offers(server, item) && (apps::is_for(caller, item) || names.are_own(server, item));
        let items: Vec<&Arc<Item>> =
            surface.of(surface::definition_kind(kind)).filter(|item| exists(item)).collect();
        let facts = self.list_facts(caller, server, surface, &items);
        for facts in facts.iter().filter(|_| self.recorder.is_on()) {
            if kind == ListKind::Tools {
                self.recorder.keep(server, Moment::Tools, facts);
            }
            self.recorder.keep(server, Moment::Policy(Hook::List), facts);
        }
        let verdicts = self.list_verdicts(caller, server, &facts);
        let adapted = self.adapted_definitions(server, kind, &facts);
        let mut shown = Vec::with_capacity(items.len());
        for ((item, verdict), change) in items.iter().zip(verdicts).zip(adapted) {
            if verdict.ruling == Ruling::Deny {
                tracing::debug!(server = %server.name, item = %item.name, reason = %verdict.reason, "hidden");
                continue;
            }
            let name = names.exposed(caller, server, item);
            match show(item, kind, &name, &change, &verdict.redactions) {
                Ok(Some(definition)) => shown.push(with_ui(definition, server, &names.claims)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(server = %server.name, item = %item.name, %error, "hidden: a plugin's change failed");
                }
            }
        }
        shown
    }

    /// What the hook list is told of these definitions.
    pub(crate) fn list_facts(
        &self,
        caller: &Caller,
        server: &Server,
        surface: &Surface,
        items: &[&Arc<Item>],
    ) -> Vec<Arc<Facts>> {
        items
            .iter()
            .map(|item| {
                let about = facts::About {
                    action: facts::list_action(item.kind),
                    subject: &item.name,
                    document: Some(item.definition.clone()),
                };
                facts::shared(facts::of_item(self, caller, server, surface, item, about))
            })
            .collect()
    }

    /// The verdict of the hook list on each.
    pub(crate) fn list_verdicts(
        &self,
        caller: &Caller,
        server: &Server,
        facts: &[Arc<Facts>],
    ) -> Vec<Verdict> {
        let binding = self.binding(caller, &server.name);
        let verdicts = decide::decide_list(&self.plugins().plugins, &binding, facts);
        self.note_monitored_list(facts, &verdicts);
        verdicts
    }

    /// One change for each definition; an adapter that fails hides all of its server's definitions.
    /// Adapters change tools.
    fn adapted_definitions(&self, server: &Server, kind: ListKind, facts: &[Arc<Facts>]) -> Vec<Change> {
        let hide = |reason: String| vec![Change::Fail(reason); facts.len()];
        match self.adapter_of(server) {
            Ok(Some(adapter)) if kind == ListKind::Tools => {
                adapter.tools(facts).unwrap_or_else(|fault| hide(fault.to_string()))
            }
            Ok(_) => vec![Change::Unchanged; facts.len()],
            Err(error) => hide(error.to_string()),
        }
    }
}

/// How a URI that a result of a server names is shown: as listings show it.
pub(crate) fn shown_uri(surfaces: &[(Arc<Server>, Arc<Surface>)], server: &str, uri: &str) -> Option<String> {
    let twice = surfaces.iter().filter(|(_, surface)| surface.claims(uri)).take(2).count() == 2;
    uris::rewritten_where(twice, server, uri)
}

/// The URIs that more than one of these servers lists.
pub(crate) fn claims_among(surfaces: &[(Arc<Server>, Arc<Surface>)]) -> Claims {
    if surfaces.len() < 2 {
        return Claims::default();
    }
    Claims::among(
        surfaces
            .iter()
            .flat_map(|(server, surface)| surface.claimed().map(|uri| (server.name.as_str(), uri))),
    )
}

/// What decides how definitions are called in one listing.
struct Names<'a> {
    claims: Claims,
    /// The tools that go by their own names: (server, name).
    own: HashSet<(&'a str, &'a str)>,
}

impl Names<'_> {
    fn are_own(&self, server: &Server, item: &Item) -> bool {
        item.kind == DefinitionKind::Tool && self.own.contains(&(server.name.as_str(), item.name.as_str()))
    }

    /// The name of a definition as this caller sees it.
    fn exposed(&self, caller: &Caller, server: &Server, item: &Item) -> String {
        match item.kind {
            DefinitionKind::Resource | DefinitionKind::Template => {
                self.claims.rewritten(&server.name, &item.name).unwrap_or_else(|| item.name.clone())
            }
            _ if self.are_own(server, item) => item.name.clone(),
            _ => item.shown_to(caller).to_owned(),
        }
    }
}

/// A definition as shown: the adapter's change, then the policies' redactions, then the name.
fn show(
    item: &Item,
    kind: ListKind,
    exposed: &str,
    change: &Change,
    redactions: &[toolgate_plugins::Redaction],
) -> Result<Option<Box<RawValue>>, redact::ChangeError> {
    if matches!(change, Change::Fail(_)) {
        return Ok(None);
    }
    let mut text =
        redact::changed(item.definition.text(), change)?.unwrap_or_else(|| item.definition.text().to_owned());
    if !redactions.is_empty() {
        text = redact::redact(&text, redactions)?;
    }
    edit::set(&text, kind.key(), &edit::quote(exposed))
        .and_then(edit::raw)
        .map(Some)
        .map_err(|error| redact::ChangeError { pointer: kind.key().to_owned(), reason: error.to_string() })
}

/// The view that a tool names (`ui://`) is a resource of its server, and goes by the URI that the
/// resource is shown by.
fn with_ui(definition: Box<RawValue>, server: &Server, claims: &Claims) -> Box<RawValue> {
    if claims.none() {
        return definition;
    }
    let mut text = definition.get().to_owned();
    for pointer in apps::VIEW_OF_TOOL {
        let uri = edit::get(definition.get(), pointer).and_then(edit::string);
        let rewritten = uri.and_then(|uri| claims.rewritten(&server.name, &uri));
        if let Some(uri) = rewritten
            && let Ok(edited) = edit::set(&text, pointer, &edit::quote(&uri))
        {
            text = edited;
        }
    }
    edit::raw(text).unwrap_or(definition)
}

/// Cuts a page. The cursor names the last entry that was given, so that a listing that changed in
/// between is noticed instead of skipping or repeating entries.
fn page(shown: &[Box<RawValue>], cursor: Option<&str>) -> Result<Page, ErrorObject> {
    let start = match cursor {
        None => 0,
        Some(cursor) => resume(shown, cursor).ok_or_else(|| {
            reply::invalid_params(
                "this cursor is no longer valid: the list changed. Start again without one.",
            )
        })?,
    };
    let items: Vec<Box<RawValue>> = shown.iter().skip(start).take(PAGE).cloned().collect();
    let end = start + items.len();
    let next_cursor = match items.last() {
        Some(last) if end < shown.len() => Some(format!("{end}.{}", mark(last))),
        _ => None,
    };
    Ok(Page { items, next_cursor })
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
