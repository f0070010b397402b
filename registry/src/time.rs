//! Times as documents write them: UTC, to the second, `YYYY-MM-DDTHH:MM:SSZ` and nothing else.
//!
//! One spelling, because a document is compared by its bytes. Years 1970 to 9999.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const DAY: u64 = 86_400;
/// The first second of the year 10000.
const END: u64 = 253_402_300_800;

/// Seconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// A time by its seconds since the Unix epoch; times after the year 9999 become its last second.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(if seconds < END { seconds } else { END - 1 })
    }

    /// The time of a clock that counts milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_seconds(millis / 1000)
    }

    /// Seconds since the Unix epoch.
    pub const fn seconds(self) -> u64 {
        self.0
    }

    /// This time and so many days.
    #[must_use]
    pub const fn plus_days(self, days: u64) -> Self {
        Self::from_seconds(self.0.saturating_add(days.saturating_mul(DAY)))
    }

    /// Whole days from this time to a later one; 0 if that one is not later.
    pub const fn days_until(self, later: Self) -> u64 {
        later.0.saturating_sub(self.0) / DAY
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0 / DAY);
        let second = self.0 % DAY;
        write!(
            formatter,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    }
}

/// Why a text is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a time is written in UTC as 2026-11-29T12:00:00Z")]
pub struct TimeError;

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let number = |from: usize, to: usize| -> Option<u64> {
            let digits = text.get(from..to)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let parts = || {
            let day = days(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
            Some(day * DAY + number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?)
        };
        let time = parts().map(Self).ok_or(TimeError)?;
        // Whatever is out of its range, or not the one spelling, does not come out as it went in.
        if time.to_string() == text { Ok(time) } else { Err(TimeError) }
    }
}

/// Year, month and day of a count of days since 1970-01-01 (proleptic Gregorian).
fn civil(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, a leap day is the last of its year.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The inverse of [`civil`]; nothing before 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = year.checked_sub(u64::from(month <= 2))?;
    let (era, of_era) = (year / 400, year % 400);
    let shifted = if month > 2 { month - 3 } else { (month + 9).min(11) };
    let of_year = (153 * shifted + 2) / 5 + day.checked_sub(1)?;
    let total = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    total.checked_sub(719_468)
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
