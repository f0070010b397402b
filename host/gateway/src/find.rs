//! From the name a client uses to the definition, the server and the connection behind it.
//!
//! A name reaches its tool through the map, never by taking it apart (FT-22). What a caller may not
//! see, what is somebody else's server's and what does not exist are one and the same to the caller
//! (SCP-002).

use std::collections::BTreeSet;
use std::sync::Arc;

use toolgate_config::Server;
use toolgate_signing::DefinitionKind;

use crate::Gateway;
use crate::apps::{self, OwnNamed};
use crate::caller::Caller;
use crate::connect::OpenError;
use crate::facts;
use crate::links::Live;
use crate::surface::{Item, Surface};
use crate::uris;

/// Which definition is meant.
#[derive(Debug, Clone)]
pub enum Target {
    /// By the name or URI a client sees.
    Exposed(String),
    /// By server and original name, as the CLI does.
    Original {
        /// The server.
        server: String,
        /// The server's own name for it, or the URI.
        tool: String,
    },
}

/// A definition with the server and the surface it stands in.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) server: Arc<Server>,
    pub(crate) live: Arc<Live>,
    pub(crate) surface: Arc<Surface>,
    pub(crate) item: Arc<Item>,
    /// The name or URI at hand: the definition's, or one that a template expands to.
    pub(crate) subject: String,
    /// Whether the definition stands in the server's surface, where it can change.
    pub(crate) listed: bool,
}

/// Why something was not found.
pub(crate) enum FindError {
    /// For this caller there is none of this name.
    Unknown(String),
    /// Two servers have it, and nothing says which is meant.
    Ambiguous {
        /// The URI.
        uri: String,
        /// The URI by which each server is meant.
        instead: Vec<String>,
    },
    /// Views of several servers can mean a tool by this name.
    AmbiguousApp {
        /// The server's own name for it.
        name: String,
        /// The servers.
        servers: Vec<String>,
    },
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

impl Gateway {
    /// Finds a definition by either name. Everything that this caller cannot reach is unknown.
    pub(crate) async fn find(
        self: &Arc<Self>,
        caller: &Caller,
        kind: DefinitionKind,
        target: &Target,
    ) -> Result<Handle, FindError> {
        match target {
            Target::Original { server, tool } => {
                let selector = format!("{server}.{tool}");
                let servers = self.servers_of(caller);
                let Some(server) = servers.iter().find(|candidate| candidate.name == *server) else {
                    return Err(FindError::Unknown(selector));
                };
                self.on_live(caller, server, &selector, |surface| by_name(surface, kind, tool)).await
            }
            Target::Exposed(name) => self.find_exposed(caller, kind, name).await,
        }
    }

    async fn find_exposed(
        self: &Arc<Self>,
        caller: &Caller,
        kind: DefinitionKind,
        name: &str,
    ) -> Result<Handle, FindError> {
        let look = |surface: &Surface| {
            let found = surface.shown_as(kind, name, caller.plain_names);
            let found = found.filter(|item| apps::is_for(caller, item)).map(Arc::clone);
            found.map(|item| (item.name.clone(), item, true))
        };
        let mut unknown = Vec::new();
        // First what is known without waiting: live surfaces, then approved ones. Servers none of whose
        // definitions can have the name are not looked at, so that one call does not pay for all.
        let servers = if caller.plain_names {
            self.servers_of(caller)
        } else {
            self.servers_that_may_show(caller, name)
        };
        for server in servers {
            match self.known_surface(caller, &server) {
                Some(surface) if look(&surface).is_some() => {
                    return self.on_live(caller, &server, name, look).await;
                }
                Some(_) => {}
                None => unknown.push(server),
            }
        }
        let mut unreachable = None;
        for server in unknown {
            match self.on_live(caller, &server, name, look).await {
                Err(FindError::Unknown(_)) => {}
                // It never came up, so nobody knows whether it has the name; one that is named by it is told.
                Err(error @ FindError::Open { .. }) => {
                    let is_meant = self.leads_to(caller, &server, name);
                    unreachable = unreachable.or_else(|| is_meant.then_some(error));
                }
                found => return found,
            }
        }
        if let Some(unreachable) = unreachable {
            return Err(unreachable);
        }
        if kind == DefinitionKind::Tool && apps::has_own_names(caller) {
            return self.find_for_view(caller, name).await;
        }
        Err(FindError::Unknown(name.to_owned()))
    }

