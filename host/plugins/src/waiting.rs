//! Calls that may wait for something outside this process: the pool they run in.
//!
//! A policy without such grants answers in microseconds and runs where it is called. One with them
//! may wait for a disk or a network, and must not hold a thread that serves others while it does:
//! the runtime is told to move its other work away from this thread first, and at most
//! [`PLACES`] of them run in the process at a time. How long one may take is bounded where it
//! waits (`State::wait`), so a place always becomes free again.

use std::sync::{Arc, OnceLock};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::engine::{PLACE_WAIT, Places};

/// Calls that may wait at the same time.
const PLACES: usize = 16;

/// Runs a call that may wait; none where all places stayed taken.
pub(crate) fn apart<T>(call: impl FnOnce() -> T) -> Option<T> {
    let in_place = || {
        let _place = places().take(PLACE_WAIT)?;
        Some(call())
    };
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        // Also fine on a thread of the blocking pool, where it does nothing.
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(in_place),
        _ => in_place(),
    }
}

fn places() -> &'static Arc<Places> {
    static SHARED: OnceLock<Arc<Places>> = OnceLock::new();
    SHARED.get_or_init(|| Arc::new(Places::new(PLACES)))
}

#[cfg(test)]
mod tests;
