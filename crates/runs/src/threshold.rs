//! Conditions on results, as `--fail-if` takes them: `delay_p95_ms > 80`, `hack-batch.goodput_mbps < 100 Mb/s`.

use std::fmt;

use tacit_scenario::InputError;
use tacit_scenario::input::nearest;

const PLACE: &str = "--fail-if";
const SHAPE: &str = "NAME < NUMBER, with <, <=, > or >=, such as 'delay_p95_ms > 80'";

/// A number that a condition can be about, by its name in JSON; its unit is the name's end.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// As in `--json`.
    pub name: String,
    /// `None` where it has no meaning.
    pub value: Option<f64>,
}

impl Reading {
    /// A reading called `name`.
    pub fn new(name: impl Into<String>, value: Option<f64>) -> Self {
        Self { name: name.into(), value }
    }
}

/// A condition that results may not meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    text: String,
    scheme: Option<String>,
    name: String,
    relation: Relation,
    /// In the unit of `name`.
    limit: f64,
}

/// How a condition came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The measured value, in the unit of the condition's name.
    pub measured: f64,
    /// The condition holds: the forbidden has happened.
    pub broken: bool,
    /// Both in words: `delay_p95_ms is 93.2, and may not be > 80`.
    pub said: String,
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

/// Units of one kind: the ends of names, how users write them, and the factor of each to the first.
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

/// A unit by its factor to the first of its family.
struct Unit {
    family: Family,
    factor: f64,
    end: &'static str,
}

impl Unit {
    /// The unit that is the end of a name.
    fn of_name(name: &str) -> Option<Self> {
        let ends = |(end, _, factor): &(&'static str, _, f64)| name.ends_with(end).then_some((*end, *factor));
        FAMILIES.into_iter().find_map(|family| {
            // `_mbps` ends in no other end, and `_s` is the end of `_ms`: the longest counts.
            let (end, factor) = family.iter().filter_map(ends).max_by_key(|(end, _)| end.len())?;
            // Per second is no time.
            (!name.ends_with("_per_s")).then_some(Self { family, factor, end })
        })
    }
}

impl Threshold {
    /// Reads `[SCHEME.]NAME RELATION NUMBER[UNIT]`.
    ///
    /// # Errors
    /// For anything else, and a unit that the name has no place for.
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
        Ok(Self { text: text.trim().to_owned(), scheme, name: of_today(name), relation, limit })
    }

    /// The condition as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Of which scheme it is; of each if `None`.
    pub fn scheme(&self) -> Option<&str> {
        self.scheme.as_deref()
    }

    /// Makes sure that `known` has the name, in any unit of its kind.
    ///
    /// # Errors
    /// Where it has not.
    pub fn check<'a>(&self, known: impl IntoIterator<Item = &'a str>) -> Result<(), InputError> {
        let known: Vec<&str> = known.into_iter().collect();
        if known.iter().any(|name| self.factor_of(name).is_some()) {
            return Ok(());
        }
        let hint = nearest(&self.name, known.iter().copied());
        let hint = hint.map_or(String::new(), |near| format!(", did you mean {near:?}?"));
        let what = format!("nothing is called {}{hint}", self.name);
        Err(InputError::new(format!("{PLACE} {:?}", self.text), what).allowed(known.join(", ")))
    }

    /// Holds the condition against results.
    ///
    /// # Errors
    /// Where they have no such reading, or it has no value there: a value that was not measured is no pass.
    pub fn judge(&self, readings: &[Reading]) -> Result<Verdict, InputError> {
        self.check(readings.iter().map(|reading| reading.name.as_str()))?;
        // The name itself before one in another unit.
        let found = readings
            .iter()
            .filter_map(|reading| Some((self.factor_of(&reading.name)?, reading)))
            .max_by_key(|(_, reading)| reading.name == self.name);
        let value = found.and_then(|(factor, reading)| Some(reading.value? * factor));
        let Some(measured) = value else {
            let what = format!("{} has no value here", self.name);
            return Err(InputError::new(format!("{PLACE} {:?}", self.text), what));
        };
        let said = format!(
            "{} is {}, and may not be {} {}",
            self.name,
            rounded(measured),
            self.relation,
            rounded(self.limit)
        );
        Ok(Verdict { measured, broken: self.relation.holds(measured, self.limit), said })
    }

    /// The factor from a value of the reading called `name` to the unit of this condition's name; `None` for another
    /// reading.
    fn factor_of(&self, name: &str) -> Option<f64> {
        if name == self.name {
            return Some(1.0);
        }
        let (own, other) = (Unit::of_name(&self.name)?, Unit::of_name(name)?);
        let same = self.name.strip_suffix(own.end)? == name.strip_suffix(other.end)?
            && std::ptr::eq(own.family, other.family);
        same.then_some(other.factor / own.factor)
    }
}

/// A name as all results have it. Those of live hops once had the percentile first: `p95_delay_ms` of `delay_p95_ms`.
fn of_today(name: &str) -> String {
    let turned = ["p50", "p95", "p99", "max"].into_iter().find_map(|which| {
        let (before, after) = name.split_once(&format!("{which}_delay_"))?;
        (before.is_empty() || before.ends_with('_')).then(|| format!("{before}delay_{which}_{after}"))
    });
    turned.unwrap_or_else(|| name.to_owned())
}

/// The factor from a number in `unit` to the unit of `name`; `None` where there is none.
fn factor(name: &str, unit: &str) -> Option<f64> {
    let own = Unit::of_name(name);
    match (unit, own) {
        ("", _) => Some(1.0),
        // Shares and gains have no unit.
        ("%", None) => Some(if name.ends_with("_percent") { 1.0 } else { 0.01 }),
        (_, Some(own)) => {
            let (.., factor) = own.family.iter().find(|(_, written, _)| written.contains(&unit))?;
            Some(factor / own.factor)
        }
        (_, None) => None,
    }
}

/// Four digits, or all before the point.
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
        for (text, broken, said) in [
            ("goodput_bps < 100e6", true, "goodput_bps is 98500000, and may not be < 100000000"),
            ("goodput_mbps < 100", true, "goodput_mbps is 98.5, and may not be < 100"),
            ("goodput_mbps<98.5", false, "goodput_mbps is 98.5, and may not be < 98.5"),
            ("goodput_mbps <= 98.5", true, "goodput_mbps is 98.5, and may not be <= 98.5"),
            ("goodput_bps < 0.1 Gb/s", true, "goodput_bps is 98500000, and may not be < 100000000"),
            ("down_delay_p95_us > 80 ms", true, "down_delay_p95_us is 93250, and may not be > 80000"),
            ("down_delay_p95_ms >= 93.25", true, "down_delay_p95_ms is 93.25, and may not be >= 93.25"),
            // As live hops called it once.
            ("down_p95_delay_ms >= 93.25", true, "down_delay_p95_ms is 93.25, and may not be >= 93.25"),
            ("retry_share > 10 %", false, "retry_share is 0.07, and may not be > 0.1"),
            ("collisions_per_s > 12", false, "collisions_per_s is 12, and may not be > 12"),
        ] {
            let verdict = judged(text).unwrap();
            assert_eq!((verdict.broken, verdict.said.as_str()), (broken, said), "{text}");
        }
    }

    #[test]
    fn thresholds_that_cannot_be_judged_are_told() {
        for (text, told) in [
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
            assert!(error.contains(told), "{text}: {error}");
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
