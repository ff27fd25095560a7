//! A claim about a figure: its statement, the allowed range of the measured value, and its verdict.

use std::fmt;

use serde::{Serialize, Serializer};

use super::value;
use tacit_scenario::InputError;
use tacit_scenario::input::{Mismatch, Section, Value, number, numbers, one_of, ratio, text};

/// A claim from a figure file. `M` is the type of its measure.
#[derive(Clone, Debug)]
pub(super) struct Claim<M> {
    pub text: String,
    pub unit: String,
    pub measure: M,
    pub statement: Judgement,
    /// The allowed range of the value in a whole run, if the statement does not decide.
    range: Option<Range>,
    /// How to judge quick runs, if different.
    quick: Option<Quick>,
}

/// How to judge quick runs, if different from whole runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quick {
    /// By a separate range. If whole runs have no range, only they must satisfy the statement itself.
    Within(Range),
    /// Not at all, because quick runs are too few or too short.
    LeftOut,
}

/// The statement of a claim.
#[derive(Clone, Debug)]
pub(super) enum Judgement {
    /// A value from another source, or a goal.
    Value(Reference),
    /// A range measured earlier with tacit itself: a value outside it indicates a change. It does not reproduce a
    /// claim.
    Regression,
}

/// A value to reproduce or to reach.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub value: f64,
    /// Source of the value: the paper, a formula, or another simulator.
    pub source: String,
    pub tolerance: f64,
    pub bound: Bound,
    /// Why the value is missed.
    pub deviation: Option<String>,
}

/// On which sides of the paper's value the tolerance applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// On both.
    Both,
    /// The value minus the tolerance must be reached or exceeded.
    AtLeast,
    /// The value plus the tolerance must not be exceeded.
    AtMost,
}

/// A range including its ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Range {
    fn contains(self, number: f64) -> bool {
        (self.low..=self.high).contains(&number)
    }

    /// Wider than the size of its middle, and in per cent, where a gain may be near nothing, than a point.
    fn is_wide(self, unit: &str) -> bool {
        let least = if SHARES.contains(&unit) { 1.0 } else { 0.0 };
        self.high - self.low > ((self.high + self.low).abs() / 2.0).max(least)
    }

    /// The range from the minimum to the maximum of `numbers`; `None` if there are none.
    pub(super) fn spanning(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        numbers
            .into_iter()
            .map(|number| Self { low: number, high: number })
            .reduce(|all, one| Self { low: all.low.min(one.low), high: all.high.max(one.high) })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", value(self.low), value(self.high))
    }
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.low, self.high].serialize(serializer)
    }
}

impl Reference {
    /// The smallest and the largest acceptable value. A side without a limit ends at the value itself.
    pub fn ends(&self) -> (f64, f64) {
        let low = if self.bound == Bound::AtMost { self.value } else { self.value - self.tolerance };
        let high = if self.bound == Bound::AtLeast { self.value } else { self.value + self.tolerance };
        (low, high)
    }

    fn holds(&self, measured: f64) -> bool {
        match self.bound {
            Bound::Both => (measured - self.value).abs() <= self.tolerance,
            Bound::AtLeast => measured >= self.value - self.tolerance,
            Bound::AtMost => measured <= self.value + self.tolerance,
        }
    }

    /// The largest tolerance that leaves something to claim: a quarter of the value. For a difference of 0 it is 5 points.
    fn tolerance_max(&self, unit: &str) -> f64 {
        match unit {
            _ if self.value != 0.0 => self.value.abs() / 4.0,
            "" => 0.05,
            unit if SHARES.contains(&unit) => 5.0,
            _ => 0.0,
        }
    }

    /// Whether every number of `range` would do.
    fn holds_all_over(&self, range: Range) -> bool {
        self.holds(range.low) && self.holds(range.high)
    }

    /// Whether any number in `range` is acceptable.
    fn holds_within(&self, range: Range) -> bool {
        let (low, high) = self.ends();
        match self.bound {
            Bound::Both => range.low <= high && range.high >= low,
            Bound::AtLeast => range.high >= low,
            Bound::AtMost => range.low <= high,
        }
    }

    /// The statement without its unit: a value with its tolerance, or a limit.
    fn words(&self) -> String {
        let off = |sign: &str| match self.tolerance {
            0.0 => value(self.value),
            tolerance => format!("{} {sign} {}", value(self.value), value(tolerance)),
        };
        match self.bound {
            Bound::Both => format!("{} ± {}", value(self.value), value(self.tolerance)),
            Bound::AtLeast => format!(">= {}", off("-")),
            Bound::AtMost => format!("<= {}", off("+")),
        }
    }
}

