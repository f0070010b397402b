//! Time as a dependency, so that expiry and deadlines can be tested without waiting.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time of day. Whoever compares against an expiry takes one of these instead of asking the system.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch. May go backwards when the machine's clock is set.
    fn now_ms(&self) -> u64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        // A clock before 1970 reads as the epoch itself: everything then counts as not yet expired,
        // and nothing underflows.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A clock that stands still until it is told to move. For tests.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Self(AtomicU64::new(now_ms))
    }

    /// Moves the clock forward by `ms` milliseconds.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    /// Sets the clock, backwards too.
    pub fn set(&self, now_ms: u64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Seconds of a day.
const DAY: u64 = 86_400;

/// A time as `2026-11-29T12:00:00Z` (RFC 3339, whole seconds, UTC), from milliseconds since the epoch.
pub fn utc_text(ms: u64) -> String {
    let seconds = ms / 1000;
    let (mut day, rest) = (seconds / DAY, seconds % DAY);
    let mut year = 1970;
    while day >= days_of(year) {
        day -= days_of(year);
        year += 1;
    }
    let mut month = 1;
    while day >= days_in(year, month) {
        day -= days_in(year, month);
        month += 1;
    }
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

/// The milliseconds since the epoch of a time that [`utc_text`] writes; nothing for any other text.
pub fn utc_ms(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let years: u64 = (1970..year).map(days_of).sum();
    let months: u64 = (1..month).map(|month| days_in(year, month)).sum();
    let seconds = (years + months + day.checked_sub(1)?) * DAY + hour * 3600 + minute * 60 + second;
    let ms = seconds * 1000;
    // Only what is written back the same is such a time: no day 31 of February, no sign, no blank.
    (utc_text(ms) == text).then_some(ms)
}

fn days_of(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use super::{utc_ms, utc_text};

    #[test]
    fn a_time_is_written_and_read_back_and_nothing_else_is_read() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_000, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_795_867_200_000, "2026-11-28T12:00:00Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc_text(ms), text);
            assert_eq!(utc_ms(text), Some(ms));
        }
        for text in [
            "",
            "2026-02-29T00:00:00Z",
            "2026-11-28 12:00:00Z",
            "2026-11-28T12:00:60Z",
            "+026-11-28T12:00:00Z",
            "2026-11-28T12:00:00+",
        ] {
            assert_eq!(utc_ms(text), None, "{text}");
        }
    }
}
