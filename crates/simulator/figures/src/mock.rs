//! Figures of tests, and a machine that makes up the results of their live runs.

use std::cell::RefCell;
use std::path::Path;

use super::{Figure, FigureOutcome, LiveRuns, MakeLive, Options, TransferReport, TransferRun, run};
use tacit_runs::RunsError;
use tacit_runs::sweep::Control;

/// A machine that returns the results of `report` and records its requests.
pub(super) struct Machine<F> {
    report: F,
    pub asked: RefCell<Vec<TransferRun>>,
    /// Numbers of runs that it was asked for at the same time.
    pub rounds: RefCell<Vec<usize>>,
    /// A program that it lacks.
    pub missing: Option<&'static str>,
    /// Why it has no live hops.
    pub refuses: Option<&'static str>,
}

pub(super) fn machine<F: Fn(&TransferRun) -> Result<TransferReport, String>>(report: F) -> Machine<F> {
    Machine { report, asked: RefCell::default(), rounds: RefCell::default(), missing: None, refuses: None }
}

impl<F: Fn(&TransferRun) -> Result<TransferReport, String>> MakeLive for Machine<F> {
    fn skip_reason(&mut self) -> Result<Option<String>, RunsError> {
        Ok(self.refuses.map(str::to_owned))
    }

    fn missing(&mut self, run: &TransferRun) -> Option<String> {
        self.missing.filter(|program| run.client[0] == *program).map(|program| format!("no {program}"))
    }

    fn make(&mut self, runs: &[TransferRun]) -> Result<Vec<TransferReport>, String> {
        self.asked.borrow_mut().extend_from_slice(runs);
        self.rounds.borrow_mut().push(runs.len());
        runs.iter().map(&self.report).collect()
    }
}

/// The figure in `toml`.
pub(super) fn figure(toml: &str) -> Figure {
    Figure::parse("test/figure", "figure.toml", toml).unwrap()
}

/// The outcome of the figure in `toml`. `make` makes its live runs. With a directory it is stored, and judged again by what
/// is stored.
pub(super) fn outcome(
    toml: &str,
    quick: bool,
    make: &mut dyn MakeLive,
    directory: Option<&Path>,
) -> FigureOutcome {
    let figures = [figure(toml)];
    let live = LiveRuns::make(&figures, quick, make).unwrap();
    let directory = directory.map(Path::to_owned);
    let judged = |options: &Options| run(&figures, options, Control::unattended()).unwrap().remove(0);
    let outcome = judged(&Options { quick, live, directory: directory.clone(), ..Options::default() });
    if directory.is_some() {
        let again = judged(&Options { quick, from: directory.clone(), directory, ..Options::default() });
        assert_eq!(again, outcome);
    }
    outcome
}

pub(super) fn verdicts(outcome: &FigureOutcome) -> Vec<&str> {
    outcome.claims.iter().map(|claim| claim.verdict.word()).collect()
}
