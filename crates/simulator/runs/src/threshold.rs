//! Conditions on results as accepted by `--fail-if`: `delay_p95_ms > 80`, `hack-batch.goodput_mbps < 100 Mb/s`.

use std::fmt;

use tacit_scenario::InputError;
use tacit_scenario::input::{did_you_mean, few};

use crate::metric::PAGE;

const PLACE: &str = "--fail-if";
const SHAPE: &str = "NAME < NUMBER, with <, <=, > or >=, such as 'delay_p95_ms > 80'";

/// A value that a condition can refer to by its name in JSON, which ends in the unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Its name in the output of `--json`.
    pub name: String,
    /// `None` if it does not apply.
    pub value: Option<f64>,
}

impl Reading {
    /// Creates a reading.
    pub fn new(name: impl Into<String>, value: Option<f64>) -> Self {
        Self { name: name.into(), value }
    }
}

/// A condition that results must not satisfy.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    text: String,
    scheme: Option<String>,
    name: String,
    relation: Relation,
    /// The limit in the unit of `name`.
    limit: f64,
}

/// The result of evaluating a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The measured value, in the unit of the condition's name.
    pub measured: f64,
    /// True if the condition is satisfied, which means failure.
    pub broken: bool,
    /// Both as text: `delay_p95_ms is 93.2, and may not be > 80`.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    const ALL: [(&'static str, Self); 4] =
        [("<=", Self::LessOrEqual), (">=", Self::GreaterOrEqual), ("<", Self::Less), (">", Self::Greater)];

    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Self::Less => a < b,
            Self::LessOrEqual => a <= b,
            Self::Greater => a > b,
            Self::GreaterOrEqual => a >= b,
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = Self::ALL.iter().find(|(_, relation)| relation == self).map_or("", |(sign, _)| sign);
        f.write_str(sign)
    }
}

/// Units of one kind: the suffix in names, the notations of users, and the factor relative to the first unit.
type Family = &'static [(&'static str, &'static [&'static str], f64)];

const FAMILIES: [Family; 2] = [
    &[
        ("_bps", &["b/s", "bps"], 1.0),
        ("_kbps", &["kb/s", "kbps"], 1e3),
        ("_mbps", &["Mb/s", "Mbps", "mbps"], 1e6),
        ("_gbps", &["Gb/s", "Gbps", "gbps"], 1e9),
    ],
    &[("_us", &["us"], 1.0), ("_ms", &["ms"], 1e3), ("_s", &["s"], 1e6)],
];

/// A unit with its factor relative to the first unit of its family.
struct Unit {
    family: Family,
    factor: f64,
    end: &'static str,
}

impl Unit {
    /// The unit given by the suffix of a name.
    fn from_name(name: &str) -> Option<Self> {
        let ends = |(end, _, factor): &(&'static str, _, f64)| name.ends_with(end).then_some((*end, *factor));
        FAMILIES.into_iter().find_map(|family| {
            // No suffix is the end of another, so at most one matches.
            let (end, factor) = family.iter().filter_map(ends).max_by_key(|(end, _)| end.len())?;
            // A rate per second is not a time.
            (!name.ends_with("_per_s")).then_some(Self { family, factor, end })
        })
    }
}

impl Threshold {
    /// Parses `[SCHEME.]NAME RELATION NUMBER[UNIT]`.
    ///
    /// # Errors
    /// For any other text, and for a unit that does not fit the name.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let wrong = |what: String| InputError::new(format!("{PLACE} {text:?}"), what).allowed(SHAPE);
        let at = text.find(['<', '>']).ok_or_else(|| wrong("it has no relation".into()))?;
        let (left, right) = text.split_at(at);
        let (sign, relation) = Relation::ALL
            .into_iter()
            .find(|(sign, _)| right.starts_with(sign))
            .ok_or_else(|| wrong("it has no relation".into()))?;
        let (scheme, name) = match left.trim().split_once('.') {
            Some((scheme, name)) => (Some(scheme.to_owned()), name),
            None => (None, left.trim()),
        };
        let plain = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        if !plain(name) || !scheme.as_deref().is_none_or(plain) {
            return Err(wrong(format!("{:?} is no name", left.trim())));
        }
        let right = right[sign.len()..].trim();
        let end = right.find(|c: char| !(c.is_ascii_digit() || "+-.e".contains(c))).unwrap_or(right.len());
        let (number, unit) = (right[..end].trim(), right[end..].trim());
        let number: f64 = number.parse().map_err(|_| wrong(format!("{right:?} is no number")))?;
        if !number.is_finite() {
            return Err(wrong(format!("{right:?} is no number")));
        }
        let factor = factor(name, unit).ok_or_else(|| wrong(format!("{name} is not in {unit}")))?;
        let limit = number * factor;
        Ok(Self { text: text.trim().to_owned(), scheme, name: current_name(name), relation, limit })
    }

