//! Values with a unit in text form: `"150Mbps"`, `"1 ms"`, `"64 KiB"`, `"5 %"`, `"126 packets"`.
//!
//! Decimals are parsed exactly with integers. Digits beyond the resolution of the type are rounded to nearest.

use std::fmt::Display;
use std::ops::RangeInclusive;

use tacit_packet::units::{BitRate, Bytes, Duration, Ratio};

use crate::{InputError, Mismatch, Value, did_you_mean};

/// Maximum duration in a file.
pub const MAX_DURATION: Duration = Duration::from_secs(3600);

const DURATIONS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
];
const RATES: [(&str, u64); 8] = [
    ("bps", 1),
    ("kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("bit/s", 1),
    ("kb/s", 1_000),
    ("Mb/s", 1_000_000),
    ("Gb/s", 1_000_000_000),
];
const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];
/// Parts per billion in one per cent.
const RATIOS: [(&str, u64); 1] = [("%", 10_000_000)];
/// Thousandths of a decibel.
const DECIBELS: [(&str, u64); 1] = [("dB", 1_000)];
const LEVELS: [(&str, u64); 1] = [("dBm", 1_000)];
/// Millimetres in each unit.
const LENGTHS: [(&str, u64); 4] = [("mm", 1), ("cm", 10), ("m", 1_000), ("km", 1_000_000)];
const PACKETS: [(&str, u64); 2] = [("packets", 1), ("packet", 1)];
/// Units of counts, and of values chosen from a list.
const OTHERS: [(&str, u64); 3] = [("datagrams", 1), ("datagram", 1), ("MHz", 1)];

/// The unit in a text that consists of a number and one of the units in this module.
pub fn unit(text: &str) -> Option<&str> {
    let magnitude = text.trim().trim_start_matches('-');
    let name = magnitude.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '_').trim();
    let tables: [&[(&str, u64)]; 9] =
        [&DURATIONS, &RATES, &SIZES, &RATIOS, &DECIBELS, &LEVELS, &LENGTHS, &PACKETS, &OTHERS];
    tables.into_iter().any(|units| scaled(magnitude, units).is_some()).then_some(name)
}

/// Parses `number unit` with a plain decimal number. Returns the value in the smallest unit.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = (text[..end].replace('_', ""), text[end..].trim());
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 12 || fraction.contains('.') {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let denominator = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let value = digits.checked_mul(u128::from(factor))?.checked_add(denominator / 2)? / denominator;
    u64::try_from(value).ok()
}

