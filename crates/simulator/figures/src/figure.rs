//! A figure and the interfaces of the kinds of figures: one trait for the file, one for the results.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::claim;
use super::live_runs::{LiveOutcome, MakeLive};
use super::measure;
use super::metrics::check_metric;
use super::plot_data::{Measurement, PlotData};
use super::results::{Options, RunContext};
use super::table::Table;
use super::timeline::measure::Measure as TimelineMeasure;
use super::timeline::shown::Shown;
use super::variant::Depends;
use tacit_analysis::chart::Views;
use tacit_analysis::first_seen;
use tacit_runs::RunsError;
use tacit_scenario::InputError;
use tacit_scenario::input::Section;

/// A figure: its computations or runs, its drawing, and the claims about it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Paper and figure.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its source, if it reproduces something.
    pub paper: Option<String>,
    /// Notes that a reader needs to assess it: assumptions and explanations.
    pub note: Option<String>,
    pub(super) kind: Arc<dyn Kind>,
    pub(super) plot: Plot,
    pub(super) table: Option<Table>,
    pub(super) claims: Vec<Claim>,
}

/// `[plot]`: how curves are drawn.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub log_x: bool,
    pub log_y: bool,
    /// A panel below the curves that shows the gain of one curve over another.
    pub gain: Option<Gain>,
    /// Variants that have a separate panel below the curves.
    pub panels: Vec<String>,
    /// Draw cumulative distributions over the seeds instead of curves over x. Only for a sweep with a single x.
    pub cdf: bool,
}

/// The gain of the first curve over the second.
#[derive(Clone, Debug)]
pub(super) struct Gain {
    pub curve: String,
    pub over: String,
}

impl Figure {
    /// The kind-specific part of its file, if its kind is `K`.
    #[cfg(test)]
    pub(super) fn kind_as<K: Kind>(&self) -> Option<&K> {
        let kind: &dyn Any = &*self.kind;
        kind.downcast_ref()
    }

    /// All measures over curves, of claims and of table cells.
    pub(super) fn measures(&self) -> impl Iterator<Item = &measure::Measure> {
        let claims = self.claims.iter().filter_map(|claim| claim.measure.as_curves());
        claims.chain(self.table.iter().flat_map(Table::measures))
    }

    /// The columns `plotted`, and those that are measured in addition to them.
    pub(super) fn columns<'a>(&'a self, plotted: impl Iterator<Item = &'a str>) -> Vec<String> {
        let all = plotted.chain(self.measures().filter_map(measure::Measure::column));
        first_seen(all).into_iter().map(str::to_owned).collect()
    }
}

/// A claim of a figure.
pub(super) type Claim = claim::Claim<Measure>;

/// Measure of a claim: a number from curves, or from the frames of a time line.
#[derive(Clone, Debug)]
pub(super) enum Measure {
    Curves(measure::Measure),
    Timeline(TimelineMeasure),
}

impl Measure {
    /// The measure over curves, if it is one.
    pub const fn as_curves(&self) -> Option<&measure::Measure> {
        match self {
            Self::Curves(measure) => Some(measure),
            Self::Timeline(_) => None,
        }
    }
}

/// The part of a figure file that describes the source of its results.
pub(super) trait Kind: Any + fmt::Debug + Send + Sync {
    /// Names of the curves that claims can refer to; `None` for a figure without curves.
    fn curve_names(&self) -> Option<Vec<String>>;

    /// The variants in addition to the main curves.
    fn variants(&self) -> Vec<VariantNames<'_>> {
        Vec::new()
    }

    /// Refuses a column that the curves do not have. `root` is the figure file.
    fn check_column(&self, name: &str, root: &Section<'_>) -> Result<(), InputError> {
        check_metric(name, root)
    }

    /// The values of x of its curves, in a variant or as drawn; `None` if only its runs tell.
    fn places(&self, _variant: Option<&str>) -> Option<Vec<f64>> {
        None
    }

    /// Reads the measure of one of its claims.
    fn read_measure(&self, section: Section<'_>) -> Result<Measure, InputError> {
        measure::Measure::read(section).map(Measure::Curves)
    }

    /// Whether its curves have a single x with several seeds, so that a distribution over them exists.
    fn is_at_one_x(&self) -> bool {
        false
    }

    /// The table of its variants.
    fn depends(&self) -> Option<&Depends> {
        None
    }

    /// Whether the quick form includes all runs that `measure` needs.
    fn makes_in_short(&self, _measure: &measure::Measure) -> bool {
        true
    }

    /// Executes its live runs, quick or in full. Returns `None` for a figure without live runs.
    ///
    /// # Errors
    /// If a run cannot be executed.
    fn make_live(&self, _quick: bool, _make: &mut dyn MakeLive) -> Result<Option<LiveOutcome>, RunsError> {
        Ok(None)
    }

    /// Why this machine did not execute the live runs of figure `id`, which happens before figures are drawn.
    fn skip_reason(&self, _id: &str, _options: &Options) -> Option<String> {
        None
    }

    /// Whether `directory` contains results of `figure`.
    fn is_stored(&self, figure: &Figure, directory: &Path) -> bool;

    /// Its results, either computed or read, depending on `making`.
    ///
    /// # Errors
    /// If a run fails, or results are missing, damaged, or cannot be stored.
    fn results(&self, figure: &Figure, making: RunContext<'_>) -> Result<Findings, RunsError>;
}

/// A variant with the names that claims use.
pub(super) struct VariantNames<'a> {
    pub name: &'a str,
    /// Its own curves, which claims may compare with those of other variants. `None` if it has the figure's curves;
    /// these cannot be compared with other variants.
    pub curves: Option<Vec<String>>,
}

/// Results of a figure, from which claims are measured and the figure is drawn.
pub(super) struct Findings {
    pub evidence: Evidence,
    /// Why a claim is not judged although its number is known: the machine disturbed the runs it refers to.
    pub disturbance: Disturbance,
    /// A special picture. Without one, the table or the curves are drawn.
    pub picture: Option<Views>,
    /// Measurements as text, one line per place.
    pub measurements: Vec<String>,
}

type Disturbance = Box<dyn Fn(&Claim, Option<f64>) -> Option<String>>;

/// What claims are measured on.
pub(super) enum Evidence {
    Curves(Box<PlotData>),
    Frames(Shown),
}

impl Findings {
    /// Results that nothing disturbs, and that are drawn as usual.
    pub fn new(evidence: Evidence) -> Self {
        Self { evidence, disturbance: Box::new(|_, _| None), picture: None, measurements: Vec::new() }
    }

    /// The same for curves.
    pub fn from_curves(curves: PlotData) -> Self {
        Self::new(Evidence::Curves(Box::new(curves)))
    }

    /// Its curves; `None` for frames.
    pub fn curves(&self) -> Option<&PlotData> {
        match &self.evidence {
            Evidence::Curves(curves) => Some(curves),
            Evidence::Frames(_) => None,
        }
    }

    /// Evaluates `measure`.
    pub fn measured(&self, measure: &Measure) -> Measurement {
        match (&self.evidence, measure) {
            (Evidence::Curves(curves), Measure::Curves(measure)) => curves.measurement(measure),
            (Evidence::Frames(shown), Measure::Timeline(measure)) => {
                Measurement { number: shown.measured(measure), ..Measurement::default() }
            }
            _ => Measurement::default(),
        }
    }
}
