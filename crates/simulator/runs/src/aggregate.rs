//! Aggregates runs for comparisons, sweeps, figures and reports: means over seeds with confidence intervals, gains over
//! runs with the same random draws, and the best of several sweep points.

use std::collections::BTreeMap;

use crate::metric;
use crate::record::{Label, RunSummary};

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom
/// (Abramowitz and Stegun, table 26.10).
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The mean over independent runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// Number of values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; `None` for fewer than two values.
    pub ci95: Option<f64>,
}

impl Mean {
    /// The mean of `values`; `None` if there are none.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let ci95 =
            (count > 1).then(|| t_95(count - 1) * (squares / (count - 1) as f64 / count as f64).sqrt());
        Some(Self { count, mean, ci95 })
    }
}

impl Mean {
    /// The mean after multiplying all values by `factor`.
    fn scaled(self, factor: f64) -> Self {
        Self { mean: self.mean * factor, ci95: self.ci95.map(|ci95| ci95 * factor), ..self }
    }
}

/// The median over independent runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The middle value, or the mean of the two in the middle.
    pub median: f64,
    /// An interval with at least 95 % confidence, bounded by two of the values; `None` for fewer than six values.
    pub interval: Option<(f64, f64)>,
}

impl Median {
    /// The median of `values`; `None` if there are none.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let interval = rank_of_median(values.len())
            .and_then(|rank| Some((*values.get(rank)?, *values.get(values.len() - 1 - rank)?)));
        Some(Self { median: median(values)?, interval })
    }

    /// Half the width of the symmetric interval around the median that contains the confidence interval.
    pub fn ci95(&self) -> Option<f64> {
        self.interval.map(|(low, high)| (self.median - low).max(high - self.median))
    }
}

/// Number of values among `count` sorted ones that lie outside the median's interval, at each end: the most that the
/// binomial distribution allows with 2.5 % (David and Nagaraja, "Order Statistics", section 7.1).
fn rank_of_median(count: usize) -> Option<usize> {
    let mut chance = 0.5_f64.powi(i32::try_from(count).ok()?);
    let mut below = 0.0;
    let mut rank = None;
    for outside in 0..count / 2 {
        below += chance;
        if below > 0.025 {
            break;
        }
        rank = Some(outside);
        chance *= (count - outside) as f64 / (outside + 1) as f64;
    }
    rank
}

/// A metric and a factor that converts its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    metric: usize,
    factor: f64,
}

impl Column {
    /// The column with a name as used in figures: that of a metric, or, with the suffix `_mbps`, a `_bps` metric in
    /// millions.
    pub fn named(name: &str) -> Option<Self> {
        metric::resolve_column(name).map(|(metric, factor)| Self { metric, factor })
    }

    /// The value of the metric without conversion.
    fn raw(self, run: &RunSummary) -> Option<f64> {
        run.metrics.get(self.metric).copied().flatten()
    }

    /// The value of the column in a run.
    pub fn value(self, run: &RunSummary) -> Option<f64> {
        self.raw(run).map(|raw| raw * self.factor)
    }
}

/// Fraction by which `value` exceeds `yardstick`; not finite if `yardstick` is zero.
pub fn gain(value: f64, yardstick: f64) -> f64 {
    value / yardstick - 1.0
}

/// Gain of one group over another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Fraction by which its mean exceeds the other's.
    pub of_means: f64,
    /// Half the width of the 95 % confidence interval of the gains of runs with equal seeds.
    pub ci95: Option<f64>,
}

/// Runs of one scheme at one sweep point, with different seeds.
#[derive(Clone, Debug, Default)]
pub struct Group<'a> {
    runs: Vec<&'a RunSummary>,
}

impl<'a> Group<'a> {
    /// The group of these runs.
    pub fn new(runs: impl IntoIterator<Item = &'a RunSummary>) -> Self {
        Self { runs: runs.into_iter().collect() }
    }