    /// Whether a name is one of this server's, whatever it has: its prefix stands before it, or the caller
    /// sees no other server. Only servers that the caller has come here.
    fn leads_to(&self, caller: &Caller, server: &Server, name: &str) -> bool {
        let alone = caller.plain_names && caller.server_only.as_deref() == Some(server.name.as_str());
        alone || self.prefixes.get(&server.name).is_some_and(|prefix| name.starts_with(prefix))
    }

    /// Finds the tool that the view of an app means by its server's own name for it.
    async fn find_for_view(self: &Arc<Self>, caller: &Caller, name: &str) -> Result<Handle, FindError> {
        let surfaces = self.surfaces(caller).await;
        match apps::own_named(&surfaces, name) {
            OwnNamed::Nobody => Err(FindError::Unknown(name.to_owned())),
            OwnNamed::One(server) => {
                let look = |surface: &Surface| {
                    by_name(surface, DefinitionKind::Tool, name).filter(|(_, item, _)| item.audience.app)
                };
                self.on_live(caller, server, name, look).await
            }
            OwnNamed::Several(servers) => Err(FindError::AmbiguousApp {
                name: name.to_owned(),
                servers: servers.into_iter().map(str::to_owned).collect(),
            }),
        }
    }

    /// Finds what a URI names: the one server that lists it, else the one with a template that expands
    /// to it, else the only server with resources at all. A URI in the form that tells servers apart
    /// names its server itself.
    pub(crate) async fn find_resource(
        self: &Arc<Self>,
        caller: &Caller,
        target: &Target,
    ) -> Result<Handle, FindError> {
        let servers = self.servers_of(caller);
        let named = |name: &str| servers.iter().find(|server| server.name == name);
        let uri = match target {
            Target::Original { server, tool: uri } => {
                let Some(server) = named(server) else {
                    return Err(FindError::Unknown(uri.clone()));
                };
                return self.on_live(caller, server, uri, |surface| Some(resource(surface, uri))).await;
            }
            Target::Exposed(uri) => uri,
        };
        if let Some((server, original)) = uris::original(uri)
            && let Some(server) = named(server)
        {
            return self.on_live(caller, server, uri, |surface| Some(resource(surface, &original))).await;
        }
        let mut surfaces = self.known_surfaces(caller);
        if surfaces.len() < servers.len() {
            // A server that hangs must not keep what others have.
            surfaces = self.surfaces(caller).await;
        }
        let surfaces: Vec<_> =
            surfaces.iter().map(|(server, surface)| (server, Arc::clone(surface))).collect();
        let server = owner_of(&surfaces, uri)?;
        self.on_live(caller, server, uri, |surface| Some(resource(surface, uri))).await
    }

    /// The server that a name leads to and that the persona has, but its session did not declare (APR-013).
    /// Only what the persona has besides is told of: a declaration does not show what else there is.
    pub(crate) fn undeclared(&self, caller: &Caller, name: &str) -> Option<String> {
        caller.declared.as_ref()?;
        let whole = Caller { declared: None, ..caller.clone() };
        let named = |server: &Server| {
            let exposed = self.prefixes.get(&server.name).is_some_and(|prefix| name.starts_with(prefix));
            exposed || name.strip_prefix(&server.name).is_some_and(|rest| rest.starts_with('.'))
        };
        self.servers_of(&whole)
            .into_iter()
            .find(|server| named(server) && !self.binding(caller, &server.name).holds())
            .map(|server| server.name.clone())
    }

