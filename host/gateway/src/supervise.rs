//! Following open connections: listing again when a server says so, and closing what ended or idles.
//!
//! Bounds: a server that changes without end costs one listing and one audit row in [`RELIST_PAUSE`];
//! a connection of `instance: session` ends with its session, or after `serve.session_idle` without a
//! call, so that claimed thread ids leave no processes behind.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use toolgate_config::{Instance, Server};
use toolgate_upstream::{Event, State};
use toolgate_wire::ListKind;

use crate::Gateway;
use crate::caller::Caller;
use crate::connect::jitter;
use crate::links::{Key, Link, Live};
use crate::tasks;

/// Least time between two listings of one connection.
const RELIST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause between two looks at whether a session's connection idles.
const LOOK: Duration = Duration::from_secs(30);

impl Gateway {
    /// Closes the connections that were opened for this session alone, and gives up its parked calls.
    pub fn end_session(&self, session: &str) {
        self.parks.end_session(session);
        for live in self.links.of_session(session).iter().filter_map(|link| link.live.swap(None)) {
            tokio::spawn(async move { live.connection.close().await });
        }
    }

    /// Takes what a server shows now in place of what it showed before, and tells clients.
    async fn relist(&self, server: &Server, live: &Live, kinds: &BTreeSet<ListKind>) {
        for kind in kinds {
            self.note_list_changed(server, *kind);
        }
        let approved = self.approved(server);
        match Box::pin(self.listing(server, &live.connection, &approved)).await {
            Ok(surface) => {
                let before = live.surface.load_full();
                // A change that no digest covers is none for clients, and one for policies.
                if surface.is_the_same(&before) {
                    return;
                }
                self.note_mismatches(server, &surface);
                self.note_hidden_text(server, &surface, Some(&before));
                let surface = Arc::new(surface);
                live.surface.store(Arc::clone(&surface));
                self.tell_changes(Some(&before), &surface);
            }
            // A connection that ended, perhaps at our own wish, says so itself.
            Err(_) if live.connection.state() != State::Connected => {}
            Err(error) => tracing::warn!(server = %server.name, %error, "cannot list again"),
        }
    }
}

/// Follows one connection until it ends; `caller` is the one it was opened for.
pub(crate) async fn follow(
    gateway: Weak<Gateway>,
    server: Arc<Server>,
    caller: Caller,
    place: (Key, Arc<Link>),
    live: Arc<Live>,
    mut events: mpsc::Receiver<Event>,
) {
    let (key, link) = place;
    let mut listings = Listings::new();
    // One clock for all turns: a server that talks without end must not put its end off.
    let idled = idled(&gateway, &key, &link, &live, Arc::clone(&listings.is_running));
    tokio::pin!(idled);
    loop {
        let event = tokio::select! {
            event = events.recv() => match event {
                Some(event) => event,
                None => return,
            },
            () = listings.due() => {
                let Some(gateway) = gateway.upgrade() else { return };
                listings.begin(gateway, &server, &live);
                continue;
            }
            () = &mut idled => {
                tracing::info!(server = %server.name, "an idle session's connection ends");
                if let Some(gateway) = gateway.upgrade() {
                    gateway.links.forget(&key);
                }
                link.live.store(None);
                live.connection.close().await;
                return;
            }
        };
        let Some(gateway) = gateway.upgrade() else { return };
        match event {
            Event::ListChanged(kind) => drop(listings.changed.insert(kind)),
            Event::Notification(said) if said.method == tasks::PUSH => {
                gateway.task_pushed(&server.name, &live, said.params);
            }
            Event::QuestionRefused { method, why } => gateway.note_unplaced(&server, &method, why.as_str()),
            Event::Closed { reason } => {
                // A child that dies may print what it was given.
                let reason = server.without_secrets(&reason);
                tracing::info!(server = %server.name, %reason, "connection ended");
                let now = link.live.load_full();
                if now.as_ref().is_some_and(|now| Arc::ptr_eq(now, &live)) {
                    link.live.store(None);
                    if server.instance == Instance::Shared {
                        let now = Instant::now();
                        link.with_health(|health| health.ended_for_now(now, reason.clone(), jitter()));
                        gateway.come_back(&key, &link, &caller, &server);
                    } else {
                        link.with_health(|health| health.ended(Instant::now(), reason.clone()));
                    }
                }
                if now.is_none_or(|now| Arc::ptr_eq(&now, &live)) {
                    gateway.subscriptions.closed(&key);
                }
                gateway.mind(&key, &server);
                return;
            }
            Event::ResourceUpdated(uri) => gateway.resource_updated(&key, &server, &live, &uri),
            Event::Missed => {
                gateway.missed(&key, &server);
                gateway.tasks.ask_again(&live);
            }
            _ => {}
        }
    }
}

/// What a server said has changed, until it is listed again. However often it says so meanwhile, that is one
/// listing; and nothing else that it says, its end above all, waits for it.
struct Listings {
    changed: BTreeSet<ListKind>,
    running: Option<JoinHandle<()>>,
    /// Whether one holds the connection, which is no use of it.
    is_running: Arc<AtomicBool>,
    /// When the last listing ended.
    last: Instant,
}

impl Listings {
    /// The one that opened the connection has just ended.
    fn new() -> Self {
        Self { changed: BTreeSet::new(), running: None, is_running: Arc::default(), last: Instant::now() }
    }

    /// Resolves when there is something to list and it may be listed. A future that is dropped loses nothing.
    async fn due(&mut self) {
        if let Some(running) = &mut self.running {
            // What it found wrong is in the log.
            let _ = running.await;
            self.running = None;
            self.is_running.store(false, Ordering::Release);
            self.last = Instant::now();
        }
        if self.changed.is_empty() {
            return std::future::pending().await;
        }
        tokio::time::sleep_until((self.last + RELIST_PAUSE).into()).await;
    }

    fn begin(&mut self, gateway: Arc<Gateway>, server: &Arc<Server>, live: &Arc<Live>) {
        self.is_running.store(true, Ordering::Release);
        let (server, live, kinds) = (Arc::clone(server), Arc::clone(live), std::mem::take(&mut self.changed));
        self.running =
            Some(tokio::spawn(async move { Box::pin(gateway.relist(&server, &live, &kinds)).await }));
    }
}

/// Resolves when a connection that one session has to itself was not used for too long.
async fn idled(
    gateway: &Weak<Gateway>,
    key: &Key,
    link: &Link,
    live: &Arc<Live>,
    is_listed: Arc<AtomicBool>,
) {
    if key.session.is_none() {
        return std::future::pending().await;
    }
    let Some(limit) = gateway.upgrade().map(|gateway| gateway.config.serve.session_idle) else { return };
    loop {
        tokio::time::sleep((limit / 4).clamp(Duration::from_millis(20), LOOK)).await;
        // The place and its follower hold the connection; a third holder is a call that runs. A
        // subscription needs it as well (RES-008).
        let subscribed = gateway.upgrade().is_some_and(|gateway| gateway.subscriptions.holds(key));
        let holders = 2 + usize::from(is_listed.load(Ordering::Acquire));
        if subscribed || Arc::strong_count(live) > holders {
            link.touch();
        } else if link.idle() >= limit {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
