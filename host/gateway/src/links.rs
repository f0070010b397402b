//! Connections to servers, one place for each caller that must not share one.
//!
//! Keyed by (server, persona, credential), with the session added for `instance: session` and only
//! the server left for `instance: shared` (design.md 3.2). A live link is read without a lock; one
//! mutex a link serialises openings alone.
//!
//! Bounds: a server has at most `max_connections` places, whoever's they are; the pauses between
//! starts grow, and after too many within a minute the server is `failed` until somebody asks for it
//! (GW-03). All numbers are keys of the server's entry.
//!
//! Threat: a claimed thread id makes a session, so a client could open places, and processes, without
//! end. A place is therefore given out under the cap, and what nobody needs any more makes room.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use serde::{Deserialize, Serialize};
use toolgate_base::clock::utc_text;
use toolgate_base::{Clock as _, SystemClock};
use toolgate_config::{Instance, Restarts, Server};
use toolgate_upstream::{Backoff, BackoffRules, Connection, Next, State};

use crate::abilities::Abilities;
use crate::caller::Caller;
use crate::surface::Surface;

/// Whose connection it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) server: String,
    persona: Option<String>,
    credential: Option<String>,
    pub(crate) session: Option<String>,
    /// What the server is told that can be asked: clients that can do different things have connections
    /// of their own.
    pub(crate) told: Abilities,
}

impl Key {
    pub(crate) fn of(server: &Server, caller: &Caller) -> Self {
        let own = server.instance != Instance::Shared;
        Self {
            server: server.name.clone(),
            persona: own.then(|| caller.persona.clone()),
            credential: own.then(|| caller.credential.clone()),
            session: (server.instance == Instance::Session).then(|| caller.session.clone()),
            told: caller.abilities.told_to(server),
        }
    }

    /// Whether it is a place of this server that callers of this persona use.
    pub(crate) fn is_of(&self, server: &str, persona: &str) -> bool {
        self.server == server && self.persona.as_deref().is_none_or(|owner| owner == persona)
    }
}

/// A connection that is open, with what the server showed on it.
pub(crate) struct Live {
    pub(crate) connection: Connection,
    pub(crate) surface: ArcSwap<Surface>,
}

/// One connection's place, whether or not it is open.
pub(crate) struct Link {
    pub(crate) live: ArcSwapOption<Live>,
    pub(crate) opening: tokio::sync::Mutex<()>,
    health: Mutex<Health>,
    made: Instant,
    /// Milliseconds after `made` at which somebody last took the connection.
    used: AtomicU64,
    /// Milliseconds after `made`, and one more, at which somebody first waited to see what is there; 0
    /// where nobody did since it was seen or failed.
    awaited: AtomicU64,
}

/// What is known of a link beside the connection itself.
pub(crate) struct Health {
    backoff: Backoff,
    next: Option<Standing>,
    /// What is wrong now.
    trouble: Option<String>,
    /// What was wrong last, kept when it is over.
    last_error: Option<LastError>,
}

/// The last thing that was wrong with a server, whether or not it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// When, as the audit log writes times.
    pub at: String,
    /// What.
    pub reason: String,
}

/// When a link that is down is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It failed: not before this.
    Due(Instant),
    /// It stood and ended: by itself at this time, and at once for whoever needs it before.
    Ended(Instant),
    /// Not by itself.
    GivenUp,
}

impl Link {
    fn new(restarts: &Restarts) -> Self {
        let rules = BackoffRules {
            first: restarts.first,
            longest: restarts.longest,
            max_starts: restarts.starts,
            window: restarts.within,
            healthy_after: restarts.within,
        };
        Self {
            live: ArcSwapOption::empty(),
            opening: tokio::sync::Mutex::new(()),
            health: Mutex::new(Health {
                backoff: Backoff::new(rules),
                next: None,
                trouble: None,
                last_error: None,
            }),
            made: Instant::now(),
            used: AtomicU64::new(0),
            awaited: AtomicU64::new(0),
        }
    }

    /// The open connection, if it is open now.
    pub(crate) fn live(&self) -> Option<Arc<Live>> {
        self.touch();
        self.live_untouched()
    }

    /// The same for who only looks: it does not count as use.
    pub(crate) fn live_untouched(&self) -> Option<Arc<Live>> {
        self.live.load_full().filter(|live| live.connection.state() == State::Connected)
    }

    /// Notes that the connection is in use.
    pub(crate) fn touch(&self) {
        let now = u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.used.store(now, Ordering::Relaxed);
    }

    /// How long nobody took the connection.
    pub(crate) fn idle(&self) -> Duration {
        self.made.elapsed().saturating_sub(Duration::from_millis(self.used.load(Ordering::Relaxed)))
    }

