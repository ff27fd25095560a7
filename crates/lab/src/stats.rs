//! Means and their confidence intervals.

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom
/// (Abramowitz and Stegun, table 26.10).
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// A mean of independent runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// How many values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; `None` for fewer than two values.
    pub ci95: Option<f64>,
}

impl Mean {
    /// Of `values`; `None` without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
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

/// The quantile for `freedom` degrees, at least 1. Beyond the table its expansion for many
/// (Abramowitz and Stegun 26.7.5), good to 0.001.
fn t_95(freedom: usize) -> f64 {
    if let Some(quantile) = freedom.checked_sub(1).and_then(|index| T_95.get(index)) {
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
        let mean = Mean::of([1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((mean.mean - 3.0).abs() < 1e-12);
        assert!((mean.ci95.unwrap() - 1.963).abs() < 1e-3);
    }

    #[test]
    fn few_values_claim_nothing() {
        assert_eq!(Mean::of([]), None);
        assert_eq!(Mean::of([7.0]).unwrap().ci95, None);
    }

    #[test]
    fn the_tail_joins_the_table() {
        assert!((t_95(31) - 2.040).abs() < 2e-3);
        assert!((t_95(120) - 1.980).abs() < 1e-3);
    }
}
