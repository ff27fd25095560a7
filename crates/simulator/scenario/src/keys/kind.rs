//! The types of values and their limits. Each type reads a value, writes one, and describes the allowed values.

use std::fmt::Display;
use std::ops::RangeInclusive;

use tacit_link::wifi::Decibels;
use tacit_link::{Loss, QueueLimit};
use tacit_packet::units::{BitRate, Bytes, Duration, Ratio};

use crate::input::{
    self, MAX_DURATION, Mismatch, Value, bit_rate, byte_count, decibels, duration, level_dbm, metres,
    name_of, one_of, within, within_limits,
};

/// A type of values and its limits.
pub(crate) trait Kind {
    /// Type of the parsed value.
    type Value;

    /// Parses a value from a scenario.
    fn read(&self, value: &Value) -> Result<Self::Value, Mismatch>;

    /// The value as TOML; [`NONE`] for values that cannot be written.
    fn write(&self, value: &Self::Value) -> String;

    /// The allowed values, in Markdown.
    fn allowed(&self) -> String;
}

/// Text for a setting without a value.
pub(crate) const NONE: &str = "none";

/// A duration.
pub(crate) struct Span {
    least: Duration,
    most: Duration,
}

/// Any duration up to an hour.
pub(crate) const ANY_TIME: Span = Span { least: Duration::ZERO, most: MAX_DURATION };
/// Any duration up to an hour, but not zero.
pub(crate) const SOME_TIME: Span = Span { least: Duration::from_nanos(1), most: MAX_DURATION };

impl Span {
    pub(crate) const fn between(least: Duration, most: Duration) -> Self {
        Self { least, most }
    }

    pub(crate) const fn up_to(most: Duration) -> Self {
        Self { least: Duration::ZERO, most }
    }

    pub(crate) const fn from(least: Duration) -> Self {
        Self { least, most: MAX_DURATION }
    }
}

impl Kind for Span {
    type Value = Duration;

    fn read(&self, value: &Value) -> Result<Duration, Mismatch> {
        within(self.least..=self.most, duration)(value)
    }

    fn write(&self, value: &Duration) -> String {
        if *value == Duration::ZERO { quoted("0 s") } else { quoted(spaced(&value.to_string())) }
    }

    fn allowed(&self) -> String {
        let spoken = |time: Duration| match time {
            MAX_DURATION => "60 min".to_owned(),
            other => spaced(&other.to_string()),
        };
        match (self.least.as_nanos(), self.most) {
            (0 | 1, most) => format!("up to {}", spoken(most)),
            (_, MAX_DURATION) => format!("from {}", spoken(self.least)),
            (_, most) => format!("{} to {}", spoken(self.least), spoken(most)),
        }
    }
}

/// A number of bytes.
pub(crate) struct Size(pub u64, pub u64);

impl Kind for Size {
    type Value = Bytes;

    fn read(&self, value: &Value) -> Result<Bytes, Mismatch> {
        within(Bytes(self.0)..=Bytes(self.1), byte_count)(value)
    }

    fn write(&self, value: &Bytes) -> String {
        quoted(size(*value))
    }

    fn allowed(&self) -> String {
        format!("{} to {}", size(Bytes(self.0)), size(Bytes(self.1)))
    }
}

/// A whole number.
pub(crate) struct Whole<T = u32>(pub T, pub T);

impl<T: Copy + Display + Into<u32> + TryFrom<u32>> Kind for Whole<T> {
    type Value = T;

    fn read(&self, value: &Value) -> Result<T, Mismatch> {
        let number = input::integer(self.0.into()..=self.1.into())(value)?;
        Ok(T::try_from(number).unwrap_or(self.1))
    }

    fn write(&self, value: &T) -> String {
        value.to_string()
    }

    fn allowed(&self) -> String {
        format!("{} to {}", self.0, self.1)
    }
}

/// A number without a unit, possibly with a fraction.
pub(crate) struct Number(pub RangeInclusive<f64>);

impl Kind for Number {
    type Value = f64;

    fn read(&self, value: &Value) -> Result<f64, Mismatch> {
        within(self.0.clone(), input::number)(value)
    }

    fn write(&self, value: &f64) -> String {
        value.to_string()
    }

