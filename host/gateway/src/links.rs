//! Connections to servers, one for each caller that must not share one.
//!
//! Keyed by (server, persona, credential), with the session added for `instance: session` and only
//! the server left for `instance: shared` (design.md 3.2). A live link is read without a lock; one
//! mutex a link serialises openings alone. Openings run in a task of their own, so that a client
//! that gives up does not leave a half-open server behind.
//!
//! Bounds: the pauses between openings grow, and after too many within a minute the server is
//! `failed` until somebody asks for it (GW-03); the numbers are those of [`BackoffRules`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::mpsc;
use toolgate_config::{Instance, Server};
use toolgate_upstream::{Backoff, BackoffRules, ConnectError, Connection, Event, Next, Permit, State};

use crate::Gateway;
use crate::caller::Caller;
use crate::decide::{self, Ruling, Verdict};
use crate::pin::{self, Approved};
use crate::reply::ErrorCode;
use crate::surface::Surface;
use crate::{facts, spec};

/// How many events of a connection may wait; they are wake-ups, so a full queue loses nothing.
const EVENT_QUEUE: usize = 64;

/// Least time between two listings of one connection.
const RELIST_PAUSE: Duration = Duration::from_secs(1);
/// Connections of one server at a time. A claimed thread id opens a session, and must not open
/// processes without end.
const MAX_LINKS: usize = 256;

/// Whose connection it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) server: String,
    persona: Option<String>,
    credential: Option<String>,
    session: Option<String>,
}

impl Key {
    pub(crate) fn of(server: &Server, caller: &Caller) -> Self {
        let own = server.instance != Instance::Shared;
        Self {
            server: server.name.clone(),
            persona: own.then(|| caller.persona.clone()),
            credential: own.then(|| caller.credential.clone()),
            session: (server.instance == Instance::Session).then(|| caller.session.clone()),
        }
    }
}

/// A connection that is open, with what the server showed on it.
pub(crate) struct Live {
    pub(crate) connection: Connection,
    pub(crate) surface: ArcSwap<Surface>,
}

/// One connection's place, whether or not it is open.
pub(crate) struct Link {
    live: ArcSwapOption<Live>,
    opening: tokio::sync::Mutex<()>,
    health: Mutex<Health>,
}

/// What is known of a link beside the connection itself.
struct Health {
    backoff: Backoff,
    next: Option<Standing>,
    last_error: Option<String>,
}

/// When a failed link is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Not before this.
    Due(Instant),
    /// Not by itself.
    GivenUp,
}

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

impl Link {
    fn new() -> Self {
        Self {
            live: ArcSwapOption::empty(),
            opening: tokio::sync::Mutex::new(()),
            health: Mutex::new(Health {
                backoff: Backoff::new(BackoffRules::default()),
                next: None,
                last_error: None,
            }),
        }
    }

    /// The open connection, if it is open now.
    pub(crate) fn live(&self) -> Option<Arc<Live>> {
        self.live.load_full().filter(|live| live.connection.state() == State::Connected)
    }

    /// The last error and when it is tried again.
    pub(crate) fn standing(&self) -> (Option<String>, Option<Standing>) {
        self.with_health(|health| (health.last_error.clone(), health.next))
    }

