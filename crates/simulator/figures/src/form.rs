//! Common parts of the forms of `[transfers]`: results of real programs together with simulations.

use std::any::Any;
use std::fmt;
use std::path::Path;

use super::figure::{Figure, Findings, Kind, VariantNames};
use super::live_runs::{LiveRuns, Made, MakeLive, TransferPoint};
use super::measure::Measure;
use super::metrics::check_metric;
use super::results::{Options, RunContext};
use super::saved;
use super::transferred::Transferred;
use tacit_runs::RunsError;
use tacit_scenario::InputError;
use tacit_scenario::input::Section;

/// A kind of figure whose results come from live hops and from the simulator.
pub(super) trait Form: Any + fmt::Debug + Send + Sync + Sized {
    /// Columns of every curve; the first one is drawn.
    const COLUMNS: &'static [&'static str];
    /// Whether valid runs are stored and not repeated.
    const KEEPS: bool;

    /// Names of the curves that claims can refer to.
    fn names_of_curves(&self) -> Vec<String>;

    /// Names of the variants, which have the same curves as the main transfers.
    fn names_of_variants(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether its runs suffice for `measure`.
    fn makes(&self, _measure: &Measure) -> bool {
        true
    }

    /// The values of x in a variant, or as drawn; `None` if only the runs tell.
    fn places(&self, _variant: Option<&str>) -> Option<Vec<f64>> {
        None
    }

    /// The runs that are executed, quick or in full.
    fn shortened(&self, quick: bool) -> Self;

    /// Executes the live runs.
    ///
    /// # Errors
    /// If a run cannot be executed.
    fn measured(&self, make: &mut dyn MakeLive) -> Result<Made, RunsError>;

    /// Results of the live runs together with the corresponding simulations.
    ///
    /// # Errors
    /// If a simulation fails.
    fn compared(&self, live: &[TransferPoint], making: RunContext<'_>) -> Result<Transferred, RunsError>;

    /// The curves of `results`, and what disturbed them.
    fn findings(self, figure: &Figure, results: Transferred) -> Findings;
}

impl<F: Form> Kind for F {
    fn curve_names(&self) -> Option<Vec<String>> {
        Some(self.names_of_curves())
    }

    fn variants(&self) -> Vec<VariantNames<'_>> {
        self.names_of_variants().into_iter().map(|name| VariantNames { name, curves: None }).collect()
    }

    fn check_column(&self, name: &str, root: &Section<'_>) -> Result<(), InputError> {
        if F::COLUMNS.contains(&name) { Ok(()) } else { check_metric(name, root) }
    }

    fn places(&self, variant: Option<&str>) -> Option<Vec<f64>> {
        Form::places(self, variant)
    }

    fn makes_in_short(&self, measure: &Measure) -> bool {
        self.shortened(true).makes(measure)
    }

    fn make_live(&self, quick: bool, make: &mut dyn MakeLive) -> Result<Option<Made>, RunsError> {
        Ok(Some(match make.skip_reason(F::KEEPS)? {
            Some(skip_reason) => Err(skip_reason),
            None => self.shortened(quick).measured(make)?,
        }))
    }

    fn skip_reason(&self, id: &str, options: &Options) -> Option<String> {
        options.live.skip_reason(id)
    }

    fn is_stored(&self, figure: &Figure, directory: &Path) -> bool {
        saved::is_there(&figure.id, directory)
    }

    fn results(&self, figure: &Figure, making: RunContext<'_>) -> Result<Findings, RunsError> {
        let made = self.shortened(making.options.quick);
        let live = making.options.live.get(&figure.id);
        let results = saved::read_or_made(&figure.id, making, || made.compared(live, making))?;
        Ok(made.findings(figure, results))
    }
}

impl LiveRuns {
    /// Executes the live runs of those `figures` that have any.
    ///
    /// # Errors
    /// If a run cannot be executed.
    pub fn make(figures: &[Figure], quick: bool, make: &mut dyn MakeLive) -> Result<Self, RunsError> {
        let mut all = Self::default();
        for figure in figures {
            if let Some(made) = figure.kind.make_live(quick, make)? {
                all.0.insert(figure.id.clone(), made);
            }
        }
        Ok(all)
    }
}
