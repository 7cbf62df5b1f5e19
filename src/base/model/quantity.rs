//! Kubernetes quantities, compared by value: `4000m` is `4`, `4096Mi` is `4Gi`.
//!
//! A value is stored in billionths, the finest step of Kubernetes; as there, a finer value is rounded up. The
//! largest quantity is about 10^29 whole units. Kubernetes stores a text with few digits as a whole number
//! with an exponent, and any other as a decimal, which it caps at 2^63−1.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

const NANOS: i128 = 1_000_000_000;

/// The largest decimal.
const MOST: i128 = i64::MAX as i128 * NANOS;

/// An amount, in billionths.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    is_decimal: bool,
}

/// The error for a text that is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a quantity such as `4`, `500m` or `16Gi`")]
pub struct NotAQuantity;

impl Quantity {
    /// Returns the amount as a floating-point number, rounded to the nearest.
    pub fn to_f64(self) -> f64 {
        // Whole units first: dividing the billionths would round twice for large amounts.
        let (whole, rest) = (self.nanos / NANOS, self.nanos % NANOS);
        whole as f64 + rest as f64 / NANOS as f64
    }

    /// Returns a text's amount as Kubernetes approximates it: the written digits as one whole number, times a
    /// power of ten. This is not always the nearest number, which changes scores that are cut off.
    pub fn approximate(text: &str) -> Option<f64> {
        let nanos = text.parse::<Quantity>().ok()?.nanos;
        // Kubernetes stores amounts with many digits, and binary ones with a fraction, in billionths.
        let (digits, exponent) = short(text).unwrap_or((nanos, -9));
        let power: f64 = format!("1e{exponent}").parse().ok()?;
        Some(if exponent == 0 { digits as f64 } else { digits as f64 * power })
    }

    pub fn from_nanos(nanos: i128) -> Quantity {
        Quantity { nanos, is_decimal: false }
    }

    /// Returns the same amount, marked as a decimal.
    pub fn decimal(self) -> Quantity {
        Quantity { is_decimal: true, ..self }
    }

    /// Reports whether Kubernetes stores the amount as a decimal, and so never treats it as a whole number.
    pub fn is_decimal(self) -> bool {
        self.is_decimal
    }

    /// Returns the amount in billionths.
    pub fn nanos(self) -> i128 {
        self.nanos
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl FromStr for Quantity {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Quantity, NotAQuantity> {
        let Parts { negative, whole, fraction, suffix } = parts(text);
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(NotAQuantity);
        }
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let mantissa = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| NotAQuantity)? };
        let scale = i64::try_from(fraction.len()).map_err(|_| NotAQuantity)?;
        let nanos = match multiplier(suffix)? {
            Multiplier::Ten(exponent) => scaled(mantissa, exponent - scale + 9)?,
            Multiplier::Two(bits) => {
                let grown = mantissa.checked_mul(1_i128 << bits).ok_or(NotAQuantity)?;
                scaled(grown, 9 - scale)?
            }
        };
        let is_decimal = short(text).is_none();
        let nanos = if is_decimal { nanos.min(MOST) } else { nanos };
        Ok(Quantity { nanos: if negative { -nanos } else { nanos }, is_decimal })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.nanos < 0 { "-" } else { "" };
        let (whole, rest) = ((self.nanos / NANOS).unsigned_abs(), (self.nanos % NANOS).unsigned_abs());
        if rest == 0 {
            return write!(f, "{sign}{whole}");
        }
        let rest = format!("{rest:09}");
        write!(f, "{sign}{whole}.{}", rest.trim_end_matches('0'))
    }
}

