//! An axis: maps values to pixels, and chooses the grid lines.

/// A range of values mapped to a range of pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// The values at its ends.
    pub values: [f64; 2],
    /// The pixels of its ends.
    pub pixels: [f64; 2],
    /// Logarithmic scale. All values must be positive.
    pub log: bool,
}

/// Approximate maximum number of grid lines.
const MAX_TICKS: usize = 8;

impl Axis {
    /// The pixel of `value`. A value outside the range is clamped to it.
    pub fn at(&self, value: f64) -> f64 {
        let [from, to] = self.values;
        let value = value.clamp(from, to);
        let part =
            if self.log { (value / from).ln() / (to / from).ln() } else { (value - from) / (to - from) };
        self.pixels[0] + part * (self.pixels[1] - self.pixels[0])
    }

    /// The values of the grid lines in ascending order.
    pub fn ticks(&self) -> Vec<f64> {
        let [from, to] = self.values;
        if self.log {
            for digits in [&[1.0, 2.0, 5.0][..], &[1.0]] {
                let ticks = decade_ticks(from, to, digits);
                if (3..=MAX_TICKS + 1).contains(&ticks.len()) {
                    return ticks;
                }
            }
            let decades = decade_ticks(from, to, &[1.0]);
            if decades.len() > MAX_TICKS {
                return decades.iter().copied().step_by(decades.len().div_ceil(MAX_TICKS)).collect();
            }
        }
        let step = round_step(to - from, MAX_TICKS as f64);
        let first = (from / step - 1e-9).ceil();
        let count = ((to / step + 1e-9).floor() - first).max(0.0) as u32;
        (0..=count).map(|tick| (first + f64::from(tick)) * step).collect()
    }
}

/// The multiples `digits` of each power of ten between `from` and `to`.
fn decade_ticks(from: f64, to: f64, digits: &[f64]) -> Vec<f64> {
    let decades = from.log10().floor() as i32..=to.log10().floor() as i32;
    let ticks = decades.flat_map(|decade| digits.iter().map(move |digit| digit * 10f64.powi(decade)));
    ticks.filter(|tick| (from..=to).contains(tick)).collect()
}

/// Distance of grid lines that divides `0..=max` into about `steps` parts: 1, 2 or 5 times a power of ten.
pub(super) fn round_step(max: f64, steps: f64) -> f64 {
    let raw = (max / steps).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= raw * 0.999);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (max, expected) in [(135.0, 20.0), (9.0, 2.0), (0.11, 0.02), (1000.0, 200.0)] {
            assert!((round_step(max, 7.0) - expected).abs() < 1e-9, "{max}: {}", round_step(max, 7.0));
        }
    }

    fn axis(from: f64, to: f64, log: bool) -> Axis {
        Axis { values: [from, to], pixels: [100.0, 300.0], log }
    }

    #[test]
    fn values_have_pixels_between_the_ends() {
        let linear = axis(0.0, 50.0, false);
        for (value, pixel) in [(0.0, 100.0), (25.0, 200.0), (50.0, 300.0), (60.0, 300.0)] {
            assert!((linear.at(value) - pixel).abs() < 1e-9, "{value}");
        }
        assert!((axis(1.0, 100.0, true).at(10.0) - 200.0).abs() < 1e-9, "half of two decades");
    }

    #[test]
    fn grid_lines_are_few_and_round() {
        let near = |ticks: Vec<f64>, expected: &[f64]| {
            assert_eq!(ticks.len(), expected.len(), "{ticks:?}");
            assert!(ticks.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{ticks:?}");
        };
        near(axis(0.0, 135.0, false).ticks(), &[0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0]);
        near(axis(-0.7, 1.2, false).ticks(), &[-0.5, 0.0, 0.5, 1.0]);
        near(axis(3.0, 300.0, true).ticks(), &[5.0, 10.0, 20.0, 50.0, 100.0, 200.0]);
        near(axis(0.5, 20_000.0, true).ticks(), &[1.0, 10.0, 100.0, 1_000.0, 10_000.0]);
        near(axis(61.0, 88.0, true).ticks(), &[65.0, 70.0, 75.0, 80.0, 85.0]);
        assert!(axis(1e-9, 1e9, true).ticks().len() <= MAX_TICKS);
    }
}
