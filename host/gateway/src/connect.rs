//! Opening a connection: the connect decision, the backoff, the first listing and its pins.
//!
//! Openings run in a task of their own, so that a client that gives up does not leave a half-open
//! server behind. Nothing is opened without a [`Permit`] from the one decision point.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_config::Server;
use toolgate_plugins::Hook;
use toolgate_signing::DefinitionKind;
use toolgate_upstream::{ConnectError, Connection, Permit};
use toolgate_wire::{ListKind, edit};

use crate::Gateway;
use crate::caller::Caller;
use crate::decide::{self, Ruling, Verdict};
use crate::links::{Health, Key, Link, Live};
use crate::pin::{self, Approved};
use crate::reply::ErrorCode;
use crate::supervise::follow;
use crate::surface::{self, Raw, Surface};
use crate::{facts, spec};

/// How long the listings of everything but tools may take together with the tools'.
const OTHER_LISTINGS: Duration = Duration::from_secs(20);
/// How many events of a connection may wait; they are wake-ups, so a full queue loses nothing.
const EVENT_QUEUE: usize = 64;

/// Why there is no connection.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    /// The persona is not bound, or a policy refuses the connection.
    #[error("{0}")]
    Denied(String),
    /// The configuration makes it impossible.
    #[error("{0}")]
    Unusable(String),
    /// The last attempts failed and the next one is not due.
    #[error("server '{server}' is not available: {reason}")]
    Waiting {
        /// The server.
        server: String,
        /// The last error and when it is tried again.
        reason: String,
    },
    /// Nobody is there any more for whom to connect.
    #[error("server '{server}' was not connected: its client or Toolgate is ending")]
    Ending {
        /// The server.
        server: String,
    },
    /// This attempt failed.
    #[error("{told}")]
    Failed {
        /// What it means for a caller.
        code: ErrorCode,
        /// What happened.
        told: String,
    },
    /// It connected and its listing failed.
    #[error("server '{server}' connected, but listing its tools failed: {reason}")]
    Listing {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
}

impl OpenError {
    /// The code for a client: whether somebody said no, a sign-in is missing or something is broken.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Denied(_) => ErrorCode::Denied,
            Self::Failed { code, .. } => *code,
            _ => ErrorCode::ServerUnavailable,
        }
    }
}

impl Gateway {
    /// The caller's live connection to a server, opened if need be.
    pub(crate) async fn live(
        self: &Arc<Self>,
        caller: &Caller,
        server: &Arc<Server>,
    ) -> Result<Arc<Live>, OpenError> {
        let key = Key::of(server, caller);
        let Some(link) = self.links.claim(&key, server) else {
            return Err(OpenError::Unusable(format!(
                "server '{}' has {} connections, the most that it may have (max_connections); \
                 end a session, or wait until an idle one ends",
                server.name, server.max_connections
            )));
        };
        if let Some(live) = link.live() {
            return Ok(live);
        }
        let (leaving, name) = (caller.leaving.clone(), server.name.clone());
        let (gateway, caller, server) = (Arc::clone(self), caller.clone(), Arc::clone(server));
        let opening = tokio::spawn(async move {
            tokio::select! {
                biased;
                () = gateway.ending.cancelled() => Err(OpenError::Ending { server: server.name.clone() }),
                opened = gateway.open(key, &link, &caller, &server) => opened,
            }
        });
        let opened = tokio::select! {
            biased;
            opened = opening => opened,
            // The opening goes on for whoever else needs the server.
            () = leaving.cancelled() => return Err(OpenError::Ending { server: name }),
        };
        opened.unwrap_or_else(|error| {
            Err(OpenError::Unusable(format!("opening the connection failed inside Toolgate: {error}")))
        })
    }

    /// The caller's connection to a server, if it is open now.
    pub(crate) fn live_now(&self, caller: &Caller, server: &Server) -> Option<Arc<Live>> {
        self.links.find(&Key::of(server, caller))?.live()
    }

    async fn open(
        self: &Arc<Self>,
        key: Key,
        link: &Arc<Link>,
        caller: &Caller,
        server: &Arc<Server>,
    ) -> Result<Arc<Live>, OpenError> {
        let _turn = link.opening.lock().await;
        if let Some(live) = link.live() {
            return Ok(live);
        }
        let permit = self.permit(caller, server)?;
        let before = self.approved_surface(server);
        let spec = spec::of(server, key.told, &self.config.data_dir, &self.child_program)
            .map_err(|reason| OpenError::Unusable(format!("server '{}': {reason}", server.name)))?;
        let _turn_to_start = self.starts.turn().await;
        link.with_health(|health| health.start(Instant::now()))
            .map_err(|reason| OpenError::Waiting { server: server.name.clone(), reason })?;
        let (events, received) = mpsc::channel(EVENT_QUEUE);
        let hint = self.era_of(server);
        let opened = Connection::open(&spec, permit, events, hint).await.map_err(|error| {
            let code = match &error {
                ConnectError::Authentication { .. } => ErrorCode::Authentication,
                _ => ErrorCode::ServerUnavailable,
            };
            let told = server.without_secrets(&error.to_string());
            self.note_failure(link, server, &told);
            self.come_back(&key, link, caller, server);
            OpenError::Failed { code, told }
        })?;
        self.remember_era(server, opened.era());
        let surface = Box::pin(self.first_listing(server, &opened)).await.map_err(|reason| {
            self.note_failure(link, server, &reason);
            self.come_back(&key, link, caller, server);
            OpenError::Listing { server: server.name.clone(), reason }
        });
        let surface = match surface {
            Ok(surface) => surface,
            Err(error) => {
                opened.close().await;
                return Err(error);
            }
        };
        link.with_health(Health::succeeded);
        self.note_connected(server, &opened, &surface);
        let live = Arc::new(Live { connection: opened, surface: ArcSwap::from_pointee(surface) });
        link.live.store(Some(Arc::clone(&live)));
        link.settled();
        self.mind(&key, server);
        let place = (key, Arc::clone(link));
        // Who comes back for it later must not be stopped by the one who went.
        let caller = Caller { leaving: CancellationToken::new(), ..caller.clone() };
        let gateway = Arc::downgrade(self);
        tokio::spawn(follow(gateway, Arc::clone(server), caller, place, Arc::clone(&live), received));
        // Clients were answered from the approved surface; they are told only if this one differs.
        self.tell_changes(before.as_deref(), &live.surface.load());
        Ok(live)
    }

