//! The curves of a figure, its seeds and its variants, on which claims are evaluated.

use super::claim::Range;
use super::dependence::Dependence;
use super::measure::{Cell, Curves, Measure};
use super::sweep::Average;

/// The result of evaluating a measure.
#[derive(Default)]
pub(super) struct Measurement {
    /// `None` if it is unavailable.
    pub number: Option<f64>,
    /// The minimum and maximum over single seeds, if there are several.
    pub over_seeds: Option<Range>,
    /// The cell, if it is the median of a single cell.
    pub cell: Option<Cell>,
}

/// Curves and the labels of their axes.
pub(super) struct PlotData {
    pub x: String,
    pub y: String,
    pub curves: Curves,
    /// The curves of each variant, with its name.
    pub variants: Vec<(String, Curves)>,
    /// The same data for each seed; empty without several seeds.
    pub seeds: Vec<Self>,
    pub average: Average,
    pub depends: Option<Dependence>,
}

impl PlotData {
    pub fn new(x: String, y: String, curves: Curves) -> Self {
        let (variants, seeds) = (Vec::new(), Vec::new());
        Self { x, y, curves, variants, seeds, average: Average::Mean, depends: None }
    }

    /// The curves of each seed, or of the only one; for a variant if it is named.
    pub fn seed_curves(&self, variant: Option<&str>) -> impl Iterator<Item = &Curves> {
        let seeds = if self.seeds.is_empty() { std::slice::from_ref(self) } else { &self.seeds };
        seeds.iter().filter_map(move |seed| seed.variant_curves(variant))
    }

    fn variant_curves(&self, name: Option<&str>) -> Option<&Curves> {
        match name {
            None => Some(&self.curves),
            Some(name) => Some(&self.variants.iter().find(|(known, _)| known == name)?.1),
        }
    }

    /// The curves that `measure` refers to, and those to compare with, from the variants that it names.
    fn compared_curves(&self, measure: &Measure) -> Option<(&Curves, &Curves)> {
        let measured = self.variant_curves(measure.variant())?;
        let other = measure.over_variant().map_or(Some(measured), |name| self.variant_curves(Some(name)))?;
        Some((measured, other))
    }

    /// The number that `measure` yields.
    pub fn measured(&self, measure: &Measure) -> Option<f64> {
        Some(self.measured_at(measure)?.0)
    }

    /// The number with its range over seeds and its cell.
    pub fn measurement(&self, measure: &Measure) -> Measurement {
        let over_seeds = self.over_seeds(measure);
        if let Some(number) = over_seeds.and_then(|range| measure.extreme_seed(range)) {
            return Measurement { number: Some(number), over_seeds, cell: None };
        }
        let (number, cell) = self.measured_at(measure).unzip();
        Measurement { number, over_seeds, cell: cell.flatten() }
    }

    /// The number, and the cell where it is the median of one cell. The minimum or maximum of a grid is always based
    /// on medians.
    fn measured_at(&self, measure: &Measure) -> Option<(f64, Option<Cell>)> {
        let is_median = self.average == Average::Median || measure.is_extreme();
        if self.seeds.is_empty() || !is_median {
            let (measured, other) = self.compared_curves(measure)?;
            return Some((measure.between(measured, other)?, None));
        }
        let seeds: Option<Vec<_>> = self.seeds.iter().map(|seed| seed.compared_curves(measure)).collect();
        measure.over_medians(&seeds?)
    }

    /// The minimum and maximum over the curves of single seeds.
    fn over_seeds(&self, measure: &Measure) -> Option<Range> {
        Range::spanning(self.seeds.iter().filter_map(|seed| seed.measured(measure)))
    }
}