    /// The condition as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The scheme to which it applies; `None` for all schemes.
    pub fn scheme(&self) -> Option<&str> {
        self.scheme.as_deref()
    }

    /// Checks that `known` contains the name, in any unit of its kind.
    ///
    /// # Errors
    /// If it does not.
    pub fn check<'a>(&self, known: impl IntoIterator<Item = &'a str>) -> Result<(), InputError> {
        let known: Vec<&str> = known.into_iter().collect();
        if known.iter().any(|name| self.factor_of(name).is_some()) {
            return Ok(());
        }
        let hint = did_you_mean(&self.name, known.iter().copied());
        let what = format!("nothing is called {}{hint}", self.name);
        Err(InputError::new(format!("{PLACE} {:?}", self.text), what).allowed(few(&self.name, &known, PAGE)))
    }

    /// Evaluates the condition for these results.
    ///
    /// # Errors
    /// If the reading is missing or has no value: a condition on an unmeasured value does not pass.
    pub fn judge(&self, readings: &[Reading]) -> Result<Verdict, InputError> {
        self.check(readings.iter().map(|reading| reading.name.as_str()))?;
        // The exact name takes precedence over one in another unit.
        let found = readings
            .iter()
            .filter_map(|reading| Some((self.factor_of(&reading.name)?, reading)))
            .max_by_key(|(_, reading)| reading.name == self.name);
        let value = found.and_then(|(factor, reading)| Some(reading.value? * factor));
        let Some(measured) = value else {
            let what = format!("{} has no value here", self.name);
            return Err(InputError::new(format!("{PLACE} {:?}", self.text), what));
        };
        let message = format!(
            "{} is {}, and may not be {} {}",
            self.name,
            rounded(measured),
            self.relation,
            rounded(self.limit)
        );
        Ok(Verdict { measured, broken: self.relation.holds(measured, self.limit), message })
    }

    /// The factor from the reading `name` to the unit of this condition; `None` for an unrelated reading.
    fn factor_of(&self, name: &str) -> Option<f64> {
        if name == self.name {
            return Some(1.0);
        }
        let (unit, other) = (Unit::from_name(&self.name)?, Unit::from_name(name)?);
        let same = self.name.strip_suffix(unit.end)? == name.strip_suffix(other.end)?
            && std::ptr::eq(unit.family, other.family);
        same.then_some(other.factor / unit.factor)
    }
}

/// Converts an old name to the current one. Live hops used to put the percentile first: `p95_delay_ms` for
/// `delay_p95_ms`.
fn current_name(name: &str) -> String {
    let turned = ["p50", "p95", "p99", "max"].into_iter().find_map(|which| {
        let (before, after) = name.split_once(&format!("{which}_delay_"))?;
        (before.is_empty() || before.ends_with('_')).then(|| format!("{before}delay_{which}_{after}"))
    });
    turned.unwrap_or_else(|| name.to_owned())
}