fn units_of(units: &[(&str, u64)]) -> String {
    units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn quantity(value: &Value, noun: &str, example: &str, units: &[(&str, u64)]) -> Result<u64, Mismatch> {
    let allowed = || format!("{noun} such as {example:?}; units {}", units_of(units));
    match value {
        Value::Text(text) => {
            scaled(text, units).ok_or_else(|| Mismatch::new(format!("{text:?} is not {noun}"), allowed()))
        }
        Value::Integer(_) | Value::Float(_) => Err(Mismatch::new(format!("{value} has no unit"), allowed())),
        other => Err(Mismatch::new(format!("{} instead of {noun}", other.kind()), allowed())),
    }
}

/// Parses a round-trip time of up to an hour.
///
/// # Errors
/// Unless the text is a duration with a unit.
pub fn parse_rtt(text: &str) -> Result<Duration, InputError> {
    argument("--rtt", text, within(Duration::ZERO..=MAX_DURATION, duration))
}

/// Parses the value of the argument `name` with `parse`.
///
/// # Errors
/// If `parse` does not accept `text`.
pub fn argument<T>(
    name: &str,
    text: &str,
    parse: impl FnOnce(&Value) -> Result<T, Mismatch>,
) -> Result<T, InputError> {
    parse(&Value::Text(text.to_owned()))
        .map_err(|mismatch| InputError::new(name, mismatch.what).allowed(mismatch.allowed))
}

/// Parses a duration.
///
/// # Errors
/// Unless the value is a string with a unit of time.
pub fn duration(value: &Value) -> Result<Duration, Mismatch> {
    quantity(value, "a duration", "1.5 ms", &DURATIONS).map(Duration::from_nanos)
}

/// Parses a positive rate.
///
/// # Errors
/// Unless the value is a string with a unit of rate, from 1 bps to 1 Tbps.
pub fn bit_rate(value: &Value) -> Result<BitRate, Mismatch> {
    let bps = quantity(value, "a rate", "150Mbps", &RATES)?;
    if !(1..=1_000_000_000_000).contains(&bps) {
        return Err(Mismatch::new(format!("{value} is out of range"), "1bps to 1000Gbps"));
    }
    Ok(BitRate::from_bps(bps))
}

/// Parses an amount of data.
///
/// # Errors
/// Unless the value is a string with a unit of data.
pub fn byte_count(value: &Value) -> Result<Bytes, Mismatch> {
    quantity(value, "a size", "64 KiB", &SIZES).map(Bytes)
}

/// Parses a fraction of 1, given in per cent.
///
/// # Errors
/// Unless the value is a string from "0 %" to "100 %".
pub fn ratio(value: &Value) -> Result<Ratio, Mismatch> {
    let parts = quantity(value, "a share", "1 %", &RATIOS)?;
    u32::try_from(parts)
        .ok()
        .and_then(Ratio::from_parts_per_billion)
        .ok_or_else(|| Mismatch::new(format!("{value} is out of range"), "\"0 %\" to \"100 %\""))
}

/// Parses a ratio of powers, which may be negative. Returns thousandths of a decibel.
///
/// # Errors
/// Unless the value is a string such as "25 dB" or "-3.5 dB".
pub fn millidecibels(value: &Value) -> Result<i32, Mismatch> {
    signed_thousandths(value, "a ratio of powers", "25 dB", &DECIBELS)
}

/// Parses a power in dBm.
///
/// # Errors
/// Unless the value is a string such as "16 dBm".
pub fn level_dbm(value: &Value) -> Result<f64, Mismatch> {
    signed_thousandths(value, "a power", "16 dBm", &LEVELS).map(|millis| f64::from(millis) / 1e3)
}

fn signed_thousandths(
    value: &Value,
    noun: &str,
    example: &str,
    units: &[(&str, u64)],
) -> Result<i32, Mismatch> {
    let negative = match value {
        Value::Text(text) => text.trim().strip_prefix('-').map(|rest| Value::Text(rest.to_owned())),
        _ => None,
    };
    let magnitude = quantity(negative.as_ref().unwrap_or(value), noun, example, units)?;
    let magnitude = i32::try_from(magnitude)
        .map_err(|_| Mismatch::new(format!("{value} is out of range"), "less than a million"))?;
    Ok(if negative.is_some() { -magnitude } else { magnitude })
}

/// Parses a distance. Returns metres.
///
/// # Errors
/// Unless the value is a string such as "12 m".
pub fn metres(value: &Value) -> Result<f64, Mismatch> {
    quantity(value, "a distance", "12 m", &LENGTHS).map(|millis| millis as f64 / 1e3)
}

/// Parses a number of packets; `None` for any other text.
pub fn packets(text: &str) -> Option<u64> {
    scaled(text, &PACKETS)
}

/// Parses a Boolean.
///
/// # Errors
/// Unless the value is a Boolean.
pub fn flag(value: &Value) -> Result<bool, Mismatch> {
    match value {
        Value::Flag(flag) => Ok(*flag),
        other => Err(Mismatch::new(format!("{other} is {}", other.kind()), "true or false")),
    }
}

/// Parses a string.
///
/// # Errors
/// Unless the value is a string.
pub fn text(value: &Value) -> Result<String, Mismatch> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        other => Err(Mismatch::new(format!("{other} is {}", other.kind()), "a string in quotes")),
    }
}

