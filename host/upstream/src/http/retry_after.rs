//! `Retry-After` (RFC 9110, 10.2.3): seconds, or a date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// How long to wait from `now`; a date that has passed is no wait. `None`: not understood.
pub(super) fn parse(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = UNIX_EPOCH.checked_add(Duration::from_secs(date(value)?))?;
    Some(until.duration_since(now).unwrap_or_default())
}

/// Seconds since 1970 of an IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`. The two older forms of
/// RFC 9110 are not sent by anything written since 1999.
fn date(value: &str) -> Option<u64> {
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = words.as_slice() else {
        return None;
    };
    let month = MONTHS.iter().position(|name| name == month)?;
    let clock: Vec<u64> = time.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [hour, minute, second] = clock.as_slice() else {
        return None;
    };
    if *hour > 23 || *minute > 59 || *second > 60 {
        return None;
    }
    let days = days_since_1970(year.parse().ok()?, month, day.parse().ok()?)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days of the Gregorian calendar; `month` counts from 0.
fn days_since_1970(year: u64, month: usize, day: u64) -> Option<u64> {
    if !(1970..10_000).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let years: u64 = (1970..year).map(|year| if leap(year) { 366 } else { 365 }).sum();
    let lengths = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let months: u64 = lengths.iter().take(month).sum();
    Some(years + months + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GW-07
    #[test]
    fn seconds_and_dates_are_understood() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        let wait = |value| parse(value, now).map(|wait| wait.as_secs());
        assert_eq!(wait("3600"), Some(3_600));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT"), Some(7));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:00 GMT"), Some(0));
        assert_eq!(wait("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800 - 784_111_770));
        for bad in ["", "soon", "-1", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Foo 1994 08:49:37 GMT"] {
            assert_eq!(wait(bad), None, "{bad}");
        }
    }
}
