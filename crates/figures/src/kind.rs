//! What each kind of figure answers: one trait for what its file says, one for what came of it.

use std::any::Any;
use std::fmt;
use std::path::Path;

use super::claim;
use super::file::Figure;
use super::measure;
use super::plot_data::{Measurement, PlotData};
use super::results::RunContext;
use super::run::Options;
use super::timeline;
use super::variant::Depends;
use tacit_runs::{RunsError, metric};
use tacit_scenario::InputError;
use tacit_scenario::input::{Mismatch, Section, Value, text};

/// A claim of a figure.
pub(super) type Claim = claim::Claim<Measure>;

/// What a claim measures: a number of curves, or of the frames of a time line.
#[derive(Clone, Debug)]
pub(super) enum Measure {
    Curves(measure::Measure),
    Timeline(timeline::Measure),
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

/// What a figure file says of where its results come from.
pub(super) trait Kind: Any + fmt::Debug + Send + Sync {
    /// Names of the curves that claims may speak of; `None` of a figure without curves.
    fn curve_names(&self) -> Option<Vec<String>>;

    /// What is made beside the curves that are drawn first.
    fn variants(&self) -> Vec<VariantNames<'_>> {
        Vec::new()
    }

    /// Refuses a column that its curves do not have; `root` is the figure file.
    fn check_column(&self, name: &str, root: &Section<'_>) -> Result<(), InputError> {
        check_metric(name, root)
    }

    /// What a claim of it measures.
    fn read_measure(&self, section: Section<'_>) -> Result<Measure, InputError> {
        measure::Measure::read(section).map(Measure::Curves)
    }

    /// Whether its curves are the seeds of one x, which have a distribution.
    fn is_at_one_x(&self) -> bool {
        false
    }

    /// What a table shows of its variants.
    fn depends(&self) -> Option<&Depends> {
        None
    }

    /// Whether the quick form has all that `measure` takes.
    fn makes_in_short(&self, _measure: &measure::Measure) -> bool {
        true
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

/// A variant, and what claims may say of it.
pub(super) struct VariantNames<'a> {
    pub name: &'a str,
    /// Its own curves, which may be measured over those of other variants. `None` of one that has those of the figure, which
    /// claims cannot measure over others.
    pub curves: Option<Vec<String>>,
}

/// What came of a figure: claims are measured there, and it is drawn.
pub(super) trait Findings {
    /// Its curves; `None` of frames.
    fn curves(&self) -> Option<&PlotData>;

    /// What `measure` takes from it.
    fn measured(&self, measure: &Measure) -> Measurement {
        let of_curves = self.curves().zip(measure.of_curves());
        of_curves.map_or_else(Measurement::default, |(curves, measure)| curves.measurement(measure))
    }

    /// Why `claim` is not judged though `measured` was: the machine disturbed what it is about.
    fn disturbance(&self, _claim: &Claim, _measured: Option<f64>) -> Option<String> {
        None
    }

    /// Its own picture, as SVG; without one its table is drawn, or its curves.
    fn picture(&self, _figure: &Figure) -> Option<String> {
        None
    }

    /// What was measured where, a line for each place.
    fn measurements(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Findings for PlotData {
    fn curves(&self) -> Option<&PlotData> {
        Some(self)
    }
}

/// Refuses what is no metric of runs; `root` is the figure file.
pub(super) fn check_metric(name: &str, root: &Section<'_>) -> Result<(), InputError> {
    match metric_column(&Value::Text(name.to_owned())) {
        Ok(_) => Ok(()),
        Err(mismatch) => Err(root.error("claim", mismatch.what).allowed(mismatch.allowed)),
    }
}

/// A metric by name; `_mbps` is a `_bps` metric in millions.
pub(super) fn metric_column(value: &Value) -> Result<String, Mismatch> {
    let name = text(value)?;
    known_metric(&name).map(|_| name)
}

/// Place and factor of the metric called `name`.
pub(super) fn known_metric(name: &str) -> Result<(usize, f64), Mismatch> {
    metric::resolve_column(name).ok_or_else(|| {
        let known = metric::ALL.iter().map(|metric| metric.name).collect::<Vec<_>>().join(", ");
        Mismatch::new(format!("{name:?} is no metric"), known)
    })
}