/// Parses a string without control characters, which a terminal displays on one line.
///
/// # Errors
/// Unless the value is a string without control characters.
pub fn line(value: &Value) -> Result<String, Mismatch> {
    let line = text(value)?;
    if line.chars().any(char::is_control) {
        return Err(Mismatch::new(format!("{value} has control characters"), "one line of plain text"));
    }
    Ok(line)
}

/// Parses a string that can be the name of results and of their directory: one line without control characters.
///
/// # Errors
/// Same as [`line`]. Also if the text cannot be part of a file name.
pub fn title(value: &Value) -> Result<String, Mismatch> {
    let title = line(value)?;
    if matches!(title.trim(), "" | "." | "..") {
        return Err(Mismatch::new(format!("{value} is not a name"), "one line of plain text, not empty"));
    }
    Ok(title)
}

/// Parses a list of strings.
///
/// # Errors
/// Unless the value is a list of strings.
pub fn texts(value: &Value) -> Result<Vec<String>, Mismatch> {
    let wrong = || Mismatch::new(format!("{value} is not a list of strings"), "[\"a\", \"b\"]");
    let Value::List(items) = value else { return Err(wrong()) };
    items.iter().map(|item| text(&item.value).map_err(|_| wrong())).collect()
}

/// Parses a finite number without a unit, possibly with a fraction.
///
/// # Errors
/// Unless the value is a number.
pub fn number(value: &Value) -> Result<f64, Mismatch> {
    match value {
        Value::Integer(number) => Ok(*number as f64),
        Value::Float(number) if number.is_finite() => Ok(*number),
        other => Err(Mismatch::new(format!("{other} is no number"), "a number without a unit")),
    }
}

/// Parses a list of numbers, possibly with fractions.
///
/// # Errors
/// Unless the value is a list of numbers.
pub fn numbers(value: &Value) -> Result<Vec<f64>, Mismatch> {
    let wrong = || Mismatch::new(format!("{value} is not a list of numbers"), "[1, 2.5]");
    let Value::List(items) = value else { return Err(wrong()) };
    let number = |item: &super::Node| match item.value {
        Value::Integer(number) => Ok(number as f64),
        Value::Float(number) => Ok(number),
        _ => Err(wrong()),
    };
    items.iter().map(number).collect()
}

/// Returns a parser for integers in `range`.
pub fn integer(range: RangeInclusive<u32>) -> impl Fn(&Value) -> Result<u32, Mismatch> {
    move |value| {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        match value {
            Value::Integer(number) => u32::try_from(*number)
                .ok()
                .filter(|number| range.contains(number))
                .ok_or_else(|| Mismatch::new(format!("{number} is out of range"), allowed)),
            other => Err(Mismatch::new(format!("{other} is {}", other.kind()), allowed)),
        }
    }
}

/// Returns a parser that accepts values of `parse` in `range`, whose limits are written with their unit.
pub fn within<T: PartialOrd + Display>(
    range: RangeInclusive<T>,
    parse: impl Fn(&Value) -> Result<T, Mismatch>,
) -> impl Fn(&Value) -> Result<T, Mismatch> {
    let allowed = format!("{} to {}", range.start(), range.end());
    within_limits(range, allowed, parse)
}

/// Returns a parser that accepts values of `parse` in `range`. `allowed` is the range with its unit, for messages about
/// numbers that do not have one.
pub fn within_limits<T: PartialOrd>(
    range: RangeInclusive<T>,
    allowed: String,
    parse: impl Fn(&Value) -> Result<T, Mismatch>,
) -> impl Fn(&Value) -> Result<T, Mismatch> {
    move |value| {
        let parsed = parse(value)?;
        if range.contains(&parsed) {
            return Ok(parsed);
        }
        Err(Mismatch::new(format!("{value} is out of range"), allowed.clone()))
    }
}

