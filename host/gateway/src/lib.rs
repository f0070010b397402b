//! The gateway: who may see and do what on which server, and the path of one call.
//!
//! Contract: everything that reaches a server or a client goes through [`decide`], the one decision
//! point; a call is judged by the definition its server shows now, is in the audit log before a byte
//! leaves, and is never sent twice. A caller sees only servers its persona is bound to.
//!
//! Bounds: one page of a listing has [`PAGE`] entries; a server that keeps failing is started ever
//! more rarely; everything a server sends is bounded by `toolgate-upstream`.
//!
//! Threat: servers lie about what their tools do and change what they said; clients claim to be
//! others; plugins fail. The first is met by pins and policies, the second by the credential that
//! fixes the persona, the third by failing closed.

mod abilities;
mod apps;
mod arguments;
mod ask;
pub mod assemble;
mod attend;
mod beside;
pub mod bundle;
mod call;
mod caller;
mod catalog;
mod client;
mod connect;
pub mod decide;
mod deeds;
mod explain;
mod facts;
mod find;
mod forward;
pub mod indexes;
pub mod install;
mod instructions;
mod links;
pub mod lock;
mod locked;
mod monitor;
mod notes;
mod offers;
mod pin;
pub mod ports;
mod question;
mod rate;
mod record;
mod redact;
pub mod reload;
mod reply;
mod rewrite;
pub mod server_log;
mod spec;
mod starts;
mod status;
mod subscriptions;
mod supervise;
mod surface;
mod tasks;
pub mod updates;
mod uris;
mod views;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use toolgate_config::{Config, Server};
use toolgate_plugins::Adapter;
use toolgate_store::Store;
use toolgate_wire::ListKind;
use toolgate_wire::envelope::Era;

pub use abilities::Abilities;
pub use apps::Audience;
pub use call::Call;
pub use caller::{Caller, DroppedReply, FalseClaim};
pub use catalog::{PAGE, Page};
pub use client::{AskError, Asker, Client};
pub use connect::{CONNECT_LOG, OpenError};
pub use explain::{Explanation, PolicyLine};
pub use find::Target;
pub use links::LastError;
pub use locked::{Locked, Shown};
pub use offers::Offers;
pub use pin::{Accepted, Approved, Drift, DriftKind};
pub use reply::{ErrorCode, ErrorDetails};
pub use status::{Blocked, ItemStatus, ServerState, ServerStatus};
pub use subscriptions::{MOST as MOST_SUBSCRIPTIONS, Subscriber, SubscriptionSummary, Told};
pub use surface::{Item, Surface};
pub use tasks::{SharedTasks, TaskCounts, TaskVerb, undeclared as tasks_undeclared};
pub use toolgate_config::Lane;
pub use toolgate_store::Deed;
pub use toolgate_upstream::{LogMessage, Logs, Progress};

use crate::assemble::Assembled;
use crate::decide::Binding;

/// How many changes a slow client may miss before it is told only that something changed.
const CHANGE_QUEUE: usize = 16;

/// The words for eras in the store.
const LEGACY: &str = "legacy";
const MODERN: &str = "modern";

/// Something a client may want to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// What callers see of a listing may have changed; resources and their templates are one.
    List(ListKind),
}

/// What a gateway is made of.
pub struct Parts {
    /// The merged configuration.
    pub config: Arc<Config>,
    /// Audit log, asks, pins, tokens.
    pub store: Arc<Store>,
    /// The policies and adapters in force.
    pub plugins: assemble::Assembled,
    /// The program that understands `__child`: this binary.
    pub child_program: PathBuf,
    /// What the gateways of this process know of tasks together.
    pub tasks: Arc<SharedTasks>,
}

/// A running gateway. Dropping it does not close connections in order; [`Gateway::shutdown`] does.
pub struct Gateway {
    config: Arc<Config>,
    servers: BTreeMap<String, Arc<Server>>,
    /// Digest of each server's identity as text, made once: every request's facts carry it.
    identities: BTreeMap<String, String>,
    /// How the exposed names of each server begin.
    prefixes: BTreeMap<String, String>,
    store: Arc<Store>,
    /// Replaced whole when plugins are installed, updated, removed or denied.
    plugins: ArcSwap<Assembled>,
    /// Set once, before anybody is served, where `--locked` holds it to a lock.
    locked: OnceLock<locked::Locked>,
    child_program: PathBuf,
    links: links::Links,
    starts: starts::Starts,
    subscriptions: subscriptions::Subscriptions,
    /// Fires when no connection is opened any more.
    ending: CancellationToken,
    watch: watch::Watch,
    rates: rate::Rates,
    seal: ask::seal::Seal,
    /// Calls that wait for the answers of their clients.
    parks: attend::Parks,
    tasks: tasks::Tasks,
    changes: broadcast::Sender<Change>,
    recorder: record::Recorder,
}

/// Why an adapter is not there; the server's calls fail until it is (design.md section 4, Faults).
#[derive(Debug, Clone, thiserror::Error)]
#[error("the adapter of server '{server}' is not in force, so its calls are refused: {reason}")]
pub struct AdapterMissing {
    server: String,
    reason: String,
}

