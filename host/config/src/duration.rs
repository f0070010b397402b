//! Durations as people write them: `500ms`, `60s`, `5m`, `2h`.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// The longest that is accepted, so that no deadline overflows a clock: 30 days.
const LONGEST: Duration = Duration::from_hours(30 * 24);

/// Reads a whole number followed by `ms`, `s`, `m` or `h`.
pub(crate) fn parse(text: &str) -> Result<Duration, &'static str> {
    const FORM: &str = "a duration is a whole number and a unit, such as 500ms, 60s, 5m or 2h";
    const TOO_LONG: &str = "the longest duration is 720h";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or(FORM)?;
    if number.is_empty() {
        return Err(FORM);
    }
    let number: u64 = number.parse().map_err(|_| TOO_LONG)?;
    let milliseconds = match unit {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => return Err(FORM),
    };
    milliseconds.map(Duration::from_millis).filter(|length| *length <= LONGEST).ok_or(TOO_LONG)
}

/// The same, written back with the largest unit that loses nothing.
pub(crate) fn show(length: Duration) -> String {
    let milliseconds = length.as_millis();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if milliseconds >= size && milliseconds.is_multiple_of(size) {
            return format!("{}{unit}", milliseconds / size);
        }
    }
    format!("{milliseconds}ms")
}