/// Units of shares and gains.
const SHARES: [&str; 2] = ["%", "points"];

/// Source of a value that was measured with tacit itself.
const REGRESSION: &str = "regression";

impl<M> Claim<M> {
    /// Reads `[[claim]]`. `default_source` is the default source of values in this figure.
    pub fn read(
        section: Section<'_>,
        default_source: &str,
        measure: impl FnOnce(Section<'_>) -> Result<M, InputError>,
    ) -> Result<Self, InputError> {
        let (statement, range) = match section.optional("regression", range)? {
            Some(range) => (Judgement::Regression, Some(range)),
            None => read_reference(&section, default_source)?,
        };
        let claim = Self {
            text: section.required("text", text)?,
            unit: section.or("unit", String::new(), text)?,
            measure: measure(section.section("measure")?)?,
            statement,
            range,
            quick: section.optional("quick", quick)?,
        };
        claim.can_fail(&section)?;
        section.finish()?;
        Ok(claim)
    }

    /// A claim that accepts almost any number, or a goal and its miss alike, says nothing.
    fn can_fail(&self, section: &Section<'_>) -> Result<(), InputError> {
        if let Some(reference) = self.reference()
            && reference.tolerance > reference.tolerance_max(&self.unit)
        {
            let what = format!("{} is too much for {}", value(reference.tolerance), value(reference.value));
            let allowed = format!("up to {}", value(reference.tolerance_max(&self.unit)));
            return Err(section.error("tolerance", what).allowed(allowed));
        }
        let quick = match self.quick {
            Some(Quick::Within(range)) => Some(range),
            Some(Quick::LeftOut) | None => None,
        };
        let key = if self.reference().is_some() { "measured" } else { "regression" };
        for (key, range) in [(key, self.range), ("quick", quick)] {
            if let Some(range) = range.filter(|range| range.is_wide(&self.unit)) {
                let allowed =
                    "ranges no wider than the size of their middle; numbers without a verdict are a [table]";
                return Err(section.error(key, format!("{range} is too wide")).allowed(allowed));
            }
        }
        if let (Some(quick), Some(reference)) = (quick, self.reference())
            && reference.holds_within(quick)
            && !reference.holds_all_over(quick)
        {
            let what = format!("{quick} holds hits and misses: {} is claimed", reference.words());
            return Err(section.error("quick", what).allowed("a range that misses all over, or none"));
        }
        Ok(())
    }

    /// The value from another source.
    pub fn reference(&self) -> Option<&Reference> {
        match &self.statement {
            Judgement::Value(reference) => Some(reference),
            Judgement::Regression => None,
        }
    }

    /// Whether quick runs do not judge it.
    pub fn is_left_out(&self) -> bool {
        self.quick == Some(Quick::LeftOut)
    }

    /// The outcome for a quick or whole run with the value `measured` and the range `over_seeds` over single seeds.
    pub fn judge(&self, measured: Option<f64>, over_seeds: Option<Range>, quick: bool) -> ClaimOutcome {
        let range = match self.quick {
            Some(Quick::Within(range)) if quick => Some(range),
            _ => self.range,
        };
        let reference = self.reference();
        let holds =
            measured.is_some_and(|measured| reference.is_some_and(|reference| reference.holds(measured)));
        let within = range.map(|range| measured.is_some_and(|measured| range.contains(measured)));
        let verdict = match (within, reference, holds) {
            (Some(false), ..) | (None, _, false) => Verdict::Fail,
            (Some(true), None, _) => Verdict::Kept,
            (Some(true), Some(_), false) => Verdict::Missed,
            (_, _, true) => Verdict::Pass,
        };
        ClaimOutcome {
            text: self.text.clone(),
            source: reference.map_or(REGRESSION, |reference| &reference.source).to_owned(),
            paper: reference.map(|reference| reference.value),
            tolerance: reference.map(|reference| reference.tolerance),
            bound: reference.map(|reference| reference.bound),
            statement: match (reference, range) {
                (Some(reference), _) => reference.words(),
                (None, range) => range.map_or_else(String::new, |range| range.to_string()),
            },
            unit: self.unit.clone(),
            measured,
            over_seeds,
            at: None,
            interval: None,
            range,
            pass: verdict == Verdict::Pass,
            verdict,
            deviation: reference.and_then(|reference| reference.deviation.clone()),
            skipped: None,
        }
    }
}

/// Reads a value with its tolerance, and the range of the measured value if the claim is missed.
fn read_reference(
    section: &Section<'_>,
    default_source: &str,
) -> Result<(Judgement, Option<Range>), InputError> {
    let value = section.required("paper", number)?;
    let bounds = [("at-least", Bound::AtLeast), ("at-most", Bound::AtMost)];
    let reference = Reference {
        value,
        source: section.or("source", default_source.to_owned(), text)?,
        tolerance: section.required("tolerance", |tolerated| tolerance(tolerated, value))?,
        bound: section.or("bound", Bound::Both, one_of(&bounds))?,
        deviation: section.optional("deviation", text)?,
    };
    if reference.source == REGRESSION {
        let what = "a range that was measured here has no value to reproduce";
        return Err(section.error("source", what).allowed("regression = [1, 2.5] instead of paper"));
    }
    let measured = section.optional("measured", range)?;
    match (&reference.deviation, measured) {
        (None, Some(_)) => Err(section.error("measured", "belongs to a deviation, which is not there")),
        (Some(_), None) => Err(section
            .error("deviation", "a missed claim states the range of the measured value")
            .allowed("measured = [1, 2.5] beside it")),
        (Some(_), Some(range)) if reference.holds_within(range) => Err(section
            .error("measured", format!("{range} is not missed all over: {} is claimed", reference.words()))
            .allowed("a range outside the claimed one")),
        (_, range) => Ok((Judgement::Value(reference), range)),
    }
}

/// Two numbers, the smaller one first.
fn range(value: &Value) -> Result<Range, Mismatch> {
    match numbers(value)?[..] {
        [low, high] if low <= high && low.is_finite() && high.is_finite() => Ok(Range { low, high }),
        _ => Err(Mismatch::new(format!("{value} is no range"), "[1, 2.5], the least first")),
    }
}

/// A range, or the marker that quick runs are not judged.
fn quick(value: &Value) -> Result<Quick, Mismatch> {
    const LEFT_OUT: &str = "left out";
    let allowed = |_| Mismatch::new(format!("{value} is no range"), format!("[1, 2.5] or {LEFT_OUT:?}"));
    match value {
        Value::Text(_) => one_of(&[(LEFT_OUT, Quick::LeftOut)])(value),
        _ => range(value).map(Quick::Within).map_err(allowed),
    }
}

/// A fraction of the paper's value, or a number in its unit.
fn tolerance(value: &Value, paper: f64) -> Result<f64, Mismatch> {
    match value {
        Value::Text(_) => ratio(value).map(|share| share.as_fraction() * paper.abs()),
        other => number(other).map_err(|_| {
            Mismatch::new(
                format!("{other} is no tolerance"),
                "\"2 %\" of the paper's value, or a number in its unit",
            )
        }),
    }
}

/// Outcome of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimOutcome {
    /// Text of the claim.
    pub text: String,
    /// Source of the value: the paper, a formula, or another simulator; `regression` if it was measured with tacit
    /// itself.
    pub source: String,
    /// The value from this source; null for a regression bound.
    pub paper: Option<f64>,
    /// Allowed deviation of the measured value, in the same unit.
    pub tolerance: Option<f64>,
    /// On which sides the tolerance applies.
    pub bound: Option<Bound>,
    /// The statement, without its unit.
    #[serde(skip)]
    pub statement: String,
    /// Unit of all numbers.
    pub unit: String,
    /// The measured value; null if it is unavailable.
    pub measured: Option<f64>,
    /// The minimum and maximum over single seeds; null without several seeds.
    pub over_seeds: Option<Range>,
    /// Position of the value: for the minimum or maximum of a grid, and for medians at one place.
    pub at: Option<f64>,
    /// The 95 % interval of the median over the seeds; null with fewer than six.
    pub interval: Option<Range>,
    /// The allowed range of the measured value, for missed claims and regression bounds.
    pub range: Option<Range>,
    /// True if the claim holds; always false for a regression bound.
    pub pass: bool,
    /// Its verdict.
    pub verdict: Verdict,
    /// Why it does not hold, if the reason is known and accepted.
    pub deviation: Option<String>,
    /// Why it is not judged: the machine's disturbance of live runs, and the acceptable amount.
    pub skipped: Option<String>,
}