    /// The label of the first run. The labels of the others differ only in the seed.
    pub fn label(&self) -> Option<&'a Label> {
        self.runs.first().map(|run| &run.label)
    }

    /// Mean of a column over the seeds; `None` if no run has a value.
    pub fn mean(&self, column: Column) -> Option<Mean> {
        let mean = Mean::from_values(self.runs.iter().filter_map(|run| column.raw(run)))?;
        Some(mean.scaled(column.factor))
    }

    /// Mean of the metric `name`, or of a column with this name; `None` if no run has a value.
    pub fn mean_of(&self, name: &str) -> Option<f64> {
        Some(self.mean(Column::named(name)?)?.mean)
    }

    /// Median of a column over the seeds; `None` if no run has a value.
    pub fn median(&self, column: Column) -> Option<Median> {
        Median::from_values(self.runs.iter().filter_map(|run| column.value(run)))
    }

    /// Median of the gains over the runs of `yardstick` with the same seeds.
    pub fn median_gain_over(&self, yardstick: &Group<'_>, column: Column) -> Option<Median> {
        Median::from_values(self.gains_over(yardstick, column))
    }

    /// The gains over the runs of `yardstick` with the same seeds, where defined.
    fn gains_over(&self, yardstick: &Group<'_>, column: Column) -> Vec<f64> {
        let one = |(run, twin): (&RunSummary, &RunSummary)| {
            let (value, other) = (column.raw(run)?, column.raw(twin)?);
            (other > 0.0).then(|| gain(value, other))
        };
        self.pairs(yardstick).filter_map(one).collect()
    }

    /// The runs whose seeds also occur in `other`.
    #[must_use]
    pub fn with_seeds_of(&self, other: &Group<'_>) -> Self {
        Self::new(self.pairs(other).map(|(run, _)| run))
    }

    /// The runs of the group.
    pub fn runs(&self) -> impl Iterator<Item = &'a RunSummary> + '_ {
        self.runs.iter().copied()
    }

    /// Each run paired with the run of `other` that has the same seed.
    pub fn pairs<'b>(&self, other: &Group<'b>) -> impl Iterator<Item = (&'a RunSummary, &'b RunSummary)> {
        let twins: BTreeMap<u64, &'b RunSummary> =
            other.runs.iter().rev().map(|run| (run.label.seed, *run)).collect();
        self.runs.iter().filter_map(move |run| Some((*run, *twins.get(&run.label.seed)?)))
    }

    /// Its mean as a fraction of the yardstick's mean, if that is not zero.
    pub fn share_of(&self, yardstick: &Group<'_>, column: Column) -> Option<f64> {
        let (value, other) = (self.mean(column)?.mean, yardstick.mean(column)?.mean);
        (other > 0.0).then(|| value / other)
    }

    /// Its gain over the yardstick, if defined.
    pub fn gain_over(&self, yardstick: &Group<'_>, column: Column) -> Option<Gain> {
        let (value, other) = (self.mean(column)?.mean, yardstick.mean(column)?.mean);
        let ci95 = Mean::from_values(self.gains_over(yardstick, column)).and_then(|pairs| pairs.ci95);
        (other > 0.0).then(|| Gain { of_means: gain(value, other), ci95 })
    }

    /// By how much smaller a column is than the yardstick's, as a gain: twice as fast is a gain of one.
    pub fn speedup_over(&self, yardstick: &Group<'_>, column: Column) -> Option<Gain> {
        let (value, other) = (self.mean(column)?.mean, yardstick.mean(column)?.mean);
        let one = |(run, twin): (&RunSummary, &RunSummary)| {
            let (value, other) = (column.raw(run)?, column.raw(twin)?);
            (value > 0.0).then(|| gain(other, value))
        };
        let ci95 = Mean::from_values(self.pairs(yardstick).filter_map(one)).and_then(|pairs| pairs.ci95);
        (value > 0.0).then(|| Gain { of_means: gain(other, value), ci95 })
    }

    /// The group with the highest mean of a column; the first one if several are equal.
    pub fn best(groups: impl IntoIterator<Item = Self>, column: Column) -> Option<Self> {
        let most = |group: &Self| group.mean(column).map_or(f64::NEG_INFINITY, |mean| mean.mean);
        groups.into_iter().reduce(|best, other| if most(&other) > most(&best) { other } else { best })
    }
}

/// Groups the runs of a sweep by scenario, scheme and sweep point, in order of first appearance.
pub fn groups(records: &[RunSummary]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut known = BTreeMap::new();
    for record in records {
        let label = &record.label;
        let bits = |value: Option<f64>| value.map(f64::to_bits);
        let (scenario, scheme) = (label.scenario.as_str(), label.scheme.as_str());
        let place = (scenario, scheme, label.clients, bits(label.x), bits(label.best_of));
        let index = *known.entry(place).or_insert(groups.len());
        if index == groups.len() {
            groups.push(Group::default());
        }
        // The group exists, because it was added above if it was missing.
        groups[index].runs.push(record);
    }
    groups
}

