//! Rate limits: one token bucket for each persona and server (rows RL-001..005).
//!
//! Contract: a bucket holds as many tokens as requests a minute are allowed and is filled evenly. An
//! empty one makes the call wait; it is neither refused nor sent early (RL-003). Whoever waits has its
//! place: tokens go out in the order in which they were asked for. One that gives up leaves its token
//! unused, which paces a little more and never less. A server without `rate_limit` has no bucket.
//!
//! Bounds: as many buckets as there are personas times servers, one instant each.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolgate_config::Server;

const MINUTE: Duration = Duration::from_mins(1);

/// All buckets of a gateway.
#[derive(Default)]
pub(crate) struct Rates {
    buckets: Mutex<HashMap<(String, String), Bucket>>,
}

/// The time at which the bucket would be full again if nobody came (the virtual scheduling of the
/// generic cell rate algorithm, ITU-T I.371, annex A).
struct Bucket {
    full_at: Instant,
}

impl Rates {
    /// Takes a token, as soon as there is one. Whether that took a wait.
    pub(crate) async fn take(&self, server: &Server, persona: &str) -> bool {
        let Some(limit) = server.rate_limit else { return false };
        let wait = self.reserve(&server.name, persona, limit, Instant::now());
        if wait.is_zero() {
            return false;
        }
        tokio::time::sleep(wait).await;
        true
    }

    /// Reserves the next token; how long until it is there.
    fn reserve(&self, server: &str, persona: &str, limit: NonZeroU32, now: Instant) -> Duration {
        let every = MINUTE / limit.get();
        let key = (server.to_owned(), persona.to_owned());
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(key).or_insert(Bucket { full_at: now });
        bucket.full_at = bucket.full_at.max(now) + every;
        // A full bucket is a minute of tokens, so the first that many are there at once.
        (bucket.full_at - now).saturating_sub(every * limit.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rl_001_each_persona_has_a_bucket_for_each_server_and_an_empty_one_waits() {
        let rates = Rates::default();
        let limit = NonZeroU32::new(60).unwrap();
        let now = Instant::now();
        for _ in 0..60 {
            assert_eq!(rates.reserve("fix", "default", limit, now), Duration::ZERO, "the size of the bucket");
        }
        assert_eq!(rates.reserve("fix", "other", limit, now), Duration::ZERO);
        assert_eq!(rates.reserve("wiki", "default", limit, now), Duration::ZERO);
        assert_eq!(rates.reserve("fix", "default", limit, now), Duration::from_secs(1));
        assert_eq!(rates.reserve("fix", "default", limit, now), Duration::from_secs(2));
        let later = now + Duration::from_secs(3);
        assert_eq!(rates.reserve("fix", "default", limit, later), Duration::ZERO);
        assert_eq!(rates.reserve("fix", "default", limit, later), Duration::from_secs(1));
        let full = later + Duration::from_mins(10);
        for _ in 0..60 {
            assert_eq!(rates.reserve("fix", "default", limit, full), Duration::ZERO, "never more than full");
        }
        assert_eq!(rates.reserve("fix", "default", limit, full), Duration::from_secs(1));
    }
}