/// Returns the form in which Kubernetes writes a quantity: `4000m` as `4`, `1.5Gi` as `1536Mi`, `0.5` as
/// `500m`. Other text is returned unchanged.
pub fn canonical(text: &str) -> String {
    let Ok(Quantity { nanos, .. }) = text.parse() else { return text.to_owned() };
    let suffix = parts(text).suffix;
    let is_binary = suffix.ends_with('i');
    if is_canonical(text) {
        return text.to_owned();
    }
    if nanos == 0 {
        return "0".to_owned();
    }
    // Small binary amounts, and those with a fraction, are written in decimal units.
    if is_binary && nanos % NANOS == 0 && (nanos / NANOS).abs() >= 1024 {
        let (mut amount, mut thousands) = (nanos / NANOS, 0);
        while amount % 1024 == 0 && thousands + 1 < BINARY.len() {
            (amount, thousands) = (amount / 1024, thousands + 1);
        }
        return format!("{amount}{}", BINARY[thousands]);
    }
    let (mut amount, mut exponent) = (nanos, -9);
    while amount % 1000 == 0 {
        (amount, exponent) = (amount / 1000, exponent + 3);
    }
    let decimal = usize::try_from((exponent + 9) / 3).ok().and_then(|step| DECIMAL.get(step));
    match decimal.filter(|_| is_binary || !suffix.starts_with(['e', 'E']) || suffix == "E") {
        Some(suffix) => format!("{amount}{suffix}"),
        None if exponent == 0 => amount.to_string(),
        None => format!("{amount}e{exponent}"),
    }
}

/// Suffixes of thousands, from billionths up.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Reports whether Kubernetes keeps the text unchanged, including signs and trailing zeros.
fn is_canonical(text: &str) -> bool {
    let Parts { whole, fraction, suffix, .. } = parts(text);
    let whole = whole.trim_start_matches('0');
    let digits = format!("{}{fraction}", if whole.is_empty() { "0" } else { whole });
    let Some((_, exponent)) = short(text) else { return text == "0" };
    if suffix.ends_with('i') {
        return digits.parse().is_ok_and(|value: i64| value & 7 != 0);
    }
    text == "0" || (exponent % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'))
}

/// The parts of a quantity's text.
struct Parts<'t> {
    negative: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

fn parts(text: &str) -> Parts<'_> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    Parts { negative, whole, fraction, suffix }
}

/// Returns the digits and power of ten that Kubernetes stores for a valid text, if they fit 64 bits by its
/// own, cautious estimate.
fn short(text: &str) -> Option<(i128, i64)> {
    let Parts { negative, whole, fraction, suffix } = parts(text);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let value: i64 = format!("{whole}{fraction}").parse().ok()?;
    let written = whole.len() + fraction.len();
    let (value, exponent) = match multiplier(suffix).ok()? {
        Multiplier::Ten(exponent) => {
            let exponent = exponent - i64::try_from(fraction.len()).ok()?;
            (value, (written <= 18 && exponent >= -9).then_some(exponent)?)
        }
        Multiplier::Two(bits) => {
            let room = 14_usize.checked_sub(bits as usize * 3 / 10)?;
            (value.checked_mul(1 << bits)?, (fraction.is_empty() && written <= room).then_some(0)?)
        }
    };
    Some((i128::from(if negative { -value } else { value }), exponent))
}

enum Multiplier {
    Ten(i64),
    Two(u32),
}

fn multiplier(suffix: &str) -> Result<Multiplier, NotAQuantity> {
    Ok(match suffix {
        "n" => Multiplier::Ten(-9),
        "u" => Multiplier::Ten(-6),
        "m" => Multiplier::Ten(-3),
        "" => Multiplier::Ten(0),
        "k" => Multiplier::Ten(3),
        "M" => Multiplier::Ten(6),
        "G" => Multiplier::Ten(9),
        "T" => Multiplier::Ten(12),
        "P" => Multiplier::Ten(15),
        "E" => Multiplier::Ten(18),
        "Ki" => Multiplier::Two(10),
        "Mi" => Multiplier::Two(20),
        "Gi" => Multiplier::Two(30),
        "Ti" => Multiplier::Two(40),
        "Pi" => Multiplier::Two(50),
        "Ei" => Multiplier::Two(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or(NotAQuantity)?;
            let exponent: i64 = exponent.parse().map_err(|_| NotAQuantity)?;
            if exponent.abs() > 1000 {
                return Err(NotAQuantity);
            }
            Multiplier::Ten(exponent)
        }
    })
}