/// The middle value, or the mean of the two in the middle; `None` without any.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// The two-sided 95 % quantile of Student's t for `freedom` degrees of freedom, infinite for none. Beyond the table,
/// its expansion for large numbers (Abramowitz and Stegun 26.7.5), accurate to 0.001.
pub fn t_95(freedom: usize) -> f64 {
    let Some(index) = freedom.checked_sub(1) else { return f64::INFINITY };
    if let Some(quantile) = T_95.get(index) {
        return *quantile;
    }
    let z = 1.959_964_f64;
    let n = freedom as f64;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / n + second / (n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_interval() {
        // 1..5: mean 3, s = 1.5811, t(4) = 2.776, half-width 1.963.
        let mean = Mean::from_values([1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((mean.mean - 3.0).abs() < 1e-12);
        assert!((mean.ci95.unwrap() - 1.963).abs() < 1e-3);
    }

    #[test]
    fn few_values_claim_nothing() {
        assert_eq!(Mean::from_values([]), None);
        assert_eq!(Mean::from_values([7.0]).unwrap().ci95, None);
    }

    /// A run with a goodput of `mbps`.
    fn run(scheme: &str, best_of: Option<f64>, seed: u64, mbps: f64) -> RunSummary {
        let mut metrics = vec![None; metric::ALL.len()];
        metrics[metric::position("goodput_bps").unwrap()] = Some(mbps * 1e6);
        let label =
            Label { scenario: "s".into(), scheme: scheme.into(), clients: 1, x: Some(1.0), best_of, seed };
        RunSummary { label, metrics, ..RunSummary::default() }
    }

    fn column() -> Column {
        Column::named("goodput_mbps").unwrap()
    }

    #[test]
    fn gains_are_of_means_and_their_intervals_of_pairs() {
        let runs = [run("a", None, 1, 11.0), run("a", None, 2, 22.0)];
        // In another order, and with a run that has no counterpart.
        let others = [run("b", None, 2, 20.0), run("b", None, 1, 10.0), run("b", None, 3, 33.0)];
        let (a, b) = (Group::new(&runs), Group::new(&others));
        let gain = a.gain_over(&b, column()).unwrap();
        assert!((gain.of_means - (16.5 / 21.0 - 1.0)).abs() < 1e-12, "{gain:?}");
        assert!(gain.ci95.unwrap() < 1e-9, "every pair gains a tenth");
        assert!((a.share_of(&b, column()).unwrap() - 16.5 / 21.0).abs() < 1e-12);
        assert_eq!(a.gain_over(&Group::new(&[run("b", None, 1, 0.0)]), column()), None);
        assert_eq!(a.gain_over(&Group::default(), column()), None);
    }

    #[test]
    fn groups_come_in_the_order_of_their_first_runs() {
        let runs = [run("b", None, 1, 1.0), run("a", None, 1, 2.0), run("b", None, 2, 3.0)];
        let groups = groups(&runs);
        let means: Vec<_> = groups
            .iter()
            .map(|group| (group.label().unwrap().scheme.as_str(), group.mean(column()).unwrap().mean))
            .collect();
        assert_eq!(means, [("b", 2.0), ("a", 2.0)]);
    }

    #[test]
    fn the_best_is_the_first_of_equals() {
        let runs = [run("a", Some(1.0), 1, 5.0), run("a", Some(2.0), 1, 7.0), run("a", Some(3.0), 1, 7.0)];
        let best = Group::best(groups(&runs), column()).unwrap();
        assert_eq!(best.label().unwrap().best_of, Some(2.0));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        assert_eq!(median(vec![9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(vec![9.0, 1.0, 5.0, 6.0]), Some(5.5));
        assert_eq!(median(Vec::new()), None);
    }

    /// Ranks from tables of the sign test: 1 of 6, 6 of 20, 10 of 30, counted from one.
    #[test]
    fn the_interval_of_a_median_lies_between_two_of_its_values() {
        let median = |count: u32| Median::from_values((1..=count).map(f64::from)).unwrap();
        assert_eq!(median(5).interval, None);
        assert_eq!(median(6).interval, Some((1.0, 6.0)));
        assert_eq!(median(20).interval, Some((6.0, 15.0)));
        assert_eq!(median(30).interval, Some((10.0, 21.0)));
        assert_eq!((median(20).median, median(20).ci95()), (10.5, Some(4.5)));
        assert_eq!(Median::from_values([]), None);
    }

    #[test]
    fn the_tail_joins_the_table() {
        assert!((t_95(31) - 2.040).abs() < 2e-3);
        assert!((t_95(120) - 1.980).abs() < 1e-3);
    }
}