    /// The connect decision; nothing is opened without its permit (FR-01).
    fn permit(&self, caller: &Caller, server: &Server) -> Result<Permit, OpenError> {
        let verdict = self.decide_connect(caller, server);
        self.note_monitored_server(&caller.persona, &server.name, Hook::Connect, &verdict);
        match verdict.ruling {
            Ruling::Allow => Ok(Permit::decided(&server.name)),
            // Nobody can be asked about a connection yet; it is refused, with the question as reason.
            Ruling::Ask | Ruling::Deny => Err(OpenError::Denied(format!(
                "Toolgate does not connect to server '{}': {}",
                server.name, verdict.reason
            ))),
        }
    }

    pub(crate) fn decide_connect(&self, caller: &Caller, server: &Server) -> Verdict {
        let facts = facts::shared(facts::of_server(self, caller, server));
        let binding = self.binding(caller, &server.name);
        decide::decide(&self.plugins().plugins, &binding, Hook::Connect, &facts)
    }

    /// Lists everything, compares it with what is approved and pins it where first use may.
    async fn first_listing(&self, server: &Server, connection: &Connection) -> Result<Surface, String> {
        let approved = self.approved(server);
        let surface = Box::pin(self.listing(server, connection, &approved)).await?;
        if !pin::pins_at_first_use(&approved) {
            return Ok(surface);
        }
        pin::accept(&self.store, server, connection.protocol_version(), &surface)
            .map_err(|error| format!("the first surface could not be pinned: {error}"))?;
        self.note_pinned(server, &surface);
        self.listing_again(server, &surface)
    }

    /// The same definitions, compared with the pins just made; nothing is asked twice.
    fn listing_again(&self, server: &Server, surface: &Surface) -> Result<Surface, String> {
        let approved = self.approved(server);
        if let Approved::Unreadable(reason) = &approved {
            return Err(format!("the pins just written cannot be read: {reason}"));
        }
        Ok(surface.compared_with(&approved))
    }

    /// Everything a server shows. A listing of tools that fails is a failure; of another kind, that
    /// kind is empty and the status says why.
    pub(crate) async fn listing(
        &self,
        server: &Server,
        connection: &Connection,
        approved: &Approved,
    ) -> Result<Surface, String> {
        let [tools, prompts, resources, templates] = ListKind::ALL.map(|kind| connection.list(kind));
        // A kind that never comes must not keep the tools away.
        let [prompts, resources, templates] =
            [prompts, resources, templates].map(|listing| tokio::time::timeout(OTHER_LISTINGS, listing));
        let (tools, prompts, resources, templates) = tokio::join!(tools, prompts, resources, templates);
        let mut listed = vec![tools.map_err(|error| error.to_string())?];
        let mut dropped = Vec::new();
        let others = ListKind::ALL.into_iter().skip(1).zip([prompts, resources, templates]);
        for (kind, listing) in others {
            match listing {
                Ok(Ok(listing)) => listed.push(listing),
                Ok(Err(error)) => dropped.push((kind.member().to_owned(), error.to_string())),
                Err(_) => {
                    let reason = format!("{} had no answer within {OTHER_LISTINGS:?}", kind.method());
                    dropped.push((kind.member().to_owned(), reason));
                }
            }
        }
        let mut definitions: Vec<Raw> = Vec::new();
        if let Some(text) = connection.instructions().filter(|text| !text.trim().is_empty()) {
            let text = edit::raw(edit::quote(text)).map_err(|error| error.to_string())?;
            definitions.push((DefinitionKind::Instructions, text));
        }
        for listing in listed {
            for warning in &listing.warnings {
                tracing::warn!(server = %server.name, "{warning}");
            }
            let kind = surface::definition_kind(listing.kind);
            definitions.extend(listing.items.into_iter().map(|item| (kind, item)));
            dropped.extend(listing.dropped);
        }
        let max_name = self.config.serve.max_tool_name;
        Ok(Surface::build(server, max_name, approved, &definitions, dropped))
    }

    fn note_failure(&self, link: &Link, server: &Server, error: &str) {
        let error = server.without_secrets(error);
        tracing::warn!(target: CONNECT_LOG, server = %server.name, %error, "cannot connect");
        self.note_connect_failed(server, &error);
        link.with_health(|health| health.failed(Instant::now(), error, jitter()));
        link.settled();
    }
}

/// The target of what the log says about connections that fail, for programs that say it themselves.
pub const CONNECT_LOG: &str = "toolgate::connect";

/// Between 0 and 1, so that servers that fell together do not come back together.
pub(crate) fn jitter() -> f64 {
    let digits = toolgate_base::random_hex(2);
    f64::from(u16::from_str_radix(&digits, 16).unwrap_or(0)) / f64::from(u16::MAX)
}
