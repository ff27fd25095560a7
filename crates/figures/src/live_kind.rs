//! What figures of live hops have in common: real programs give their results, and the simulator stands beside.

use std::any::Any;
use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::figure::{Figure, Findings, Kind, VariantNames};
use super::live_run::{LiveRuns, LiveSort, MakeLive, PerFigure};
use super::measure::Measure;
use super::metrics::check_metric;
use super::results::{Options, RunContext};
use super::saved;
use tacit_runs::RunsError;
use tacit_scenario::InputError;
use tacit_scenario::input::Section;

/// A kind of figure whose results come from live hops, and from the simulator beside them.
pub(super) trait LiveKind: Any + fmt::Debug + Send + Sync + Sized {
    /// The programs it takes.
    const SORT: LiveSort;
    /// Columns of every curve; the first is drawn.
    const COLUMNS: &'static [&'static str];
    /// What some of its live runs gave.
    type Run;
    /// What is kept of a figure.
    type Results: Serialize + DeserializeOwned;

    /// Names of the curves that claims may speak of.
    fn names_of_curves(&self) -> Vec<String>;

    /// Names of what is made beside the curves that are drawn first, with the same curves.
    fn names_of_variants(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether its runs have all that `measure` takes.
    fn makes(&self, _measure: &Measure) -> bool {
        true
    }

    /// The runs as they are made, `quick` or in full.
    fn form(&self, quick: bool) -> Self;

    /// Makes the live runs.
    ///
    /// # Errors
    /// Where one cannot be made.
    fn measure(&self, make: &mut dyn MakeLive) -> Result<Vec<Self::Run>, RunsError>;

    /// Those of `all` that are of this kind.
    fn given(all: &LiveRuns) -> &PerFigure<Self::Run>;

    /// What the live runs come to, and the same simulated.
    ///
    /// # Errors
    /// Where a simulation fails.
    fn compared(&self, live: &[Self::Run], making: RunContext<'_>) -> Result<Self::Results, RunsError>;

    /// The results as claims are held against them.
    fn findings(&self, results: Self::Results) -> Box<dyn Findings>;
}

impl<K: LiveKind> Kind for K {
    fn curve_names(&self) -> Option<Vec<String>> {
        Some(self.names_of_curves())
    }

    fn variants(&self) -> Vec<VariantNames<'_>> {
        self.names_of_variants().into_iter().map(|name| VariantNames { name, curves: None }).collect()
    }

    fn check_column(&self, name: &str, root: &Section<'_>) -> Result<(), InputError> {
        if K::COLUMNS.contains(&name) { Ok(()) } else { check_metric(name, root) }
    }

    fn makes_in_short(&self, measure: &Measure) -> bool {
        self.form(true).makes(measure)
    }

    fn skip_reason(&self, id: &str, options: &Options) -> Option<String> {
        K::given(&options.live).skip_reason(id)
    }

    fn is_stored(&self, figure: &Figure, directory: &Path) -> bool {
        saved::is_there(&figure.id, directory)
    }

    fn results(&self, figure: &Figure, making: RunContext<'_>) -> Result<Box<dyn Findings>, RunsError> {
        let made = self.form(making.options.quick);
        let live = K::given(&making.options.live).get(&figure.id);
        let results = saved::read_or_made(&figure.id, making, || made.compared(live, making))?;
        Ok(made.findings(results))
    }
}

impl<T> PerFigure<T> {
    /// What `make` gives the figures of kind `K`.
    ///
    /// # Errors
    /// Where a run cannot be made.
    pub fn made<K: LiveKind<Run = T>>(
        figures: &[Figure],
        quick: bool,
        make: &mut dyn MakeLive,
    ) -> Result<Self, RunsError> {
        let wanted = figures.iter().filter_map(|figure| Some((&figure.id, figure.kind_as::<K>()?)));
        let wanted: Vec<_> = wanted.collect();
        let skip_reason = if wanted.is_empty() { None } else { make.skip_reason(K::SORT)? };
        let mut all = Self::default();
        for (id, kind) in wanted {
            let runs = match &skip_reason {
                Some(skip_reason) => Err(skip_reason.clone()),
                None => Ok(kind.form(quick).measure(make)?),
            };
            all.0.insert(id.clone(), runs);
        }
        Ok(all)
    }
}