/// The factor from `unit` to the unit of `name`; `None` if they do not match.
fn factor(name: &str, unit: &str) -> Option<f64> {
    let named = Unit::from_name(name);
    match (unit, named) {
        ("", _) => Some(1.0),
        // Shares and gains have no unit.
        ("%", None) => Some(if name.ends_with("_percent") { 1.0 } else { 0.01 }),
        (_, Some(named)) => {
            let (.., factor) = named.family.iter().find(|(_, written, _)| written.contains(&unit))?;
            Some(factor / named.factor)
        }
        (_, None) => None,
    }
}

/// Rounds to four significant digits, or to an integer.
fn rounded(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { (3 - value.abs().log10().floor() as i32).clamp(0, 9) };
    let text = format!("{value:.*}", digits as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn judged(text: &str) -> Result<Verdict, String> {
        let readings = [
            Reading::new("goodput_bps", Some(98.5e6)),
            Reading::new("down_delay_p95_ms", Some(93.25)),
            Reading::new("retry_share", Some(0.07)),
            Reading::new("collisions_per_s", Some(12.0)),
            Reading::new("one_way_delay_p95_us", None),
        ];
        let threshold = Threshold::parse(text).map_err(|error| error.to_string())?;
        threshold.judge(&readings).map_err(|error| error.to_string())
    }

    #[test]
    fn conditions_are_held_against_readings_in_any_unit() {
        for (text, broken, message) in [
            ("goodput_bps < 100e6", true, "goodput_bps is 98500000, and may not be < 100000000"),
            ("goodput_mbps < 100", true, "goodput_mbps is 98.5, and may not be < 100"),
            ("goodput_mbps<98.5", false, "goodput_mbps is 98.5, and may not be < 98.5"),
            ("goodput_mbps <= 98.5", true, "goodput_mbps is 98.5, and may not be <= 98.5"),
            ("goodput_bps < 0.1 Gb/s", true, "goodput_bps is 98500000, and may not be < 100000000"),
            ("down_delay_p95_us > 80 ms", true, "down_delay_p95_us is 93250, and may not be > 80000"),
            ("down_delay_p95_ms >= 93.25", true, "down_delay_p95_ms is 93.25, and may not be >= 93.25"),
            // The former name in live hops.
            ("down_p95_delay_ms >= 93.25", true, "down_delay_p95_ms is 93.25, and may not be >= 93.25"),
            ("retry_share > 10 %", false, "retry_share is 0.07, and may not be > 0.1"),
            ("collisions_per_s > 12", false, "collisions_per_s is 12, and may not be > 12"),
        ] {
            let verdict = judged(text).unwrap();
            assert_eq!((verdict.broken, verdict.message.as_str()), (broken, message), "{text}");
        }
    }

    #[test]
    fn thresholds_that_cannot_be_judged_are_told() {
        for (text, expected) in [
            ("goodput_bps", "it has no relation"),
            ("goodput_bps = 3", "it has no relation"),
            ("goodput_bps > much", "\"much\" is no number"),
            ("goodput_bps > inf", "is no number"),
            ("goodput_bps > 3 ms", "goodput_bps is not in ms"),
            ("retry_share > 3 ms", "retry_share is not in ms"),
            ("collisions_per_s > 3 ms", "collisions_per_s is not in ms"),
            (" > 3", "\"\" is no name"),
            ("a.b.c > 3", "is no name"),
            ("throughput_bps > 3", "nothing is called throughput_bps"),
            (
                "goodput_ms > 3",
                "goodput_ms, did you mean \"goodput_bps\"?; allowed: goodput_bps, down_delay_p95_ms",
            ),
            ("one_way_delay_p95_ms > 80", "one_way_delay_p95_ms has no value here"),
        ] {
            let error = judged(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_condition_may_be_of_one_scheme() {
        let threshold = Threshold::parse("hack-batch.goodput_mbps < 100").unwrap();
        assert_eq!(threshold.scheme(), Some("hack-batch"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            if let Ok(threshold) = Threshold::parse(&text) {
                let _ = threshold.judge(&[Reading::new("goodput_bps", Some(1.0))]);
            }
        }
    }
}
