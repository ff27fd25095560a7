//! The curves of a figure, and of its seeds and variants: claims are held against them.

use super::claim::Range;
use super::dependence::Dependence;
use super::measure::{Cell, Curves, Measure};
use super::sweep::Average;

/// Result of a claim's measure.
#[derive(Default)]
pub(super) struct Measurement {
    /// `None` where there is nothing to measure.
    pub number: Option<f64>,
    /// The least and the largest over single seeds, where there are several.
    pub over_seeds: Option<Range>,
    /// The one cell of which it is the median.
    pub cell: Option<Cell>,
}

/// Curves with the meaning of their axes.
pub(super) struct PlotData {
    pub x: String,
    pub y: String,
    pub curves: Curves,
    /// The curves of each variant, by its name.
    pub variants: Vec<(String, Curves)>,
    /// The same of each seed alone; nothing where there are not several.
    pub seeds: Vec<Self>,
    pub average: Average,
    pub depends: Option<Dependence>,
}

impl PlotData {
    pub fn new(x: String, y: String, curves: Curves) -> Self {
        let (variants, seeds) = (Vec::new(), Vec::new());
        Self { x, y, curves, variants, seeds, average: Average::Mean, depends: None }
    }

    /// The curves of each seed, or of the one there is; of a variant if it is named.
    pub fn of_each_seed(&self, variant: Option<&str>) -> impl Iterator<Item = &Curves> {
        let seeds = if self.seeds.is_empty() { std::slice::from_ref(self) } else { &self.seeds };
        seeds.iter().filter_map(move |seed| seed.of_variant(variant))
    }

    fn of_variant(&self, name: Option<&str>) -> Option<&Curves> {
        match name {
            None => Some(&self.curves),
            Some(name) => Some(&self.variants.iter().find(|(known, _)| known == name)?.1),
        }
    }

    /// The curves that `measure` is about, and those it measures over: of its variants if it names them.
    fn of_variants(&self, measure: &Measure) -> Option<(&Curves, &Curves)> {
        let own = self.of_variant(measure.variant())?;
        let other = measure.over_variant().map_or(Some(own), |name| self.of_variant(Some(name)))?;
        Some((own, other))
    }

    /// The number that `measure` takes from the curves.
    pub fn measured(&self, measure: &Measure) -> Option<f64> {
        Some(self.measured_at(measure)?.0)
    }

    /// The same with its seeds and its cell.
    pub fn measurement(&self, measure: &Measure) -> Measurement {
        let (number, cell) = self.measured_at(measure).unzip();
        Measurement { number, over_seeds: self.over_seeds(measure), cell: cell.flatten() }
    }

    /// The number, and of the median of one cell which one that is. The least or largest of a grid is always a median.
    fn measured_at(&self, measure: &Measure) -> Option<(f64, Option<Cell>)> {
        let is_median = self.average == Average::Median || measure.is_extreme();
        if self.seeds.is_empty() || !is_median {
            let (own, other) = self.of_variants(measure)?;
            return Some((measure.between(own, other)?, None));
        }
        let seeds: Option<Vec<_>> = self.seeds.iter().map(|seed| seed.of_variants(measure)).collect();
        measure.over_medians(&seeds?)
    }

    /// From the least to the largest that it takes from the curves of a single seed.
    fn over_seeds(&self, measure: &Measure) -> Option<Range> {
        Range::of(self.seeds.iter().filter_map(|seed| seed.measured(measure)))
    }
}