/// The user's name for `value`; `None` for a value that users cannot select.
pub fn name_of<T: PartialEq>(choices: &[(&'static str, T)], value: &T) -> Option<&'static str> {
    choices.iter().find(|(_, choice)| choice == value).map(|(name, _)| *name)
}

/// Returns a parser for one of `choices` by name.
pub fn one_of<T: Clone>(choices: &[(&'static str, T)]) -> impl Fn(&Value) -> Result<T, Mismatch> {
    move |value| {
        let names = || choices.iter().map(|(name, _)| *name);
        let allowed = || names().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let name = text(value).map_err(|mismatch| Mismatch::new(mismatch.what, allowed()))?;
        choices.iter().find(|(choice, _)| *choice == name).map(|(_, chosen)| chosen.clone()).ok_or_else(
            || {
                let hint = did_you_mean(&name, names());
                Mismatch::new(format!("unknown {name:?}{hint}"), allowed())
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_value(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn units_are_exact() {
        assert_eq!(duration(&text_value("102.4ms")).unwrap(), Duration::from_micros(102_400));
        assert_eq!(duration(&text_value("1_000 us")).unwrap(), Duration::from_millis(1));
        assert_eq!(bit_rate(&text_value("6.5 Mbps")).unwrap(), BitRate::from_kbps(6_500));
        assert_eq!(byte_count(&text_value("64 KiB")).unwrap(), Bytes(65_536));
        assert_eq!(byte_count(&text_value("1TiB")).unwrap(), Bytes(1 << 40));
        assert_eq!(byte_count(&text_value("0.5 TB")).unwrap(), Bytes(500_000_000_000));
        assert_eq!(ratio(&text_value("0.1 %")).unwrap(), Ratio::from_fraction(0.001).unwrap());
        assert_eq!(millidecibels(&text_value("-3.5 dB")).unwrap(), -3_500);
        assert!((level_dbm(&text_value("16dBm")).unwrap() - 16.0).abs() < 1e-9);
        assert!((metres(&text_value("0.5 km")).unwrap() - 500.0).abs() < 1e-9);
    }

    #[test]
    fn fractions_finer_than_the_unit_are_rounded_to_nearest() {
        let nanos = |text| duration(&text_value(text)).unwrap().as_nanos();
        assert_eq!(["1.4 ns", "1.5 ns", "1.6 ns"].map(nanos), [1, 2, 2]);
        assert_eq!(["0.0004 us", "0.0005 us", "0.9995 us"].map(nanos), [0, 1, 1_000]);
        let bps = |text| bit_rate(&text_value(text)).unwrap().as_bps();
        assert_eq!(["1.4999 kbps", "1.4994 kbps", "1.4995 kbps"].map(bps), [1_500, 1_499, 1_500]);
        assert_eq!(["2.4 B", "2.5 B"].map(|text| byte_count(&text_value(text)).unwrap().0), [2, 3]);
        assert_eq!(
            ["-0.0004 dB", "-0.0005 dB"].map(|text| millidecibels(&text_value(text)).unwrap()),
            [0, -1]
        );
        assert!(bit_rate(&text_value("0.4 bps")).is_err(), "rounded to none");
    }

    #[test]
    fn a_unit_is_what_follows_a_number() {
        let texts = ["14 s", "-3dB", "5 %", "4 datagrams", "802.11ac", "6 MiB\" with \"auto", "s", "1, 2 s"];
        let units = [Some("s"), Some("dB"), Some("%"), Some("datagrams"), None, None, None, None];
        assert_eq!(texts.map(unit), units);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "ms", "1", "1 furlong", "1.2.3ms", "-1ms", ".ms", "1e3ms", "99999999999999999999s"] {
            assert!(duration(&text_value(text)).is_err(), "{text:?}");
        }
        assert!(ratio(&text_value("100.1 %")).is_err());
        assert!(millidecibels(&text_value("--3 dB")).is_err() && millidecibels(&text_value("3")).is_err());
        assert!(metres(&text_value("-1 m")).is_err() && level_dbm(&text_value("16 dB")).is_err());
        assert!(bit_rate(&text_value("0Mbps")).is_err());
    }
}
