//! A counted number of places for live instances, so that the pool is never asked for more than it has.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The counter.
pub(crate) struct Places {
    capacity: usize,
    taken: Mutex<usize>,
    freed: Condvar,
}

/// One taken place; dropping it frees the place.
pub(crate) struct Place(Arc<Places>);

impl Places {
    /// `capacity` free places.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, taken: Mutex::new(0), freed: Condvar::new() }
    }

    /// Takes a place, waiting at most `wait`; none when all stay taken.
    pub(crate) fn take(self: &Arc<Self>, wait: Duration) -> Option<Place> {
        let until = Instant::now() + wait;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken >= self.capacity {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            taken = self.freed.wait_timeout(taken, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken += 1;
        Some(Place(Arc::clone(self)))
    }

    /// Whether at least half of the places are free: only then may an idle instance keep its own.
    pub(crate) fn is_roomy(&self) -> bool {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) <= self.capacity / 2
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests;
