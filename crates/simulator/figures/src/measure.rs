//! Measure of a claim: a number derived from a figure's curves.

use tacit_runs::aggregate::{Mean, Median, gain};

use super::claim::Range;
use tacit_scenario::InputError;
use tacit_scenario::input::{Section, number, one_of, text};

/// A curve with all measured columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Points in ascending order of x: x, and the value of each column in the order of the names.
    pub points: Vec<(f64, Vec<Option<f64>>)>,
    /// Half-width of the 95 % confidence interval of the first column at each point; empty if unknown.
    pub ci95: Vec<Option<f64>>,
}

/// All curves of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// Names of the columns, starting with the plotted one.
    pub columns: Vec<String>,
    /// The curves.
    pub curves: Vec<Curve>,
}

impl Curves {
    /// The curve of this name.
    pub fn named(&self, name: &str) -> Option<&Curve> {
        self.curves.iter().find(|curve| curve.name == name)
    }
}

/// How two curves are combined into one number per point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Value,
    Gain,
    Ratio,
    Difference,
    /// R^2 of a least-squares straight line: the fraction of the variance that it explains.
    Linear,
}

/// How the numbers of several points are reduced to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduction {
    Mean,
    Least,
    Most,
}

/// A number derived from a figure's curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    operation: Operation,
    curve: String,
    over: Option<String>,
    /// The x on the other curve, if it differs.
    over_x: Option<f64>,
    column: Option<String>,
    /// The variant of the sweep; `None` for the sweep as drawn.
    variant: Option<String>,
    /// The variant of the other curve, if it differs.
    over_variant: Option<String>,
    /// Range of x, inclusive.
    from: f64,
    to: f64,
    reduction: Reduction,
    /// What counts of the seeds: their average as the figure has it, or the least or most of single ones.
    of_seeds: Reduction,
}

/// Two values of x with at most this relative difference are equal.
const SAME_X: f64 = 1e-6;

impl Measure {
    pub(super) fn read(section: Section<'_>) -> Result<Self, InputError> {
        let operations = [
            ("value", Operation::Value),
            ("gain", Operation::Gain),
            ("ratio", Operation::Ratio),
            ("difference", Operation::Difference),
            ("linear", Operation::Linear),
        ];
        let mut named = Vec::new();
        for (key, operation) in operations {
            named.extend(section.optional(key, text)?.map(|curve| (key, operation, curve)));
        }
        let over = section.optional("over", text)?;
        let Some((key, operation, curve)) = named.pop().filter(|_| named.is_empty()) else {
            return Err(
                section.error("value", "exactly one of value, gain, ratio, difference, linear is needed")
            );
        };
        if over.is_some() == matches!(operation, Operation::Value | Operation::Linear) {
            let what = if over.is_some() { "stands alone, without over" } else { "needs a curve to be over" };
            return Err(section.error(key, what));
        }
        let (from, to) = range(&section)?;
        let over_x = section.optional("over-x", number)?;
        if over_x.is_some() && over.is_none() {
            return Err(section.error("over-x", "says where on the curve that over names"));
        }
        let column = section.optional("column", text)?;
        let reductions = [("mean", Reduction::Mean), ("least", Reduction::Least), ("most", Reduction::Most)];
        let reduction = section.or("take", Reduction::Mean, one_of(&reductions))?;
        let of_seeds = section.or("seed", Reduction::Mean, one_of(&reductions[1..]))?;
        let variant = section.optional("variant", text)?;
        let over_variant = section.optional("over-variant", text)?;
        if over_variant.is_some() && over.is_none() {
            return Err(section.error("over-variant", "requires `over`, whose variant it names"));
        }
        section.finish()?;
        Ok(Self {
            operation,
            curve,
            over,
            over_x,
            column,
            variant,
            over_variant,
            from,
            to,
            reduction,
            of_seeds,
        })
    }