impl ClaimOutcome {
    /// Marks the claim as not judged.
    pub(super) fn skip(&mut self, reason: String) {
        (self.pass, self.verdict, self.skipped) = (false, Verdict::Skipped, Some(reason));
    }

    /// True if the claim is missed without a known reason, or the value is outside the range in the file.
    pub const fn fails(&self) -> bool {
        matches!(self.verdict, Verdict::Fail)
    }

    /// An explanation of a verdict other than pass or fail.
    pub fn reason(&self) -> Option<String> {
        match (self.verdict, self.range, &self.deviation) {
            (Verdict::Skipped, ..) => self.skipped.clone(),
            (Verdict::Missed, _, None) => Some("in short; whole runs meet it".to_owned()),
            (Verdict::Missed, ..) => self.deviation.clone(),
            (Verdict::Fail, Some(range), Some(deviation)) => {
                Some(format!("not within {range}: the file's reason for the miss is wrong now ({deviation})"))
            }
            (Verdict::Fail, Some(range), None) => Some(format!("not within {range}, as it was before")),
            _ => None,
        }
    }

    /// The measured value without its unit. For the median of a cell, with its position and interval.
    pub(super) fn measured_words(&self) -> String {
        let measured = self.measured.map_or_else(|| "nothing".to_owned(), value);
        let interval = self.interval.map(|interval| format!("95 %: {interval}"));
        let at = self.at.map(|at| format!("at {}", value(at)));
        let details: Vec<String> = interval.into_iter().chain(at).collect();
        if details.is_empty() { measured } else { format!("{measured} ({})", details.join(", ")) }
    }
}

