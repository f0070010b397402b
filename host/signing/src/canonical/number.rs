//! The canonical text of one number; the rule is in the module above.

use std::cmp::Ordering;

/// Most significant digits that printers of doubles write; seventeen always identify one.
const MAX_SPELLED: usize = 17;

/// 2^53, from where on doubles have no fractions.
const MAX_FRACTION: f64 = 9_007_199_254_740_992.0;

/// The canonical text of a valid JSON number.
pub(super) fn canonical(literal: &str) -> String {
    if !literal.contains(['.', 'e', 'E']) {
        return if literal == "-0" { "0" } else { literal }.to_owned();
    }
    match Decimal::read(literal) {
        Some(decimal) if decimal.digits.is_empty() => "0".to_owned(),
        Some(decimal) => held(literal, &decimal).unwrap_or_else(|| literal.to_owned()),
        None => literal.to_owned(),
    }
}

/// The ECMAScript form of the double that holds this number, if one does.
fn held(literal: &str, decimal: &Decimal) -> Option<String> {
    // Rust reads decimal text as the nearest double, ties to even, as IEEE 754 asks.
    let double: f64 = literal.parse().ok()?;
    if !double.is_finite() || double == 0.0 {
        return None;
    }
    let shortest = shortest(double)?;
    let fraction = !decimal.is_integer() && double.abs() < MAX_FRACTION;
    let spelled_out = double.is_normal() && fraction && decimal.digits.len() <= MAX_SPELLED;
    (shortest == *decimal || spelled_out).then(|| shortest.to_ecmascript())
}

/// The fewest digits that identify the double; of several such numbers the nearest, of two as near the even
/// one (ECMA-262, note 2 at `Number::toString`, which RFC 8785 makes a rule).
fn shortest(double: f64) -> Option<Decimal> {
    // `{:e}` prints the fewest digits, and breaks a tie upwards. Rounding to as many digits breaks it to
    // even, and may miss the double where it is a power of two and its neighbour below is nearer.
    let fewest = format!("{double:e}");
    let decimal = Decimal::read(&fewest)?;
    let rounded = format!("{double:.*e}", decimal.digits.len().saturating_sub(1));
    let same = rounded.parse::<f64>().is_ok_and(|read| read.to_bits() == double.to_bits());
    if same { Decimal::read(&rounded) } else { Some(decimal) }
}

/// A decimal number: `0.digits` times ten to the `point`, negated or not. No zero at either end of the
/// digits, so that equal numbers are equal; zero has no digits.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    point: i64,
}

impl Decimal {
    /// Reads a JSON number, or what Rust prints for a double. None where the exponent is beyond all counting.
    fn read(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let significant = all.trim_start_matches('0');
        let leading = all.len() - significant.len();
        let digits = significant.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, point: 0 });
        }
        let shift = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()?;
        let point = exponent.parse::<i64>().ok()?.checked_add(shift)?;
        Some(Self { negative, digits, point })
    }

    fn is_integer(&self) -> bool {
        i64::try_from(self.digits.len()).is_ok_and(|count| self.point >= count)
    }

    /// `Number::toString` of ECMAScript (ECMA-262, section 6.1.6.1.20), which RFC 8785 takes over.
    fn to_ecmascript(&self) -> String {
        let count = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        let sign = if self.negative { "-" } else { "" };
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or_default());
        let (first, rest) = self.digits.split_at_checked(1).unwrap_or_default();
        let magnitude = match self.point {
            point if (count..=21).contains(&point) => format!("{}{}", self.digits, zeros(point - count)),
            point @ 1..=21 => {
                let at = usize::try_from(point).unwrap_or_default();
                let (whole, fraction) = self.digits.split_at_checked(at).unwrap_or_default();
                format!("{whole}.{fraction}")
            }
            point @ -5..=0 => format!("0.{}{}", zeros(-point), self.digits),
            point => {
                let exponent = point - 1;
                let sign = match exponent.cmp(&0) {
                    Ordering::Less => "-",
                    _ => "+",
                };
                let fraction = if rest.is_empty() { String::new() } else { format!(".{rest}") };
                format!("{first}{fraction}e{sign}{}", exponent.unsigned_abs())
            }
        };
        format!("{sign}{magnitude}")
    }
}
