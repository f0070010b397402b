//! What the operator changes while the gateway runs: freezes, standing decisions, answers.
//!
//! Contract: one task looks every [`LOOK`] whether another process changed `state.db`, which costs
//! microseconds, and reads it anew only then. Calls read what was read last without a lock. Whoever
//! waits for an answer is woken by each change. A store that cannot be read freezes everything: what
//! may be frozen is not let through.
//!
//! A freeze ends the calls that run: each call takes the token of its server before it is judged, so
//! that a freeze that comes between the verdict and the call ends it too.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolgate_labels::{Label, Pattern};
use toolgate_store::{Freeze, Frozen, Standing, StandingDecision, Store};

use crate::Gateway;

/// How often the store is asked whether something changed.
const LOOK: Duration = Duration::from_millis(150);

/// What counts now.
#[derive(Debug, Default)]
pub(crate) struct Current {
    all: Option<String>,
    servers: HashMap<String, String>,
    plugins: HashSet<String>,
    standing: Vec<(StandingDecision, Pattern)>,
}

/// What the operator decided beforehand about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    pub(crate) decision: Standing,
    pub(crate) pattern: String,
}

/// The current state and who waits for a change of it.
pub(crate) struct Watch {
    current: ArcSwap<Current>,
    changed: watch::Sender<u64>,
    running: Mutex<HashMap<String, CancellationToken>>,
}

impl Watch {
    /// Reads the state for the first time.
    pub(crate) fn new(store: &Store) -> Self {
        let watch = Self {
            current: ArcSwap::from_pointee(Current::default()),
            changed: watch::channel(0).0,
            running: Mutex::default(),
        };
        watch.reload(store);
        watch
    }

    /// What counts now.
    pub(crate) fn current(&self) -> Arc<Current> {
        self.current.load_full()
    }

    /// Wakes at each change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Something was answered in this process.
    pub(crate) fn wake(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// The token of calls to a server, cancelled when it is frozen. Taken before a call is judged.
    pub(crate) fn token(&self, server: &str) -> CancellationToken {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = running.get(server) {
            return token.clone();
        }
        let token = CancellationToken::new();
        running.insert(server.to_owned(), token.clone());
        token
    }

    /// Reads everything anew, ends what is frozen now, and wakes who waits. Whether what callers see
    /// may have changed.
    pub(crate) fn reload(&self, store: &Store) -> bool {
        let now = Current::read(store);
        let differs = !now.says_the_same(&self.current());
        let frozen = |server: &str| now.frozen(server).is_some();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let ended: Vec<CancellationToken> =
            running.extract_if(|server, _| frozen(server)).map(|(_, token)| token).collect();
        drop(running);
        self.current.store(Arc::new(now));
        // After the new state counts: a call that is judged from here on is denied.
        ended.iter().for_each(CancellationToken::cancel);
        self.wake();
        differs
    }
}

impl Current {
    fn read(store: &Store) -> Self {
        match (store.frozen(), store.standing()) {
            (Ok(frozen), Ok(standing)) => Self::of(frozen, standing),
            (Err(error), _) | (_, Err(error)) => {
                tracing::error!(%error, "what is frozen cannot be read, so everything counts as frozen");
                let reason = format!("it cannot be read what is frozen: {error}");
                Self { all: Some(reason), ..Self::default() }
            }
        }
    }

    fn of(frozen: Vec<Freeze>, standing: Vec<StandingDecision>) -> Self {
        let mut current = Self::default();
        for freeze in frozen {
            match freeze.what {
                Frozen::All => current.all = Some(freeze.reason),
                Frozen::Server(name) => drop(current.servers.insert(name, freeze.reason)),
                Frozen::Plugin(name) => drop(current.plugins.insert(name)),
            }
        }
        for decision in standing {
            match decision.pattern.parse() {
                Ok(pattern) => current.standing.push((decision, pattern)),
                Err(error) => {
                    tracing::warn!(%error, pattern = %decision.pattern, "a standing decision is no label");
                }
            }
        }
        current
    }

    fn says_the_same(&self, other: &Self) -> bool {
        let decisions = |current: &Self| {
            current.standing.iter().map(|(decision, _)| decision.clone()).collect::<Vec<_>>()
        };
        (&self.all, &self.servers, &self.plugins) == (&other.all, &other.servers, &other.plugins)
            && decisions(self) == decisions(other)
    }

    /// Why a server is frozen, if it is, and the words after `toolgate thaw` that end it.
    pub(crate) fn frozen(&self, server: &str) -> Option<(&str, String)> {
        let all = self.all.as_deref().map(|reason| (reason, "--all".to_owned()));
        all.or_else(|| Some((self.servers.get(server)?.as_str(), format!("--server {server}"))))
    }

    /// The plugins that are frozen.
    pub(crate) fn frozen_plugins(&self) -> &HashSet<String> {
        &self.plugins
    }

    /// Whether anything was decided beforehand, which costs less than to ask what.
    pub(crate) fn has_standing(&self) -> bool {
        !self.standing.is_empty()
    }

    /// What was decided about something of a persona that goes by any of these labels. Deny over ask
    /// over allow, as everywhere.
    pub(crate) fn decided(&self, persona: &str, labels: &[&Label], reads_only: bool) -> Option<Decided> {
        let covering = self.standing.iter().filter(|(decision, pattern)| {
            decision.persona == persona
                && (reads_only || !decision.read_only)
                && labels.iter().any(|label| pattern.covers(label))
        });
        let rank = |decision: Standing| match decision {
            Standing::Deny => 2,
            Standing::Ask => 1,
            Standing::Allow => 0,
        };
        covering
            .max_by_key(|(decision, _)| rank(decision.decision))
            .map(|(decision, _)| Decided { decision: decision.decision, pattern: decision.pattern.clone() })
    }
}

/// Looks for changes until the gateway is gone.
pub(crate) async fn follow(gateway: Weak<Gateway>) {
    let mut seen = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(gateway) = gateway.upgrade() else { return };
        match gateway.store.state_version() {
            Ok(version) if seen == Some(version) => {}
            Ok(version) => {
                // The first look may have missed a change that came before it.
                seen = Some(version);
                if gateway.watch.reload(&gateway.store) {
                    gateway.surface_changed();
                }
            }
            Err(error) => {
                tracing::error!(%error, "it cannot be seen whether the operator changed something");
                seen = None;
                gateway.watch.reload(&gateway.store);
            }
        }
    }
}

#[cfg(test)]
mod tests;
