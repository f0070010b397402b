//! When to start a server again: doubling pauses with jitter, and an end to it (GW-03).
//!
//! Pure arithmetic over times the caller gives, so that a test needs no sleep. One value belongs
//! to one server; who owns it decides when to call.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The numbers of `docs/design.md` 9a.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffRules {
    /// The first pause.
    pub first: Duration,
    /// No pause is longer.
    pub longest: Duration,
    /// So many starts within `window` are too many.
    pub max_starts: usize,
    /// The time over which starts are counted.
    pub window: Duration,
    /// A connection that stood so long starts again from the first pause.
    pub healthy_after: Duration,
}

impl Default for BackoffRules {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            longest: Duration::from_mins(1),
            max_starts: 6,
            window: Duration::from_mins(1),
            healthy_after: Duration::from_mins(1),
        }
    }
}

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Start again after this pause.
    After(Duration),
    /// Too many starts: stay down until somebody asks for it.
    GiveUp,
}

/// The memory of one server's starts.
#[derive(Debug)]
pub struct Backoff {
    rules: BackoffRules,
    starts: VecDeque<Instant>,
    failures: u32,
}

impl Backoff {
    /// No start yet.
    pub fn new(rules: BackoffRules) -> Self {
        Self { rules, starts: VecDeque::new(), failures: 0 }
    }

    /// The numbers this memory goes by.
    pub fn rules(&self) -> BackoffRules {
        self.rules
    }

    /// To be called when a start is attempted.
    pub fn started(&mut self, now: Instant) {
        self.starts.push_back(now);
        while self.starts.len() > self.rules.max_starts {
            self.starts.pop_front();
        }
    }

    /// To be called when the start failed or the connection ended. `jitter` lies in 0..=1 and
    /// takes up to a quarter off the pause, so that servers that fell together do not come back
    /// together.
    pub fn failed(&mut self, now: Instant, jitter: f64) -> Next {
        if let Some(last) = self.starts.back()
            && now.saturating_duration_since(*last) >= self.rules.healthy_after
        {
            self.failures = 0;
        }
        if self.is_spent(now) {
            return Next::GiveUp;
        }
        let doubled =
            self.rules.first.saturating_mul(1_u32.checked_shl(self.failures.min(16)).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1);
        let pause = doubled.min(self.rules.longest);
        Next::After(pause.mul_f64(1.0 - 0.25 * jitter.clamp(0.0, 1.0)))
    }

    /// Whether there were so many starts of late that there is to be no other.
    pub fn is_spent(&self, now: Instant) -> bool {
        let recent = |start: &&Instant| now.saturating_duration_since(**start) < self.rules.window;
        self.starts.iter().filter(recent).count() >= self.rules.max_starts
    }

    /// To be called when a person or a caller asks for the server again after [`Next::GiveUp`].
    pub fn forgive(&mut self) {
        self.starts.clear();
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests;
