//! Places for the tasks of one server (TSK-013, TSK-014).
//!
//! A call of a tool that is known to make tasks takes its place before it is sent, so that what waits
//! waits here and not at the server. A task of any other call takes its place when it is made and is not
//! observed before it has one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Tasks of one server at a time.
pub(super) const ACTIVE: usize = 8;
/// Those that wait for a place.
pub(super) const QUEUED: usize = 64;

/// The places of all servers.
#[derive(Default)]
pub(super) struct Slots {
    servers: Mutex<HashMap<String, Arc<OfServer>>>,
}

struct OfServer {
    active: Arc<Semaphore>,
    queued: AtomicUsize,
}

/// A place, or one in the queue for it; given back when it is dropped.
pub(crate) struct Place {
    of: Arc<OfServer>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Slots {
    /// A place of this server; `None` where the queue is full.
    pub(super) fn enter(&self, server: &str) -> Option<Place> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let of = Arc::clone(servers.entry(server.to_owned()).or_insert_with(|| {
            Arc::new(OfServer { active: Arc::new(Semaphore::new(ACTIVE)), queued: AtomicUsize::new(0) })
        }));
        // Under the lock, so that two cannot both take the last place in the queue.
        if let Ok(permit) = Arc::clone(&of.active).try_acquire_owned() {
            return Some(Place { of, permit: Some(permit) });
        }
        if of.queued.load(Ordering::Acquire) >= QUEUED {
            return None;
        }
        of.queued.fetch_add(1, Ordering::AcqRel);
        Some(Place { of, permit: None })
    }

    /// How many places of a server are taken, and how many wait for one.
    pub(super) fn counts(&self, server: &str) -> (usize, usize) {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.get(server).map_or((0, 0), |of| {
            (ACTIVE.saturating_sub(of.active.available_permits()), of.queued.load(Ordering::Acquire))
        })
    }
}

impl Place {
    /// Whether it is one, and not only a place in the queue.
    pub(crate) fn is_taken(&self) -> bool {
        self.permit.is_some()
    }

    /// Waits until it is one. A future that is dropped leaves it where it was, at the end of the queue.
    pub(crate) async fn taken(&mut self) {
        if self.permit.is_some() {
            return;
        }
        // The semaphore is never closed.
        if let Ok(permit) = Arc::clone(&self.of.active).acquire_owned().await {
            self.permit = Some(permit);
            self.of.queued.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.permit.is_none() {
            self.of.queued.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn eight_are_active_and_sixty_four_wait_and_the_next_is_refused_tsk_013_tsk_014() {
        let slots = Slots::default();
        let mut active: Vec<Place> = (0..ACTIVE).map(|_| slots.enter("fix").unwrap()).collect();
        assert!(active.iter().all(Place::is_taken));
        let mut queued: Vec<Place> = (0..QUEUED).map(|_| slots.enter("fix").unwrap()).collect();
        assert!(!queued.iter().any(Place::is_taken));
        assert!(slots.enter("fix").is_none());
        assert_eq!(slots.counts("fix"), (ACTIVE, QUEUED));
        assert_eq!(slots.counts("never seen"), (0, 0));
        assert!(slots.enter("other").is_some_and(|place| place.is_taken()), "each server has its own");
        active.pop();
        let mut first = queued.remove(0);
        first.taken().await;
        assert!(first.is_taken());
        assert!(slots.enter("fix").is_some(), "there is room in the queue again");
        assert!(slots.enter("fix").is_some(), "what is dropped gives its place back");
    }
}
