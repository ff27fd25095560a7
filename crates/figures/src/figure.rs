//! A figure, and the parts of each kind of figure: one trait for its file, one for its results.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::claim;
use super::live_runs::{Made, MakeLive};
use super::measure;
use super::metrics::check_metric;
use super::plot_data::{Measurement, PlotData};
use super::results::{Options, RunContext};
use super::table::Table;
use super::timeline::measure::Measure as TimelineMeasure;
use super::variant::Depends;
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
    /// Where it comes from.
    pub paper: String,
    /// Notes that a reader needs to judge it: its assumptions, why it comes out so.
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
    /// A panel below the curves: the gain of one over another.
    pub gain: Option<Gain>,
    /// Variants with a panel each below the curves.
    pub panels: Vec<String>,
    /// Cumulative distributions over the seeds in place of curves over x; of a sweep at a single x.
    pub cdf: bool,
}

/// The gain of the first curve over the second.
#[derive(Clone, Debug)]
pub(super) struct Gain {
    pub of: String,
    pub over: String,
}

impl Figure {
    /// The part of its file about its kind, where that is `K`.
    #[cfg(test)]
    pub(super) fn kind_as<K: Kind>(&self) -> Option<&K> {
        let kind: &dyn Any = &*self.kind;
        kind.downcast_ref()
    }

    /// The measures over curves: of the claims, and of the cells of the table.
    pub(super) fn measures(&self) -> impl Iterator<Item = &measure::Measure> {
        let claims = self.claims.iter().filter_map(|claim| claim.measure.of_curves());
        claims.chain(self.table.iter().flat_map(Table::measures))
    }

    /// Columns that are measured beside the plotted one.
    pub(super) fn columns(&self) -> impl Iterator<Item = &str> {
        self.measures().filter_map(measure::Measure::column)
    }
}

/// A claim of a figure.
pub(super) type Claim = claim::Claim<Measure>;

/// Measure of a claim: a number of curves, or of the frames of a time line.
#[derive(Clone, Debug)]
pub(super) enum Measure {
    Curves(measure::Measure),
    Timeline(TimelineMeasure),
}

impl Measure {
    /// The number of curves that it is.
    pub const fn of_curves(&self) -> Option<&measure::Measure> {
        match self {
            Self::Curves(measure) => Some(measure),
            Self::Timeline(_) => None,
        }
    }
}

/// The part of a figure file about the source of its results.
pub(super) trait Kind: Any + fmt::Debug + Send + Sync {
    /// Names of the curves that claims may speak of; `None` of a figure without curves.
    fn curve_names(&self) -> Option<Vec<String>>;

    /// The variants beside the curves that are drawn first.
    fn variants(&self) -> Vec<VariantNames<'_>> {
        Vec::new()
    }

    /// Refuses a column that its curves do not have; `root` is the figure file.
    fn check_column(&self, name: &str, root: &Section<'_>) -> Result<(), InputError> {
        check_metric(name, root)
    }

    /// Reads the measure of one of its claims.
    fn read_measure(&self, section: Section<'_>) -> Result<Measure, InputError> {
        measure::Measure::read(section).map(Measure::Curves)
    }

    /// Whether its curves are the seeds of one x, which have a distribution.
    fn is_at_one_x(&self) -> bool {
        false
    }

    /// The table of its variants.
    fn depends(&self) -> Option<&Depends> {
        None
    }

    /// Whether the quick form has all that `measure` takes.
    fn makes_in_short(&self, _measure: &measure::Measure) -> bool {
        true
    }

    /// Makes its live runs, `quick` or in full; nothing of a figure that has none.
    ///
    /// # Errors
    /// Where one cannot be made.
    fn make_live(&self, _quick: bool, _make: &mut dyn MakeLive) -> Result<Option<Made>, RunsError> {
        Ok(None)
    }

    /// Why this machine did not make figure `id`: live runs are made before figures are.
    fn skip_reason(&self, _id: &str, _options: &Options) -> Option<String> {
        None
    }

    /// Whether `directory` has results of `figure`.
    fn is_stored(&self, figure: &Figure, directory: &Path) -> bool;

    /// Its results: made, or read where `making` says from where.
    ///
    /// # Errors
    /// Where a run fails, or results are missing, damaged, or cannot be kept.
    fn results(&self, figure: &Figure, making: RunContext<'_>) -> Result<Box<dyn Findings>, RunsError>;
}

/// A variant, and its names for claims.
pub(super) struct VariantNames<'a> {
    pub name: &'a str,
    /// Its own curves, which may be measured over those of other variants. `None` of one that has those of the figure, which
    /// claims cannot measure over others.
    pub curves: Option<Vec<String>>,
}

/// Results of a figure: claims are measured there, and it is drawn.
pub(super) trait Findings {
    /// Its curves; `None` of frames.
    fn curves(&self) -> Option<&PlotData>;

    /// The result of `measure`.
    fn measured(&self, measure: &Measure) -> Measurement {
        let of_curves = self.curves().zip(measure.of_curves());
        of_curves.map_or_else(Measurement::default, |(curves, measure)| curves.measurement(measure))
    }

    /// Why `claim` is not judged though `measured` was: the machine disturbed the runs it is about.
    fn disturbance(&self, _claim: &Claim, _measured: Option<f64>) -> Option<String> {
        None
    }

    /// Its own picture, as SVG; without one its table is drawn, or its curves.
    fn picture(&self, _figure: &Figure) -> Option<String> {
        None
    }

    /// Measurements, a line for each place.
    fn measurements(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Findings for PlotData {
    fn curves(&self) -> Option<&PlotData> {
        Some(self)
    }
}