    /// How long somebody waits already to see what is there, counted from the first who did: what is stuck
    /// is waited for once, and not by everybody anew.
    pub(crate) fn awaited(&self) -> Duration {
        let now = u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        match self.awaited.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Duration::ZERO,
            Err(since) => Duration::from_millis(now.saturating_sub(since)),
        }
    }

    /// It was seen, or it failed: the next who waits is the first again.
    pub(crate) fn settled(&self) {
        self.awaited.store(0, Ordering::Release);
    }

    /// Whether its place must be kept: it is open or being opened, or its failures still count.
    fn is_needed(self: &Arc<Self>, now: Instant) -> bool {
        let open = self.live.load().as_ref().is_some_and(|live| live.connection.state() == State::Connected);
        let waits = match self.standing().1 {
            None => false,
            Some(Standing::Due(due) | Standing::Ended(due)) => due > now,
            Some(Standing::GivenUp) => true,
        };
        // Whoever is about to open it holds it; the map holds it once.
        open || waits || Arc::strong_count(self) > 1
    }

    /// What is wrong now and when it is tried again.
    pub(crate) fn standing(&self) -> (Option<String>, Option<Standing>) {
        self.with_health(|health| (health.trouble.clone(), health.next))
    }

    /// What was wrong last.
    pub(crate) fn last_error(&self) -> Option<LastError> {
        self.with_health(|health| health.last_error.clone())
    }

    pub(crate) fn with_health<T>(&self, change: impl FnOnce(&mut Health) -> T) -> T {
        change(&mut self.health.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Health {
    /// Notes a start, unless one is not due; the reason when not.
    pub(crate) fn start(&mut self, now: Instant) -> Result<(), String> {
        let last = self.trouble.as_deref().unwrap_or("it ended");
        match self.next {
            Some(Standing::GivenUp) => Err(format!(
                "{last}; it failed too often (restarts.starts) and is not started again by itself. \
                 Mend it, then ask for it with `toolgate mcp reconnect`"
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

    pub(crate) fn failed(&mut self, now: Instant, error: String, jitter: f64) {
        self.note(error);
        self.next = Some(match self.backoff.failed(now, jitter) {
            Next::After(pause) => Standing::Due(now + pause),
            Next::GiveUp => Standing::GivenUp,
        });
    }

    pub(crate) fn succeeded(&mut self) {
        self.next = None;
        self.trouble = None;
    }

    /// Forgets every failure: somebody asked for another start.
    pub(crate) fn anew(&mut self) {
        self.backoff = Backoff::new(self.backoff.rules());
        self.next = None;
        self.trouble = None;
    }

    /// A connection that stood has ended. The next need opens it at once, unless it ended too often.
    pub(crate) fn ended(&mut self, now: Instant, reason: String) {
        self.note(reason);
        if self.backoff.is_spent(now) {
            self.next = Some(Standing::GivenUp);
        }
    }

    /// The same of one that is there before anybody needs it: it also comes back by itself, after a pause.
    pub(crate) fn ended_for_now(&mut self, now: Instant, reason: String, jitter: f64) {
        self.note(reason);
        self.next = Some(match self.backoff.failed(now, jitter) {
            Next::After(pause) => Standing::Ended(now + pause),
            Next::GiveUp => Standing::GivenUp,
        });
    }

    fn note(&mut self, reason: String) {
        self.last_error = Some(LastError { at: utc_text(SystemClock.now_ms()), reason: reason.clone() });
        self.trouble = Some(reason);
    }
}

/// All links of a gateway.
#[derive(Default)]
pub(crate) struct Links {
    links: Mutex<HashMap<Key, Arc<Link>>>,
}

impl Links {
    /// The place of this key, if there is one.
    pub(crate) fn find(&self, key: &Key) -> Option<Arc<Link>> {
        self.lock().get(key).cloned()
    }

    /// The place of this key, made if need be; `None` where its server has no place left.
    pub(crate) fn claim(&self, key: &Key, server: &Server) -> Option<Arc<Link>> {
        let mut links = self.lock();
        if let Some(link) = links.get(key) {
            return Some(Arc::clone(link));
        }
        let taken = |links: &HashMap<Key, Arc<Link>>| links.keys().filter(|k| k.server == key.server).count();
        if taken(&links) >= server.max_connections {
            let now = Instant::now();
            links.retain(|other, link| other.server != key.server || link.is_needed(now));
            if taken(&links) >= server.max_connections {
                return None;
            }
        }
        let link = Arc::new(Link::new(&server.restarts));
        links.insert(key.clone(), Arc::clone(&link));
        Some(link)
    }

    /// The places of a server that this caller's persona uses, whoever else of it they are for.
    pub(crate) fn of_persona(&self, server: &str, persona: &str) -> Vec<(Key, Arc<Link>)> {
        let links = self.lock();
        let its = links.iter().filter(|(key, _)| key.is_of(server, persona));
        its.map(|(key, link)| (key.clone(), Arc::clone(link))).collect()
    }

    /// Gives a place back.
    pub(crate) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Takes the places of one session out; whoever calls closes what is open.
    pub(crate) fn of_session(&self, session: &str) -> Vec<Arc<Link>> {
        let mut ended = Vec::new();
        self.lock().retain(|key, link| {
            let its = key.session.as_deref() == Some(session);
            if its {
                ended.push(Arc::clone(link));
            }
            !its
        });
        ended
    }

    /// Closes everything; the links are gone afterwards.
    pub(crate) async fn close_all(&self) {
        let links: Vec<Arc<Link>> = self.lock().drain().map(|(_, link)| link).collect();
        let open = links.iter().filter_map(|link| link.live.swap(None));
        let closing: Vec<_> =
            open.map(|live| tokio::spawn(async move { live.connection.close().await })).collect();
        for task in closing {
            // A connection whose closing panicked is gone as well.
            let _ = task.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