/// Who states the value of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The paper that the figure is of.
    Paper,
    /// tacit itself.
    Goal,
    /// ns-3, a formula, a standard, an argument.
    Other,
}

impl Origin {
    /// By the source of the value, which may have words behind it.
    pub fn from_source(source: &str) -> Self {
        let begins = |with: &[&str]| with.iter().any(|word| source.starts_with(word));
        if begins(&["goal"]) {
            Self::Goal
        } else if begins(&["paper", "section", "abstract"]) {
            Self::Paper
        } else {
            Self::Other
        }
    }
}

/// Verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// The claim does not hold for a stated reason, and the value is within the range in the file.
    Missed,
    /// The value is within the range that was measured earlier.
    Kept,
    /// Unknown: the machine was too busy for live runs.
    Skipped,
    /// The claim does not hold, or the measured value is outside the range in the file.
    Fail,
}

impl Verdict {
    /// The verdict as one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Missed => "missed",
            Self::Kept => "kept",
            Self::Skipped => "skipped",
            Self::Fail => "FAIL",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_scenario::input::Tree;

    fn read(toml: &str) -> Result<Claim<()>, InputError> {
        let tree = Tree::parse("test.toml", toml)?;
        Claim::read(Section::root("test.toml", &tree), "paper", |_| Ok(()))
    }

    fn verdict(toml: &str, measured: f64, quick: bool) -> (Verdict, Option<String>) {
        let outcome = read(toml).unwrap().judge(Some(measured), None, quick);
        (outcome.verdict, outcome.reason())
    }

    const PLAIN: &str = "text = \"t\"\npaper = 100\ntolerance = \"5 %\"\n";
    const MISSED: &str =
        "text = \"t\"\npaper = 100\ntolerance = 5\ndeviation = \"why\"\nmeasured = [80, 90]\n";

    #[test]
    fn a_claim_that_is_missed_without_a_reason_fails() {
        assert_eq!(verdict(PLAIN, 105.0, false), (Verdict::Pass, None));
        assert_eq!(verdict(PLAIN, 106.0, false), (Verdict::Fail, None));
        let nothing = read(PLAIN).unwrap().judge(None, None, false);
        assert_eq!((nothing.verdict, nothing.measured_words().as_str()), (Verdict::Fail, "nothing"));
    }

    #[test]
    fn a_deviation_fails_outside_its_range_upward_too() {
        assert_eq!(verdict(MISSED, 85.0, false), (Verdict::Missed, Some("why".into())));
        let wrong = "not within 80 to 90: the file's reason for the miss is wrong now (why)";
        for measured in [79.0, 91.0, 100.0, 100_000.0] {
            assert_eq!(verdict(MISSED, measured, false), (Verdict::Fail, Some(wrong.into())), "{measured}");
        }
        assert!(read(MISSED).unwrap().judge(None, None, false).fails(), "nothing is not in the range");
    }