    /// Name of the curve that it measures.
    pub(super) fn curve(&self) -> &str {
        &self.curve
    }

    /// Names of the curves it refers to.
    pub(super) fn curves(&self) -> impl Iterator<Item = &str> {
        [Some(&self.curve), self.over.as_ref()].into_iter().flatten().map(String::as_str)
    }

    /// Whether it depends on the value of one of `curves` at `x`.
    pub(super) fn reads(&self, curves: &[String], x: f64) -> bool {
        let at = (self.from..=self.to).contains(&x) || self.over_x.is_some_and(|over_x| same(over_x, x));
        at && self.curves().any(|mine| curves.iter().any(|curve| curve == mine))
    }

    /// Whether its curve, with points only at `places`, and the one to compare with, with points only at `others`, contain
    /// all values that it needs.
    pub(super) fn is_within(&self, places: &[f64], others: &[f64]) -> bool {
        let mut measured = places.iter().filter(|x| (self.from..=self.to).contains(x)).peekable();
        let has_twin = |x: &f64| others.iter().any(|other| same(*other, self.over_x.unwrap_or(*x)));
        measured.peek().is_some() && (self.over.is_none() || measured.all(has_twin))
    }

    /// The column it refers to, if not the plotted one.
    pub(super) fn column(&self) -> Option<&str> {
        self.column.as_deref()
    }

    /// The variant it refers to; `None` for the sweep as drawn.
    pub(super) fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    /// The variants of its curve and of the one to compare with.
    pub(super) fn variants(&self) -> [Option<&str>; 2] {
        [self.variant(), self.over_variant().or(self.variant())]
    }

    /// The variant of the curve that it is compared with, if different.
    pub(super) fn over_variant(&self) -> Option<&str> {
        self.over_variant.as_deref()
    }

    /// Curve and x range of the plotted values that it measures, if it is a plain value.
    pub(super) fn plotted(&self) -> Option<(&str, (f64, f64))> {
        let plain = self.column.is_none()
            && self.variant.is_none()
            && self.over_variant.is_none()
            && self.reduction == Reduction::Mean
            && self.operation != Operation::Linear;
        plain.then_some((self.curve.as_str(), (self.from, self.to)))
    }

    /// The pair of curves whose gain it measures, if both are taken at the same x.
    pub(super) fn gain(&self) -> Option<(&str, &str)> {
        let same_x =
            self.operation == Operation::Gain && self.over_x.is_none() && self.over_variant.is_none();
        same_x.then_some((self.curve.as_str(), self.over.as_deref()?))
    }

    /// The value of its curve at `x` if the measure had this `value` and the other curve were unchanged.
    pub(super) fn implied(&self, curves: &Curves, x: f64, value: f64) -> Option<f64> {
        let Some(over) = &self.over else { return Some(value) };
        let over = curves.named(over)?;
        let at = self.over_x.unwrap_or(x);
        let base = over.points.iter().find(|(other, _)| same(at, *other))?.1.first().copied().flatten()?;
        Some(match self.operation {
            Operation::Value | Operation::Linear => value,
            Operation::Gain => base * (1.0 + value / 100.0),
            Operation::Ratio => base * value,
            Operation::Difference => base + value,
        })
    }

    /// The end of the range `over_seeds` of single seeds that it takes, if it takes one.
    pub(super) fn extreme_seed(&self, over_seeds: Range) -> Option<f64> {
        match self.of_seeds {
            Reduction::Mean => None,
            Reduction::Least => Some(over_seeds.low),
            Reduction::Most => Some(over_seeds.high),
        }
    }

    /// Whether it takes the minimum or maximum over several cells.
    pub(super) fn is_extreme(&self) -> bool {
        self.reduction != Reduction::Mean
    }

