//! How long a receiver that failed is left alone: 1 s, doubling to 60 s, with jitter.

use std::time::Duration;

use crate::random_bytes;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// The pauses of one run of failures.
#[derive(Debug)]
pub struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// The next pause: between half of it and all of it, so that many gateways do not come at once.
    pub fn pause(&mut self) -> Duration {
        let whole = self.0;
        self.0 = whole.saturating_mul(2).min(LONGEST);
        let [byte] = random_bytes::<1>();
        whole / 2 + whole.mul_f64(f64::from(byte) / 512.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_a_minute_and_no_further() {
        let mut backoff = Backoff::default();
        let pauses: Vec<Duration> = (0..9).map(|_| backoff.pause()).collect();
        assert!(pauses[0] >= FIRST / 2 && pauses[0] <= FIRST, "{pauses:?}");
        assert!(pauses[8] >= LONGEST / 2 && pauses[8] <= LONGEST, "{pauses:?}");
    }
}