    fn allowed(&self) -> String {
        format!("{} to {}", self.0.start(), self.0.end())
    }
}

/// A ratio of powers. Limits are in thousandths of a decibel.
pub(crate) struct PowerRatio(pub i32, pub i32);

impl Kind for PowerRatio {
    type Value = Decibels;

    fn read(&self, value: &Value) -> Result<Decibels, Mismatch> {
        within(Decibels::from_millis(self.0)..=Decibels::from_millis(self.1), decibels)(value)
    }

    fn write(&self, value: &Decibels) -> String {
        quoted(format!("{} dB", value.as_db()))
    }

    fn allowed(&self) -> String {
        format!("{} to {} dB", f64::from(self.0) / 1e3, f64::from(self.1) / 1e3)
    }
}

/// A power in dBm.
pub(crate) struct Power(pub RangeInclusive<f64>);

impl Kind for Power {
    type Value = f64;

    fn read(&self, value: &Value) -> Result<f64, Mismatch> {
        within_limits(self.0.clone(), self.allowed(), level_dbm)(value)
    }

    fn write(&self, value: &f64) -> String {
        quoted(format!("{value} dBm"))
    }

    fn allowed(&self) -> String {
        format!("{} to {} dBm", self.0.start(), self.0.end())
    }
}

/// Defines kinds without parameters: how each is read and written, and its allowed values.
macro_rules! plain_kinds {
    ($($(#[$about:meta])* $kind:ident: $value:ty, $read:expr, |$written:ident| $write:expr, $allowed:literal;)*) => {$(
        $(#[$about])*
        pub(crate) struct $kind;

        impl Kind for $kind {
            type Value = $value;

            fn read(&self, value: &Value) -> Result<$value, Mismatch> {
                $read(value)
            }

            fn write(&self, $written: &$value) -> String {
                $write
            }

            fn allowed(&self) -> String {
                $allowed.to_owned()
            }
        }
    )*};
}

plain_kinds! {
    /// A bit rate.
    Rate: BitRate, bit_rate, |rate| quoted(rate_text(*rate)), "a rate";
    /// A fraction of one.
    Share: Ratio, input::ratio, |share| share_text(*share), "a share";
    /// A distance in metres, from adjacent antennas to a directional link.
    Distance: f64, distance, |metres| quoted(format!("{metres} m")), "0.1 m to 100 km";
    /// True or false.
    Flag: bool, input::flag, |flag| flag.to_string(), "flag";
    /// Losses of a link.
    Losses: Loss, input::loss, |_losses| NONE.to_owned(), "a loss";
    /// Limit of a queue.
    Limit: QueueLimit, input::queue_limit, |limit| quoted(limit_text(limit)), "a queue";
}

impl Distance {
    pub(crate) const METRES: RangeInclusive<f64> = 0.1..=100_000.0;
}

fn distance(value: &Value) -> Result<f64, Mismatch> {
    within_limits(Distance::METRES, Distance.allowed(), metres)(value)
}

fn rate_text(rate: BitRate) -> String {
    match rate.as_bps() {
        bps if bps >= 1_000_000_000 && bps % 1_000_000_000 == 0 => format!("{}Gbps", bps / 1_000_000_000),
        _ => rate.to_string(),
    }
}

fn share_text(share: Ratio) -> String {
    if share == Ratio::ZERO { NONE.to_owned() } else { quoted(share) }
}

fn limit_text(limit: &QueueLimit) -> String {
    let packets = limit.packets.map(|packets| format!("{packets} packets"));
    let parts: Vec<String> = packets.into_iter().chain(limit.bytes.map(size)).collect();
    if parts.is_empty() { "unlimited".to_owned() } else { parts.join(", ") }
}

/// One of several named values.
pub(crate) struct Choice<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Clone + PartialEq> Kind for Choice<T> {
    type Value = T;

    fn read(&self, value: &Value) -> Result<T, Mismatch> {
        one_of(self.0)(value)
    }

    fn write(&self, value: &T) -> String {
        name_of(self.0, value).map_or_else(|| NONE.to_owned(), quoted)
    }

    fn allowed(&self) -> String {
        self.0.iter().map(|(name, _)| format!("`\"{name}\"`")).collect::<Vec<_>>().join(", ")
    }
}

/// One of several named values, in a key that was a flag: the values that `false` and `true` stand for.
pub(crate) struct OnceFlag<T: 'static> {
    pub choice: Choice<T>,
    pub off: T,
    pub on: T,
}

impl<T: Clone + PartialEq> Kind for OnceFlag<T> {
    type Value = T;

    fn read(&self, value: &Value) -> Result<T, Mismatch> {
        match value {
            Value::Flag(true) => Ok(self.on.clone()),
            Value::Flag(false) => Ok(self.off.clone()),
            other => self.choice.read(other),
        }
    }

    fn write(&self, value: &T) -> String {
        self.choice.write(value)
    }

    fn allowed(&self) -> String {
        self.choice.allowed()
    }
}

/// A value of the inner kind, or `"none"`.
pub(crate) struct OrNone<K>(pub K);

impl<K: Kind> Kind for OrNone<K> {
    type Value = Option<K::Value>;

    fn read(&self, value: &Value) -> Result<Option<K::Value>, Mismatch> {
        match value {
            Value::Text(text) if text == NONE => Ok(None),
            other => self.0.read(other).map(Some).map_err(|mismatch| or(mismatch, "\"none\"")),
        }
    }

    fn write(&self, value: &Option<K::Value>) -> String {
        value.as_ref().map_or_else(|| quoted(NONE), |value| self.0.write(value))
    }

    fn allowed(&self) -> String {
        format!("{}, or `\"none\"`", self.0.allowed())
    }
}

/// A value of the inner kind; the setting has no value by default.
pub(crate) struct Given<K>(pub K);

impl<K: Kind> Kind for Given<K> {
    type Value = Option<K::Value>;

    fn read(&self, value: &Value) -> Result<Option<K::Value>, Mismatch> {
        self.0.read(value).map(Some)
    }

    fn write(&self, value: &Option<K::Value>) -> String {
        value.as_ref().map_or_else(|| NONE.to_owned(), |value| self.0.write(value))
    }

    fn allowed(&self) -> String {
        self.0.allowed()
    }
}

/// A type that only one key uses.
pub(crate) struct Own<T> {
    pub read: fn(&Value) -> Result<T, Mismatch>,
    pub write: fn(&T) -> String,
    pub allowed: &'static str,
}

impl<T> Kind for Own<T> {
    type Value = T;

    fn read(&self, value: &Value) -> Result<T, Mismatch> {
        (self.read)(value)
    }

    fn write(&self, value: &T) -> String {
        (self.write)(value)
    }

    fn allowed(&self) -> String {
        self.allowed.to_owned()
    }
}

/// Adds another allowed value to `mismatch`.
pub(crate) fn or(mut mismatch: Mismatch, also: &str) -> Mismatch {
    mismatch.allowed.push_str(", or ");
    mismatch.allowed.push_str(also);
    mismatch
}

pub(crate) fn quoted(text: impl Display) -> String {
    format!("\"{text}\"")
}

/// Formats bytes in the largest unit that leaves no fraction.
fn size(bytes: Bytes) -> String {
    let binary = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = |(_, shift): &(_, u32)| bytes.0.trailing_zeros() >= *shift && bytes.0 > 0;
    match binary.into_iter().find(fits) {
        Some((unit, shift)) => format!("{} {unit}", bytes.0 >> shift),
        None if bytes.0 >= 10_000 && bytes.0.is_multiple_of(1_000) => format!("{} kB", bytes.0 / 1_000),
        None => format!("{} B", bytes.0),
    }
}

/// Inserts a space before the unit.
fn spaced(quantity: &str) -> String {
    let unit = quantity.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(quantity.len());
    format!("{} {}", &quantity[..unit], &quantity[unit..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_a_flag_still_reads_one() {
        let kind = OnceFlag { choice: Choice(&[("none", 0), ("some", 1), ("all", 2)]), off: 0, on: 2 };
        assert_eq!([false, true].map(|flag| kind.read(&Value::Flag(flag)).unwrap()), [0, 2]);
        assert_eq!(kind.read(&Value::Text("some".to_owned())).unwrap(), 1);
        assert_eq!(kind.write(&2), "\"all\"");
        assert!(kind.read(&Value::Integer(1)).is_err());
    }
}
