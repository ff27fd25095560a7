//! What figures of live hops have in common: real programs give their results, and the simulator stands beside.
//!
//! This room makes no live runs: a figure says which it wants, and the caller brings the program that makes them
//! ([`MakeLive`]). They are made before all else, because they fork a process that must have a single thread.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::downloads::{DownloadReport, DownloadRun, Downloads, SenderDownloads};
use super::file::Figure;
use super::kind::{Findings, Kind, VariantNames, check_metric};
use super::live::{Live, LiveReport, LiveRun, Pair};
use super::measure::Measure;
use super::results::RunContext;
use super::run::Options;
use super::saved;
use super::transfers::{TransferPoint, TransferReport, TransferRun, Transfers};
use tacit_runs::RunsError;
use tacit_scenario::InputError;
use tacit_scenario::input::Section;

/// Sorts of live runs, by the programs that they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveSort {
    /// Downloads by iperf3, of `[live]`.
    Iperf,
    /// Downloads of a file beside an upload, of `[downloads]`.
    Downloads,
    /// Transfers by the programs of each arm, of `[transfers]`.
    Transfers,
}

/// Who makes live runs. An error of a run is one line.
pub trait MakeLive {
    /// Why this machine makes none of this sort; asked before the first of them.
    ///
    /// # Errors
    /// Where what keeps them cannot be opened.
    fn skip_reason(&mut self, _sort: LiveSort) -> Result<Option<String>, RunsError> {
        Ok(None)
    }

    /// Makes a run of iperf3.
    ///
    /// # Errors
    /// Where it cannot be made.
    fn iperf(&mut self, _run: &LiveRun) -> Result<LiveReport, String> {
        Err(NOT_MADE.to_owned())
    }

    /// Makes runs of downloads, all of them at the same time.
    ///
    /// # Errors
    /// Where one cannot be made.
    fn downloads(&mut self, _runs: &[DownloadRun]) -> Result<Vec<DownloadReport>, String> {
        Err(NOT_MADE.to_owned())
    }

    /// Why transfers like this one cannot be made here: a program is not there.
    fn missing(&mut self, _run: &TransferRun) -> Option<String> {
        None
    }

    /// Makes a transfer.
    ///
    /// # Errors
    /// Where it cannot be made.
    fn transfer(&mut self, _run: &TransferRun) -> Result<TransferReport, String> {
        Err(NOT_MADE.to_owned())
    }
}

const NOT_MADE: &str = "nothing here makes such runs";

/// What the live runs of figures gave, or why there are none.
#[derive(Clone, Debug, Default)]
pub struct LiveRuns {
    pub(super) pairs: PerFigure<Pair>,
    pub(super) downloads: PerFigure<SenderDownloads>,
    pub(super) transfers: PerFigure<TransferPoint>,
}

impl LiveRuns {
    /// Makes the live runs of `figures`, of those that have any.
    ///
    /// # Errors
    /// Where a run cannot be made.
    pub fn make(figures: &[Figure], quick: bool, make: &mut dyn MakeLive) -> Result<Self, RunsError> {
        Ok(Self {
            pairs: PerFigure::made::<Live>(figures, quick, make)?,
            downloads: PerFigure::made::<Downloads>(figures, quick, make)?,
            transfers: PerFigure::made::<Transfers>(figures, quick, make)?,
        })
    }
}

/// What a machine made for each figure that wants it, by the figure's id, or why it did not.
#[derive(Clone, Debug)]
pub(super) struct PerFigure<T>(BTreeMap<String, Result<Vec<T>, String>>);

impl<T> Default for PerFigure<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> PerFigure<T> {
    fn made<K: LiveKind<Run = T>>(
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
                None => Ok(kind.shortened(quick).measure(make)?),
            };
            all.0.insert(id.clone(), runs);
        }
        Ok(all)
    }

    /// What was made for figure `id`; nothing of what was not made.
    fn get(&self, id: &str) -> &[T] {
        self.0.get(id).and_then(|runs| runs.as_deref().ok()).unwrap_or_default()
    }

    /// Why there is nothing for figure `id`.
    fn skip_reason(&self, id: &str) -> Option<String> {
        match self.0.get(id) {
            Some(Ok(_)) => None,
            Some(Err(skip_reason)) => Some(skip_reason.clone()),
            None => Some("no live runs were made".to_owned()),
        }
    }
}

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
    fn shortened(&self, quick: bool) -> Self;

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
        self.shortened(true).makes(measure)
    }

    fn skip_reason(&self, id: &str, options: &Options) -> Option<String> {
        K::given(&options.live).skip_reason(id)
    }

    fn is_stored(&self, figure: &Figure, directory: &Path) -> bool {
        saved::is_there(&figure.id, directory)
    }

    fn results(&self, figure: &Figure, making: RunContext<'_>) -> Result<Box<dyn Findings>, RunsError> {
        let made = self.shortened(making.options.quick);
        let live = K::given(&making.options.live).get(&figure.id);
        let results = saved::read_or_made(&figure.id, making, || made.compared(live, making))?;
        Ok(made.findings(results))
    }
}