    #[test]
    fn a_quick_run_has_a_range_of_its_own_and_can_fail_it() {
        assert_eq!(
            verdict(MISSED, 97.0, true).0,
            Verdict::Fail,
            "the range of whole runs, if there is no other"
        );
        let quick = format!("{MISSED}quick = [92, 94]\n");
        assert_eq!(verdict(&quick, 93.0, true), (Verdict::Missed, Some("why".into())));
        assert_eq!(verdict(&quick, 97.0, true).0, Verdict::Fail);
        assert_eq!(verdict(&quick, 85.0, true).0, Verdict::Fail);
        let lucky = format!("{MISSED}quick = [96, 99]\n");
        assert_eq!(verdict(&lucky, 97.0, true), (Verdict::Pass, None), "few runs may be lucky");
        assert_eq!(verdict(&quick, 85.0, false).0, Verdict::Missed);
        // Whole runs satisfy it. Short runs do not, which is stated.
        let whole = format!("{PLAIN}quick = [80, 90]\n");
        let reason = Some("in short; whole runs meet it".into());
        assert_eq!(verdict(&whole, 85.0, true), (Verdict::Missed, reason));
        assert_eq!(verdict(&whole, 100.0, false), (Verdict::Pass, None));
        assert_eq!(verdict(&whole, 100.0, true).0, Verdict::Fail);
        assert_eq!(verdict(&whole, 85.0, false).0, Verdict::Fail);
    }

    #[test]
    fn a_regression_bound_is_kept_and_never_passes() {
        let bound = "text = \"t\"\nregression = [9, 13]\nunit = \"%\"\n";
        let kept = read(bound).unwrap().judge(Some(11.0), None, false);
        assert_eq!((kept.verdict, kept.pass, kept.source.as_str()), (Verdict::Kept, false, "regression"));
        assert_eq!((kept.statement.as_str(), kept.paper), ("9 to 13", None));
        assert_eq!(
            verdict(bound, 14.0, false),
            (Verdict::Fail, Some("not within 9 to 13, as it was before".into()))
        );
    }

    #[test]
    fn claims_that_cannot_be_judged_are_refused() {
        let at_least =
            "text = \"t\"\npaper = 100\nbound = \"at-least\"\ntolerance = 0\ndeviation = \"why\"\n";
        for (toml, expected) in [
            (MISSED.replace("measured = [80, 90]", ""), "a missed claim states the range"),
            (format!("{PLAIN}measured = [80, 90]\n"), "belongs to a deviation"),
            (MISSED.replace("90]", "95]"), "80 to 95 is not missed all over: 100 ± 5 is claimed"),
            (MISSED.replace("[80, 90]", "[80, 120]"), "is not missed all over"),
            (
                format!("{at_least}measured = [90, 100]\n"),
                "90 to 100 is not missed all over: >= 100 is claimed",
            ),
            (MISSED.replace("[80, 90]", "[90, 80]"), "is no range"),
            (MISSED.replace("[80, 90]", "[90]"), "is no range"),
            (format!("{PLAIN}quick = [80, 96]\n"), "80 to 96 holds hits and misses: 100 ± 5 is claimed"),
            (format!("{MISSED}quick = [92, 98]\n"), "92 to 98 holds hits and misses: 100 ± 5 is claimed"),
            (PLAIN.replace("5 %", "26 %"), "tolerance: 26 is too much for 100; allowed: up to 25"),
            ("text = \"t\"\npaper = 0\nunit = \"%\"\ntolerance = 6\n".into(), "allowed: up to 5"),
            ("text = \"t\"\npaper = 0\nunit = \"s\"\ntolerance = 1\n".into(), "allowed: up to 0"),
            (format!("{PLAIN}quick = [-1e9, 1e9]\n"), "is too wide"),
            (MISSED.replace("[80, 90]", "[20, 90]"), "measured: 20 to 90 is too wide"),
            ("text = \"t\"\nregression = [-1, 4]\n".into(), "regression: -1 to 4 is too wide"),
            (format!("{PLAIN}source = \"regression\"\n"), "has no value to reproduce"),
            ("text = \"t\"\nregression = [1, 2]\npaper = 1\n".into(), "paper"),
        ] {
            let error = read(&toml).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
