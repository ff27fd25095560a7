//! A median with the least and the largest value.

use tacit_runs::aggregate::median;

/// Of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub largest: f64,
}

impl Spread {
    /// Nothing of no values.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let least = values.iter().copied().reduce(f64::min)?;
        let largest = values.iter().copied().reduce(f64::max)?;
        Some(Self { median: median(values)?, least, largest })
    }

    /// With `digits` behind the point.
    pub fn text(self, decimals: usize) -> String {
        let Self { median, least, largest } = self;
        format!("{median:.decimals$} ({least:.decimals$}–{largest:.decimals$})")
    }
}

/// Ratios pair by pair: of the first to the second.
pub fn ratios<'a, T: 'a>(
    ours: impl IntoIterator<Item = &'a T>,
    theirs: impl IntoIterator<Item = &'a T>,
    value: impl Fn(&T) -> Option<f64>,
) -> Option<Spread> {
    let pairs = ours.into_iter().zip(theirs);
    Spread::from_values(pairs.filter_map(|(one, other)| Some(value(one)? / value(other)?)))
}

impl Spread {
    /// Of the values of an increasing function.
    pub fn map(self, function: impl Fn(f64) -> f64) -> Self {
        let Self { median, least, largest } = self;
        Self { median: function(median), least: function(least), largest: function(largest) }
    }

    /// Differences in per cent, with their signs.
    pub fn percent(self) -> String {
        let Self { median, least, largest } = self.map(|value| value * 100.0);
        format!("{median:+.1} ({least:+.1} to {largest:+.1})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_pairs_not_of_medians() {
        // A machine that is slow for the second pair is slow for both.
        let (theirs, ours) = ([10.0, 100.0, 12.0], [5.0, 50.0, 4.0]);
        let ratio = ratios(&theirs, &ours, |value| Some(*value)).unwrap();
        assert_eq!(ratio, Spread { median: 2.0, least: 2.0, largest: 3.0 });
        assert_eq!(ratio.text(1), "2.0 (2.0–3.0)");
    }

    #[test]
    fn a_pair_without_one_of_its_values_does_not_count() {
        let (ours, theirs) = ([Some(4.0), None, Some(9.0)], [Some(2.0), Some(1.0), Some(3.0)]);
        let ratio = ratios(&ours, &theirs, |value| *value).unwrap();
        assert_eq!(ratio.text(1), "2.5 (2.0–3.0)");
        assert_eq!(Spread::from_values([]), None);
    }

    #[test]
    fn differences_have_signs() {
        let ratio = Spread { median: 0.982, least: 0.97, largest: 1.004 };
        assert_eq!(ratio.map(|ratio| ratio - 1.0).percent(), "-1.8 (-3.0 to +0.4)");
    }
}
