//! Starts of servers: not all at once, and again by themselves after a failure.
//!
//! Contract: [`AT_ONCE`] servers are started at a time, so that two hundred of them do not take the
//! machine from the first one that is needed. A start that takes longer than [`LONGEST`] gives its place
//! to the next and goes on: servers that hang hold nobody up. A server that failed is tried again when its
//! pause is over, whether or not anybody asks meanwhile, until it was given up; clients hear of its coming
//! back as of any change.
//!
//! A connection that stood and ended is opened by the next need. One of `instance: shared`, which is there
//! before anybody needs it, also comes back by itself, after pauses like those of a failure; whoever needs
//! it meanwhile does not wait for them. One that ends too often is given up as one that fails too often.
//! What is frozen when its time has come is started when it is thawed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_config::{Instance, Server};
use toolgate_wire::envelope::Era;

use crate::Gateway;
use crate::caller::Caller;
use crate::links::{Key, Link, Standing};

/// Servers that start at a time.
const AT_ONCE: usize = 16;
/// How long a start counts among them.
const LONGEST: Duration = Duration::from_secs(3);

/// Who may start next.
pub(crate) struct Starts {
    places: Arc<Semaphore>,
}

impl Default for Starts {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Starts {
    /// Waits for a place, which is given back when what is returned is dropped, or after [`LONGEST`].
    pub(crate) async fn turn(&self) -> DropGuard {
        let ended = CancellationToken::new();
        // The semaphore is never closed.
        if let Ok(place) = Arc::clone(&self.places).acquire_owned().await {
            let ended = ended.clone();
            tokio::spawn(async move {
                let _ = tokio::time::timeout(LONGEST, ended.cancelled()).await;
                drop(place);
            });
        }
        ended.drop_guard()
    }
}

impl Gateway {
    /// Starts the servers that all callers share, which are there before anybody needs them.
    pub fn start_shared(self: &Arc<Self>) {
        for server in self.servers.values().filter(|server| server.enabled) {
            if server.instance != Instance::Shared {
                continue;
            }
            let mut personas = self.config.personas.values();
            let bound = personas.find_map(|persona| Some((persona, persona.lane_of(&server.name)?)));
            let Some((persona, lane)) = bound else { continue };
            let caller = Caller { lane, ..Caller::new(&persona.name, "toolgate", "start", Era::Modern) };
            let (gateway, server) = (Arc::downgrade(self), Arc::clone(server));
            let (changes, ending) = (self.watch.changes(), self.ending.clone());
            tokio::spawn(async move {
                let gateway = thawed(gateway, &server.name, changes, ending).await?;
                // Its failure is in the status and the log.
                gateway.live(&caller, &server).await.err()
            });
        }
    }

    /// Opens a server that failed or ended once its pause is over, unless somebody did, or nobody has a place
    /// for it any more.
    pub(crate) fn come_back(
        self: &Arc<Self>,
        key: &Key,
        link: &Arc<Link>,
        caller: &Caller,
        server: &Arc<Server>,
    ) {
        let (_, Some(standing)) = link.standing() else { return };
        let (Standing::Due(due) | Standing::Ended(due)) = standing else { return };
        // Held weakly: a place that waits for nothing else may be given to somebody else.
        let (gateway, place) = (Arc::downgrade(self), Arc::downgrade(link));
        let (key, server, ending) = (key.clone(), Arc::clone(server), self.ending.clone());
        let caller = Caller { leaving: CancellationToken::new(), ..caller.clone() };
        let changes = self.watch.changes();
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep_until(due.into()) => {}
                () = ending.cancelled() => return,
            }
            let Some(gateway) = thawed(gateway, &server.name, changes, ending).await else { return };
            let Some(link) = place.upgrade() else { return };
            let current = gateway.links.find(&key).is_some_and(|now| Arc::ptr_eq(&now, &link));
            if current && link.live().is_none() && link.standing().1 == Some(standing) {
                drop(link);
                // A failure is noted, and is the start of the next pause.
                let _ = gateway.live(&caller, &server).await;
            }
        });
    }
}

/// The gateway, as soon as a server of it is not frozen; none where it ends before.
async fn thawed(
    gateway: Weak<Gateway>,
    server: &str,
    mut changes: watch::Receiver<u64>,
    ending: CancellationToken,
) -> Option<Arc<Gateway>> {
    loop {
        // What changes from here on wakes the wait below.
        changes.borrow_and_update();
        let found = gateway.upgrade()?;
        if found.watch.current().frozen(server).is_none() {
            return Some(found);
        }
        drop(found);
        tokio::select! {
            told = changes.changed() => told.ok()?,
            () = ending.cancelled() => return None,
        }
    }
}

#[cfg(test)]
mod tests;