/// Returns `mantissa * 10^exponent`, rounded up.
fn scaled(mantissa: i128, exponent: i64) -> Result<i128, NotAQuantity> {
    if mantissa == 0 {
        return Ok(0);
    }
    let power = u32::try_from(exponent.unsigned_abs()).map_err(|_| NotAQuantity)?;
    match (10_i128.checked_pow(power), exponent >= 0) {
        (Some(factor), true) => mantissa.checked_mul(factor).ok_or(NotAQuantity),
        (None, true) => Err(NotAQuantity),
        (Some(divisor), false) => Ok(mantissa / divisor + i128::from(mantissa % divisor != 0)),
        // Smaller than the smallest step.
        (None, false) => Ok(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        text.parse().unwrap_or_else(|_| panic!("{text} is a quantity"))
    }

    #[test]
    fn equal_amounts_in_different_units_are_equal() {
        for (a, b) in [
            ("4000m", "4"),
            ("4096Mi", "4Gi"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("0.5", "500m"),
            (".5", "5e-1"),
            ("-1.50", "-1500m"),
            ("+2.", "2"),
            ("1E", "1e18"),
            ("0.5Gi", "512Mi"),
        ] {
            assert_eq!(quantity(a), quantity(b), "{a} and {b}");
        }
    }

    #[test]
    fn amounts_are_ordered_by_value() {
        let ascending = ["-1", "0", "1n", "999m", "1", "1k", "1Ki", "1M", "1Mi", "1E", "1Ei"];
        assert!(ascending.windows(2).all(|pair| quantity(pair[0]) < quantity(pair[1])));
    }

    #[test]
    fn what_is_finer_than_a_billionth_is_rounded_up() {
        assert_eq!(quantity("0.1n"), quantity("1n"));
        assert_eq!(quantity("1e-900"), quantity("1n"));
    }

    #[test]
    fn other_text_is_no_quantity() {
        for text in [
            "",
            "-",
            ".",
            "1.30.2",
            "v1",
            "4 Gi",
            "1ki",
            "1e",
            "1e99",
            "1e9999",
            "²",
            "--1",
            "9".repeat(60).as_str(),
        ] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn canonical_forms_are_those_of_kubernetes() {
        for (text, form) in [
            ("4000m", "4"),
            ("4", "4"),
            ("0", "0"),
            ("0m", "0"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("100000", "100k"),
            ("1500", "1500"),
            ("16Gi", "16Gi"),
            ("16384Mi", "16Gi"),
            ("1.5Gi", "1536Mi"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("1000e3", "1e6"),
            ("1E3", "1E3"),
            ("10E2", "1e3"),
            ("2E", "2E"),
            ("1.500", "1.500"),
            ("-4000m", "-4"),
            ("1000E", "1e21"),
            ("many", "many"),
        ] {
            assert_eq!(canonical(text), form, "{text}");
        }
    }

    #[test]
    fn quantities_become_numbers() {
        assert_eq!(quantity("2500m").to_f64(), 2.5);
        assert_eq!(quantity("16Gi").to_f64(), 17_179_869_184.0);
    }

    #[test]
    fn approximations_are_digits_times_a_power_of_ten() {
        for (text, number) in [
            ("4", 4.0),
            ("350m", 350.0 * 0.001),
            ("0.35", 35.0 * 0.01),
            ("-1.5", -15.0 * 0.1),
            ("4e3", 4000.0),
            ("5k", 5000.0),
            ("16Gi", 17_179_869_184.0),
            ("131900456Ki", 131_900_456.0 * 1024.0),
            ("1.5Gi", 1_610_612_736_000_000_000.0 * 1e-9),
            ("1234567890123456789", 1_234_567_890_123_456_789_000_000_000.0 * 1e-9),
            ("123456789012345678901", 9_223_372_036_854_775_807.0),
            ("0", 0.0),
        ] {
            assert_eq!(Quantity::approximate(text), Some(number), "{text}");
        }
        assert!(Quantity::approximate("351m") != Some(0.351), "it shows");
        assert_eq!(Quantity::approximate("many"), None);
        assert_eq!(quantity("2500m").to_string(), "2.5");
        assert_eq!(quantity("-0.25").to_string(), "-0.25");
    }
}