impl Gateway {
    /// Puts the parts together. A server is connected when its first caller needs it.
    pub fn new(parts: Parts) -> Arc<Self> {
        let all = parts.config.servers.values();
        let identities = all.map(|server| (server.name.clone(), server.identity().to_string())).collect();
        let max_name = parts.config.serve.max_tool_name;
        let prefix = |name: &String| (name.clone(), toolgate_labels::exposed_prefix(name, max_name));
        let prefixes = parts.config.servers.keys().map(prefix).collect();
        let servers = parts
            .config
            .servers
            .iter()
            .map(|(name, server)| (name.clone(), Arc::new(server.clone())))
            .collect();
        let watch = watch::Watch::new(&parts.store);
        let gateway = Arc::new(Self {
            watch,
            rates: rate::Rates::default(),
            seal: ask::seal::Seal::new(),
            parks: attend::Parks::default(),
            tasks: tasks::Tasks::new(parts.tasks),
            servers,
            identities,
            prefixes,
            config: parts.config,
            store: parts.store,
            plugins: ArcSwap::from_pointee(parts.plugins),
            locked: OnceLock::new(),
            child_program: parts.child_program,
            links: links::Links::default(),
            starts: starts::Starts::default(),
            subscriptions: subscriptions::Subscriptions::default(),
            ending: CancellationToken::new(),
            changes: broadcast::channel(CHANGE_QUEUE).0,
            recorder: record::Recorder::default(),
        });
        // Without a runtime nothing can be called either.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(watch::follow(Arc::downgrade(&gateway)));
        }
        gateway
    }

    /// The configuration this gateway runs with.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Tells of every change of what callers see.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Opens no connection any more and gives up those that are being opened, however stuck their
    /// servers are; who waits for one is told so (HT-27). Calls on open connections go on.
    pub fn stop_opening(&self) {
        self.ending.cancel();
    }

    /// Waits until what happened so far is in the log.
    pub async fn flush_log(&self) {
        self.store.flush().await;
    }

    /// Closes every connection; children are stopped and sessions ended.
    pub async fn shutdown(&self) {
        self.stop_opening();
        self.settle_tasks().await;
        self.links.close_all().await;
        self.store.flush().await;
    }

    /// What is approved of a server now.
    fn approved(&self, server: &Server) -> Approved {
        match self.locked.get() {
            Some(locked) => locked.approved(server),
            None => Approved::of(&self.store, server, self.config.pins.first_use),
        }
    }

    fn identity_text(&self, server: &Server) -> String {
        self.identities.get(&server.name).cloned().unwrap_or_default()
    }

    /// Whether a server that is enabled exists for this persona in this lane.
    pub fn has_server(&self, persona: &str, lane: toolgate_config::Lane, server: &str) -> bool {
        let caller = Caller { lane, ..Caller::new(persona, "", "", toolgate_wire::envelope::Era::Modern) };
        let enabled = self.servers.get(server).is_some_and(|server| server.enabled);
        enabled && self.binding(&caller, server).holds()
    }

    fn binding(&self, caller: &Caller, server: &str) -> Binding {
        let persona = self.config.personas.get(&caller.persona);
        let bound = persona.map_or(&[][..], |persona| persona.servers_in(caller.lane));
        let declared = caller.declared.as_deref();
        let binding = Binding::of(bound, server, caller.server_only.as_deref(), declared);
        binding.with(self.watch.current(), self.config.permissions.of(server))
    }

    /// The plugins in force at this moment.
    fn plugins(&self) -> Arc<Assembled> {
        self.plugins.load_full()
    }

    /// A policy that is configured and not in force, with the reason: while there is one, nothing passes,
    /// and a gateway that starts refuses to.
    pub fn blocked(&self) -> Option<(String, String)> {
        let plugins = self.plugins();
        let first = plugins.plugins.blocked().iter().next();
        first.map(|blocked| (blocked.plugin.clone(), blocked.reason.clone()))
    }

    fn adapter_of(&self, server: &Server) -> Result<Option<Arc<Adapter>>, AdapterMissing> {
        if server.adapter.is_none() {
            return Ok(None);
        }
        if let Some(used) = &server.adapter
            && self.watch.current().frozen_plugins().contains(&used.plugin)
        {
            return Err(AdapterMissing {
                server: server.name.clone(),
                reason: format!("plugin {} is frozen by the operator", used.plugin),
            });
        }
        let plugins = self.plugins();
        plugins.plugins.adapter(&server.name).map(|adapter| Some(Arc::clone(adapter))).ok_or_else(|| {
            let reason = plugins.without_adapter.get(&server.name).cloned();
            AdapterMissing {
                server: server.name.clone(),
                reason: reason.unwrap_or_else(|| "it was never loaded, a fault of Toolgate".to_owned()),
            }
        })
    }

    /// The era a server turned out to speak; a probe is paid once. A wrong memory costs a probe.
    fn era_of(&self, server: &Server) -> Option<Era> {
        match self.store.era(&server.identity()).ok()?.as_deref() {
            Some(LEGACY) => Some(Era::Legacy),
            Some(MODERN) => Some(Era::Modern),
            _ => None,
        }
    }

    fn remember_era(&self, server: &Server, era: Era) {
        let word = match era {
            Era::Legacy => LEGACY,
            Era::Modern => MODERN,
        };
        if let Err(error) = self.store.remember_era(&server.identity(), word) {
            tracing::debug!(server = %server.name, %error, "the era is not remembered and is probed again");
        }
    }

    /// Tells clients which listings show something else than before.
    fn tell_changes(&self, before: Option<&Surface>, now: &Surface) {
        let differs =
            |kind| before.is_none_or(|before| !before.shows_the_same(now, surface::definition_kind(kind)));
        for kind in [ListKind::Tools, ListKind::Prompts] {
            if differs(kind) {
                self.tell(Change::List(kind));
            }
        }
        if differs(ListKind::Resources) || differs(ListKind::Templates) {
            self.tell(Change::List(ListKind::Resources));
        }
    }

    /// Everything may show something else: the pins changed.
    fn surface_changed(&self) {
        for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            self.tell(Change::List(kind));
        }
    }

    fn tell(&self, change: Change) {
        // Nobody listening is fine: whoever comes later lists anyway.
        let _ = self.changes.send(change);
    }
}
