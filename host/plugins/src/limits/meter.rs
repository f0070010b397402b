//! The deadline of one call, counted in running time and bounded in wall-clock time.
//!
//! Epochs pass by the clock. On a busy machine a thread may stand still for longer than the 5 ms
//! that a policy has, which is no fault of the policy's and must not deny a call. So when the
//! deadline comes, the guest gets one more slice, and is interrupted if it really runs through
//! that. Time that the host itself spends on a large document is not the guest's; it has a bound
//! of its own, [`MAX_HOST`]. Whatever the machine does, a call ends at [`Meter::wall`] beside it.

use std::time::{Duration, Instant};

use crate::engine::TICK;
use crate::sys;

/// Longest extra slice.
const MAX_SLICE: Duration = Duration::from_millis(20);
/// Least wall-clock bound.
const MIN_WALL: Duration = Duration::from_millis(250);
/// Wall-clock bound as a multiple of the budget.
const WALL_FACTOR: u32 = 4;

/// Longest time that the host works on documents for one call: a few scans of the largest message
/// there is, on a machine that is busy with ten other things.
const MAX_HOST: Duration = Duration::from_secs(8);

/// Measures one call.
pub(crate) struct Meter {
    budget: Duration,
    started: Instant,
    host: Duration,
    /// Time that host calls waited for something outside.
    waited: Duration,
    sample: Option<Sample>,
}

/// Where the thread stood when an extra slice began.
struct Sample {
    ran: Duration,
    host: Duration,
}

/// What to do at a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Go on for so many ticks.
    Continue(u64),
    /// Enough.
    Interrupt,
}

impl Meter {
    /// Starts measuring a call that may run for `budget`.
    pub(crate) fn start(budget: Duration) -> Self {
        Self { budget, started: Instant::now(), host: Duration::ZERO, waited: Duration::ZERO, sample: None }
    }

    /// Ticks until the first deadline: never fewer than the budget.
    pub(crate) fn ticks(&self) -> u64 {
        ticks(self.budget)
    }

    /// The longest that the call may take by the clock, beside what the host spends on documents.
    pub(crate) fn wall(&self) -> Duration {
        self.budget.saturating_mul(WALL_FACTOR).max(MIN_WALL)
    }

    /// Adds time that the host spent on the guest's behalf.
    pub(crate) fn host_worked(&mut self, time: Duration) {
        self.host = self.host.saturating_add(time);
    }

    /// Adds time that a host call waited for something outside.
    pub(crate) fn add_wait(&mut self, time: Duration) {
        self.waited = self.waited.saturating_add(time);
    }

    /// How long this call has waited in all.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }

    /// Asked by the engine when a deadline has passed.
    pub(crate) fn at_deadline(&mut self) -> Verdict {
        self.judge(self.started.elapsed(), sys::thread_running_time())
    }

    fn judge(&mut self, wall: Duration, ran: Option<Duration>) -> Verdict {
        let own = wall.saturating_sub(self.waited).saturating_sub(self.host);
        // Epochs passed while a host call waited: what is left of the budget is still the guest's.
        let left = self.budget.saturating_sub(own);
        if !self.waited.is_zero() && self.host < MAX_HOST && !left.is_zero() {
            return Verdict::Continue(ticks(left));
        }
        let in_time = own < self.wall() && self.host < MAX_HOST;
        let Some(ran) = ran.filter(|_| in_time) else {
            return Verdict::Interrupt;
        };
        let slice = self.budget.min(MAX_SLICE);
        if let Some(sample) = &self.sample {
            let host = self.host.saturating_sub(sample.host);
            let guest = ran.saturating_sub(sample.ran).saturating_sub(host);
            if guest >= slice / 2 {
                return Verdict::Interrupt;
            }
        } else {
            self.sample = Some(Sample { ran, host: self.host });
        }
        Verdict::Continue(ticks(slice))
    }
}

fn ticks(time: Duration) -> u64 {
    let whole = time.as_nanos().div_ceil(TICK.as_nanos());
    u64::try_from(whole).unwrap_or(u64::MAX / 4).saturating_add(1)
}

#[cfg(test)]
mod tests;