    fn with_health<T>(&self, change: impl FnOnce(&mut Health) -> T) -> T {
        change(&mut self.health.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Health {
    /// Notes a start, unless one is not due; the reason when not.
    fn start(&mut self, now: Instant) -> Result<(), String> {
        let last = self.last_error.as_deref().unwrap_or("it ended");
        match self.next {
            Some(Standing::GivenUp) => Err(format!(
                "{last}; it failed too often and is not started again by itself. \
                 Mend it, then restart Toolgate"
            )),
            Some(Standing::Due(due)) if due > now => {
                Err(format!("{last}; it is tried again in {} s", due.duration_since(now).as_secs() + 1))
            }
            _ => {
                self.backoff.started(now);
                Ok(())
            }
        }
    }

    fn failed(&mut self, now: Instant, error: String, jitter: f64) {
        self.last_error = Some(error);
        self.next = Some(match self.backoff.failed(now, jitter) {
            Next::After(pause) => Standing::Due(now + pause),
            Next::GiveUp => Standing::GivenUp,
        });
    }

    fn succeeded(&mut self) {
        self.next = None;
        self.last_error = None;
    }
}

/// All links of a gateway.
#[derive(Default)]
pub(crate) struct Links {
    links: Mutex<HashMap<Key, Arc<Link>>>,
}

impl Links {
    pub(crate) fn get(&self, key: &Key) -> Arc<Link> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(links.entry(key.clone()).or_insert_with(|| Arc::new(Link::new())))
    }

    /// Every link of a server, whoever's it is.
    pub(crate) fn of_server(&self, server: &str) -> Vec<Arc<Link>> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.iter().filter(|(key, _)| key.server == server).map(|(_, link)| Arc::clone(link)).collect()
    }

    /// Closes everything; the links are gone afterwards.
    pub(crate) async fn close_all(&self) {
        let links: Vec<Arc<Link>> = {
            let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            links.drain().map(|(_, link)| link).collect()
        };
        let open = links.iter().filter_map(|link| link.live.swap(None));
        let closing: Vec<_> =
            open.map(|live| tokio::spawn(async move { live.connection.close().await })).collect();
        for task in closing {
            // A connection whose closing panicked is gone as well.
            let _ = task.await;
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
        let link = self.links.get(&Key::of(server, caller));
        if let Some(live) = link.live() {
            return Ok(live);
        }
        if self.links.of_server(&server.name).len() > MAX_LINKS {
            return Err(OpenError::Unusable(format!(
                "server '{}' has {MAX_LINKS} connections, the most that one server may have",
                server.name
            )));
        }
        let (gateway, caller, server) = (Arc::clone(self), caller.clone(), Arc::clone(server));
        let opening = tokio::spawn(async move { gateway.open(&link, &caller, &server).await });
        opening.await.unwrap_or_else(|error| {
            Err(OpenError::Unusable(format!("opening the connection failed inside Toolgate: {error}")))
        })
    }

    async fn open(
        self: &Arc<Self>,
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
        let spec = spec::of(server, &self.config.data_dir, &self.child_program)
            .map_err(|reason| OpenError::Unusable(format!("server '{}': {reason}", server.name)))?;
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
            self.note_failure(link, server, told.clone());
            OpenError::Failed { code, told }
        })?;
        self.remember_era(server, opened.era());
        let surface = self.first_listing(server, &opened).await.map_err(|reason| {
            self.note_failure(link, server, reason.clone());
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
        tokio::spawn(follow(Arc::downgrade(self), Arc::clone(server), Arc::clone(&live), received));
        // Clients were answered from the approved surface; they are told only if this one differs.
        if before.is_none_or(|before| !before.shows_the_same(&live.surface.load())) {
            self.tools_changed();
        }
        Ok(live)
    }

    /// The connect decision; nothing is opened without its permit (FR-01).
    fn permit(&self, caller: &Caller, server: &Server) -> Result<Permit, OpenError> {
        let verdict = self.decide_connect(caller, server);
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
        decide::decide(&self.plugins, &binding, toolgate_plugins::Hook::Connect, &facts)
    }

    /// Lists the tools, compares them with what is approved and pins them where first use may.
    async fn first_listing(&self, server: &Server, connection: &Connection) -> Result<Surface, String> {
        let approved = self.approved(server);
        let surface = self.listing(server, connection, &approved).await?;
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

    pub(crate) async fn listing(
        &self,
        server: &Server,
        connection: &Connection,
        approved: &Approved,
    ) -> Result<Surface, String> {
        let listed = connection.list_tools().await.map_err(|error| error.to_string())?;
        for warning in &listed.warnings {
            tracing::warn!(server = %server.name, "{warning}");
        }
        let max_name = self.config.serve.max_tool_name;
        Ok(Surface::build(server, max_name, approved, &listed.tools, listed.dropped))
    }

    fn note_failure(&self, link: &Link, server: &Server, error: String) {
        tracing::warn!(server = %server.name, %error, "cannot connect");
        self.note_connect_failed(server, &error);
        link.with_health(|health| health.failed(Instant::now(), error, jitter()));
    }
}

/// Between 0 and 1, so that servers that fell together do not come back together.
fn jitter() -> f64 {
    let digits = toolgate_base::random_hex(2);
    f64::from(u16::from_str_radix(&digits, 16).unwrap_or(0)) / f64::from(u16::MAX)
}

/// Follows one connection until it ends: lists again when the server says so, and tells clients.
async fn follow(
    gateway: std::sync::Weak<Gateway>,
    server: Arc<Server>,
    live: Arc<Live>,
    mut events: mpsc::Receiver<Event>,
) {
    let mut listed = Instant::now();
    while let Some(event) = events.recv().await {
        let Some(gateway) = gateway.upgrade() else { return };
        match event {
            Event::ToolsChanged => {
                // A server that changes without end costs one listing and one row in this time.
                tokio::time::sleep(RELIST_PAUSE.saturating_sub(listed.elapsed())).await;
                listed = Instant::now();
                gateway.note_list_changed(&server);
                let approved = gateway.approved(&server);
                match gateway.listing(&server, &live.connection, &approved).await {
                    Ok(surface) if surface.shows_the_same(&live.surface.load()) => {}
                    Ok(surface) => {
                        gateway.note_mismatches(&server, &surface);
                        live.surface.store(Arc::new(surface));
                        gateway.tools_changed();
                    }
                    // A connection that ended, perhaps at our own wish, says so itself.
                    Err(_) if live.connection.state() != State::Connected => {}
                    Err(error) => tracing::warn!(server = %server.name, %error, "cannot list again"),
                }
            }
            Event::Closed { reason } => {
                tracing::info!(server = %server.name, %reason, "connection ended");
                for link in gateway.links.of_server(&server.name) {
                    let ended = link.live.load_full().is_some_and(|now| Arc::ptr_eq(&now, &live));
                    if ended {
                        link.live.store(None);
                        link.with_health(|health| health.last_error = Some(reason.clone()));
                    }
                }
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gw_03_a_server_that_keeps_failing_is_given_up_and_says_why() {
        let mut health = Link::new().health.into_inner().unwrap();
        let mut now = Instant::now();
        let mut starts = 0;
        for _ in 0..600 {
            if health.start(now).is_ok() {
                starts += 1;
                health.failed(now, "exit status 1".into(), 0.0);
            }
            now += std::time::Duration::from_millis(100);
        }
        assert!((3..=6).contains(&starts), "{starts} starts in 60 s");
        assert!(health.start(now).is_err_and(|reason| reason.contains("exit status 1")));
    }
}