    /// The number based on the medians of the cells over seeds. `seeds` contains, per seed, the curves and those to
    /// compare with. For the minimum or maximum of several cells, also returns which cell it is.
    pub(super) fn over_medians(&self, seeds: &[(&Curves, &Curves)]) -> Option<(f64, Option<Cell>)> {
        let alone: Vec<Vec<(f64, f64)>> =
            seeds.iter().map(|(curves, others)| self.cells(curves, others)).collect::<Option<_>>()?;
        let places = alone.first()?.iter().map(|(x, _)| *x);
        let median = |(index, x): (usize, f64)| {
            let median = Median::from_values(alone.iter().filter_map(|cells| Some(cells.get(index)?.1)))?;
            Some((x, median))
        };
        let medians: Vec<(f64, Median)> = places.enumerate().map(median).collect::<Option<_>>()?;
        let one = self.reduce(&medians.iter().map(|(x, median)| (*x, median.median)).collect::<Vec<_>>())?;
        let is_one = |(_, median): &&(f64, Median)| median.median.total_cmp(&one).is_eq();
        let is_located = self.is_extreme() || medians.len() == 1;
        let cell = medians.iter().find(is_one).filter(|_| is_located).map(|(x, median)| Cell {
            x: *x,
            interval: median.interval.map(|(low, high)| Range { low, high }),
        });
        Some((one, cell))
    }

    /// The number, if the curve to compare with is one of `others`; `None` if the curves lack a point.
    pub fn between(&self, curves: &Curves, others: &Curves) -> Option<f64> {
        self.reduce(&self.cells(curves, others)?)
    }

    /// Its values by x; `None` if one is missing.
    fn cells(&self, curves: &Curves, others: &Curves) -> Option<Vec<(f64, f64)>> {
        let column = match &self.column {
            Some(name) => curves.columns.iter().position(|column| column == name)?,
            None => 0,
        };
        let curve = curves.named(&self.curve)?;
        let points = curve.points.iter().filter(|(x, _)| (self.from..=self.to).contains(x));
        let over = match &self.over {
            Some(name) => Some(others.named(name)?),
            None => None,
        };
        let cell = |(x, columns): &(f64, Vec<Option<f64>>)| {
            let a = columns.get(column).copied().flatten()?;
            let at = self.over_x.unwrap_or(*x);
            let twin = over.map(|curve| curve.points.iter().find(|(other, _)| same(at, *other)));
            let b = match twin {
                Some(point) => point?.1.get(column).copied().flatten()?,
                None => 0.0,
            };
            let one = match self.operation {
                Operation::Value | Operation::Linear => a,
                Operation::Gain => gain(a, b) * 100.0,
                Operation::Ratio => a / b,
                Operation::Difference => a - b,
            };
            Some((*x, one))
        };
        points.map(cell).collect()
    }

    /// Reduces the numbers of several places to one.
    fn reduce(&self, cells: &[(f64, f64)]) -> Option<f64> {
        let (places, values): (Vec<f64>, Vec<f64>) = cells.iter().copied().unzip();
        if self.operation == Operation::Linear {
            return linearity(&places, &values);
        }
        let one = match self.reduction {
            Reduction::Mean => Mean::from_values(values)?.mean,
            Reduction::Least => values.into_iter().fold(f64::INFINITY, f64::min),
            Reduction::Most => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
        };
        one.is_finite().then_some(one)
    }
}

/// The place in a grid where a number was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Its x value.
    pub x: f64,
    /// The interval of its median over the seeds; `None` if there are too few.
    pub interval: Option<Range>,
}

/// R^2 of the least-squares straight line through the points, which is the square of their correlation. `None` with
/// fewer than three points, through which a line always passes, and if all values are equal.
fn linearity(x: &[f64], y: &[f64]) -> Option<f64> {
    let n = (x.len() >= 3).then_some(x.len() as f64)?;
    let [x_mean, y_mean] = [x, y].map(|all| all.iter().sum::<f64>() / n);
    let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| term(x - x_mean, y - y_mean)).sum()
    };
    let (xy, xx, yy) = (sum(&|x, y| x * y), sum(&|x, _| x * x), sum(&|_, y| y * y));
    Some(xy * xy / (xx * yy)).filter(|square| square.is_finite())
}

