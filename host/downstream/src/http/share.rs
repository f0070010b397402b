//! How many requests of one token run at once outside of sessions.
//!
//! **Threat.** A modern request has no session whose bound it could run into, so one token could take
//! every connection and every worker. Requests and subscriptions of a token count together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The running requests of every token.
pub(super) struct Shares {
    max: usize,
    running: Mutex<HashMap<String, usize>>,
}

/// One running request; its place is free again when this is dropped.
pub(super) struct Share {
    shares: Arc<Shares>,
    credential: String,
}

impl Shares {
    /// At most `max` for each token.
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, running: Mutex::default() })
    }

    /// A place among the token's own; the error says what to do without one.
    pub(super) fn take(self: &Arc<Self>, credential: &str) -> Result<Share, String> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let count = running.entry(credential.to_owned()).or_default();
        if *count >= self.max {
            return Err(format!(
                "{} requests of this token are running, which is the limit (serve.max_running); wait for one to end",
                self.max
            ));
        }
        *count += 1;
        Ok(Share { shares: Arc::clone(self), credential: credential.to_owned() })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut running = self.shares.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = running.get_mut(&self.credential) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                running.remove(&self.credential);
            }
        }
    }
}