    /// What is known of a server's surface without waiting.
    pub(crate) fn known_surface(&self, caller: &Caller, server: &Server) -> Option<Arc<Surface>> {
        let live = self.live_now(caller, server).map(|live| live.surface.load_full());
        live.or_else(|| self.approved_surface(server))
    }

    /// The definition as its server shows it now: a call is never judged by an old one.
    async fn on_live(
        self: &Arc<Self>,
        caller: &Caller,
        server: &Arc<Server>,
        name: &str,
        look: impl Fn(&Surface) -> Option<Found>,
    ) -> Result<Handle, FindError> {
        let live = self.live(caller, server).await.map_err(|error| FindError::Open {
            server: server.name.clone(),
            name: name.to_owned(),
            error,
        })?;
        let surface = live.surface.load_full();
        match look(&surface).filter(|(_, item, _)| offers(server, item)) {
            Some((subject, item, listed)) => {
                Ok(Handle { server: Arc::clone(server), live, surface, item, subject, listed })
            }
            None => Err(FindError::Unknown(name.to_owned())),
        }
    }
}

/// The name or URI at hand, its definition, and whether that stands in the surface.
type Found = (String, Arc<Item>, bool);

fn by_name(surface: &Surface, kind: DefinitionKind, name: &str) -> Option<Found> {
    surface.item(kind, name).map(|item| (name.to_owned(), Arc::clone(item), true))
}

/// What stands behind a URI of a server: a listed resource, a template, or nothing that is listed.
pub(crate) fn resource(surface: &Surface, uri: &str) -> Found {
    let template = || surface.of(DefinitionKind::Template).find(|item| uris::matches(&item.name, uri));
    let (item, listed) = match listed(surface, uri).or_else(template) {
        Some(item) => (Arc::clone(item), true),
        None => (Arc::new(Item::unlisted(uri)), false),
    };
    (uri.to_owned(), item, listed)
}

/// A resource of that URI, or a template of that text, as a completion names it.
fn listed<'a>(surface: &'a Surface, uri: &str) -> Option<&'a Arc<Item>> {
    let kinds = [DefinitionKind::Resource, DefinitionKind::Template];
    kinds.into_iter().find_map(|kind| surface.item(kind, uri))
}

/// Which of these servers a URI belongs to.
fn owner_of<'a>(
    surfaces: &[(&'a Arc<Server>, Arc<Surface>)],
    uri: &str,
) -> Result<&'a Arc<Server>, FindError> {
    let lists = |surface: &Surface| surface.claims(uri);
    let expands =
        |surface: &Surface| surface.of(DefinitionKind::Template).any(|item| uris::matches(&item.name, uri));
    let has_any = |surface: &Surface| {
        let kinds = [DefinitionKind::Resource, DefinitionKind::Template];
        surface.has_views() || surface.items().iter().any(|item| kinds.contains(&item.kind))
    };
    let tests: [&dyn Fn(&Surface) -> bool; 3] = [&lists, &expands, &has_any];
    for test in tests {
        let mut owners = surfaces.iter().filter(|(_, surface)| test(surface)).map(|(server, _)| *server);
        match (owners.next(), owners.next()) {
            (Some(only), None) => return Ok(only),
            (Some(first), Some(second)) => {
                let all: BTreeSet<&str> =
                    [first, second].into_iter().chain(owners).map(|server| server.name.as_str()).collect();
                return Err(FindError::Ambiguous {
                    uri: uri.to_owned(),
                    instead: all.into_iter().map(|server| uris::rewrite(server, uri)).collect(),
                });
            }
            (None, _) => {}
        }
    }
    Err(FindError::Unknown(uri.to_owned()))
}

/// The exact-name filters of the entry: deny wins, and an empty allow list allows all (TRU-010). They
/// are about tools.
pub(crate) fn offers(server: &Server, item: &Item) -> bool {
    let filter = &server.tools;
    let named = |list: &[String]| facts::names_tool(list, item);
    item.kind != DefinitionKind::Tool
        || !named(&filter.deny) && (filter.allow.is_empty() || named(&filter.allow))
}