/// The range of x: around `x`, or from `x-from` to `x-to`.
fn range(section: &Section<'_>) -> Result<(f64, f64), InputError> {
    let (from, to) = (section.optional("x-from", number)?, section.optional("x-to", number)?);
    if let Some(x) = section.optional("x", number)? {
        if from.is_some() || to.is_some() {
            return Err(section.error("x", "stands alone, without x-from and x-to"));
        }
        // x may be negative, as with decibels.
        return Ok((x - SAME_X * x.abs(), x + SAME_X * x.abs()));
    }
    let (from, to) = (from.unwrap_or(f64::NEG_INFINITY), to.unwrap_or(f64::INFINITY));
    if from > to {
        return Err(section.error("x-from", format!("{from} is above x-to, {to}")));
    }
    Ok((from, to))
}

/// True if two values of x denote the same place.
pub(super) fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME_X * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_scenario::input::Tree;

    fn curves() -> Curves {
        let curve = |name: &str, points: &[(f64, f64)]| Curve {
            name: name.into(),
            points: points.iter().map(|(x, y)| (*x, vec![Some(*y), Some(y * 10.0)])).collect(),
            ..Curve::default()
        };
        Curves {
            columns: vec!["y".into(), "z".into()],
            curves: vec![
                curve("a", &[(1.0, 11.0), (2.0, 24.0), (6.5, 3.0)]),
                curve("b", &[(1.0, 10.0), (2.0, 20.0), (6.5, 1.0)]),
                curve("decibels", &[(-3.0, 4.0), (-2.5, 5.0), (0.0, 6.0), (2.5, 7.0)]),
            ],
        }
    }

    fn measured(text: &str) -> Option<f64> {
        let tree = Tree::parse("test", text).unwrap();
        Measure::read(Section::root("test", &tree)).unwrap().between(&curves(), &curves())
    }

    #[test]
    fn values_gains_ratios_and_ranges() {
        let close = |text, expected: f64| {
            let value = measured(text).unwrap();
            assert!((value - expected).abs() < 1e-9, "{text}: {value}");
        };
        close("value = \"a\"\nx = 2", 24.0);
        close("value = \"a\"\nx = 6.5\ncolumn = \"z\"", 30.0);
        close("gain = \"a\"\nover = \"b\"\nx = 1", 10.0);
        close("gain = \"a\"\nover = \"b\"\nx-to = 2", 15.0);
        close("ratio = \"a\"\nover = \"b\"\nx-from = 6", 3.0);
        close("difference = \"a\"\nover = \"b\"", (1.0 + 4.0 + 2.0) / 3.0);
        close("difference = \"a\"\nover = \"b\"\ntake = \"least\"", 1.0);
        close("ratio = \"a\"\nover = \"b\"\ntake = \"most\"", 3.0);
    }

    #[test]
    fn the_other_curve_may_be_of_another_variant() {
        let tree =
            Tree::parse("test", "ratio = \"a\"\nover = \"a\"\nover-variant = \"half\"\nx = 2").unwrap();
        let measure = Measure::read(Section::root("test", &tree)).unwrap();
        let mut half = curves();
        half.curves[0]
            .points
            .iter_mut()
            .for_each(|(_, values)| values[0] = values[0].map(|value| value / 2.0));
        assert_eq!(measure.between(&curves(), &half), Some(2.0));
        assert_eq!(measure.over_variant(), Some("half"));
        let tree = Tree::parse("test", "value = \"a\"\nover-variant = \"half\"").unwrap();
        assert!(Measure::read(Section::root("test", &tree)).is_err());
    }

    /// The place with the minimum differs between seeds. The median of each place counts, not the luckiest run.
    #[test]
    fn the_least_of_a_grid_is_the_median_of_a_cell() {
        let seed = |values: [f64; 2]| Curves {
            columns: vec!["y".into()],
            curves: vec![Curve {
                name: "a".into(),
                points: vec![(1.0, vec![Some(values[0])]), (2.0, vec![Some(values[1])])],
                ..Curve::default()
            }],
        };
        let seeds = [[1.0, 9.0], [7.0, 2.0], [8.0, 6.0]].map(seed);
        let seeds: Vec<_> = seeds.iter().map(|seed| (seed, seed)).collect();
        let tree = Tree::parse("test", "value = \"a\"\ntake = \"least\"").unwrap();
        let measure = Measure::read(Section::root("test", &tree)).unwrap();
        assert_eq!(measure.over_medians(&seeds), Some((6.0, Some(Cell { x: 2.0, interval: None }))));
    }

    #[test]
    fn a_straight_line_explains_its_points_and_a_bent_one_less() {
        let line = measured("linear = \"decibels\"\nx-to = -2.5");
        assert_eq!(line, None, "two points are always in line");
        // Computed by hand: x 1, 2, 6.5 and y 11, 24, 3; the sums of products around the means are -41.83, 17.17 and
        // 224.67.
        let bent = measured("linear = \"a\"").unwrap();
        assert!((bent - 41.833_333_f64.powi(2) / (17.166_667 * 224.666_667)).abs() < 1e-4, "{bent}");
        assert!((linearity(&[0.0, 1.0, 5.0], &[9.0, 7.0, -1.0]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(linearity(&[0.0, 1.0, 5.0], &[2.0; 3]), None);
    }

    #[test]
    fn a_claimed_value_has_a_place_beside_the_curve() {
        let implied = |text: &str, value: f64| {
            let tree = Tree::parse("test", text).unwrap();
            Measure::read(Section::root("test", &tree)).unwrap().implied(&curves(), 2.0, value).unwrap()
        };
        assert!((implied("value = \"a\"", 23.0) - 23.0).abs() < 1e-9);
        assert!((implied("gain = \"a\"\nover = \"b\"", 15.0) - 23.0).abs() < 1e-9);
        assert!((implied("gain = \"a\"\nover = \"b\"\nover-x = 1", 15.0) - 11.5).abs() < 1e-9);
        assert!((implied("ratio = \"a\"\nover = \"b\"", 2.0) - 40.0).abs() < 1e-9);
        assert!((implied("difference = \"a\"\nover = \"b\"", -1.0) - 19.0).abs() < 1e-9);
    }

    #[test]
    fn an_x_may_be_negative_or_zero() {
        for (x, expected) in [("-2.5", 5.0), ("0", 6.0), ("2.5", 7.0)] {
            assert_eq!(measured(&format!("value = \"decibels\"\nx = {x}")), Some(expected), "{x}");
        }
        assert_eq!(measured("value = \"decibels\"\nx-from = -3\nx-to = -2.5"), Some(4.5));
    }

    #[test]
    fn missing_curves_measure_nothing() {
        assert_eq!(measured("value = \"a\"\nx = 3"), None);
        assert_eq!(measured("value = \"c\""), None);
        assert_eq!(measured("value = \"a\"\ncolumn = \"w\""), None);
    }

    #[test]
    fn contradictions_are_refused() {
        for text in [
            "x = 1",
            "value = \"a\"\ngain = \"b\"",
            "gain = \"a\"",
            "value = \"a\"\nover = \"b\"",
            "value = \"a\"\nx = 1\nx-to = 2",
            "linear = \"a\"\nover = \"b\"",
            "value = \"a\"\nx-from = 2\nx-to = 1",
        ] {
            let tree = Tree::parse("test", text).unwrap();
            assert!(Measure::read(Section::root("test", &tree)).is_err(), "{text}");
        }
    }
}
