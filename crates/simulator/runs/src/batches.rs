//! A sweep of numbered runs that can be simulated in batches on several machines. Every program with the same sweep
//! assigns the same numbers, so two numbers suffice to delegate a batch.

mod directory;
mod grid;
mod record_file;
mod stored;
mod swept;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tacit_scenario::scheme::{self, Scheme};
use tacit_scenario::{
    InputError, MAX_CLIENTS, MAX_SEEDS, RunSpec, Scenario, ScenarioError, Subject, warnings,
};

use crate::error::RunsError;
use crate::identity::{Program, RunId, run_id};
use crate::plan::Plan;
use crate::record::RunSummary;
use crate::store::{self, Provenance, Sheet, SheetWriter, tables};
use crate::sweep::{self, Control};

pub use directory::{Directory, Format, Swept};
pub use grid::grid;
pub use stored::StoredPlace;
use swept::{SweptColumn, swept_columns};
pub use swept::{add_swept, quantity};

/// Maximum number of runs in a batch (our choice). If a worker is lost, the finished part of one batch is lost. A file
/// with this number of runs consists mostly of data.
const BATCH: usize = 64;
/// Maximum number of runs in one sweep.
const MAX_RUNS: usize = 100_000_000;

/// A sweep over places (sweep points), schemes, client counts and seeds. Runs are numbered in that order, and the seed
/// changes fastest.
#[derive(Debug)]
pub struct Batches {
    written: Written,
    schemes: Vec<&'static Scheme>,
    /// The last scenario and subject created. Neighbouring runs share them.
    last: Mutex<Last>,
}

/// The serialised form of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    /// Name of the scenario.
    scenario: String,
    /// Its name on the command line.
    invocation: String,
    places: Vec<GridPoint>,
    /// For each swept key, its column in the tables.
    columns: Vec<SweptColumn>,
    schemes: Vec<String>,
    clients: Vec<u32>,
    seeds: u32,
    /// The program that wrote it. Another program has different names for the same runs.
    program: String,
}

/// One place of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct GridPoint {
    /// The assignments at this place.
    at: Vec<String>,
    /// The whole scenario at this place as TOML.
    scenario_text: Arc<str>,
}

#[derive(Debug, Default)]
struct Last {
    scenario: Option<(usize, Arc<Scenario>)>,
    subject: Option<(usize, usize, Arc<Subject>)>,
}

impl Batches {
    /// Creates the sweep of a scenario, given by name, path or text, over `places` (see [`grid()`]). Without client
    /// counts or seeds, those of the scenario are used; without schemes, the scenario as written.
    ///
    /// # Errors
    /// If any input is not allowed, at any place. All of it is checked before the first run.
    pub fn new(
        scenario: &str,
        assignments: &[String],
        places: &[Vec<String>],
        schemes: &[String],
        clients: &[u32],
        seeds: Option<u32>,
    ) -> Result<Self, RunsError> {
        let schemes = match schemes {
            [] => vec![&scheme::AS_WRITTEN],
            [one] if one == scheme::AS_WRITTEN.name => vec![&scheme::AS_WRITTEN],
            names => scheme::select("--schemes", names)?,
        };
        let base = Scenario::load(scenario, assignments)?;
        warnings::check_sweep(scenario, assignments, places, &schemes, clients)?;
        let seeds = seeds.unwrap_or(base.run.seeds);
        let clients = if clients.is_empty() { vec![base.clients] } else { clients.to_vec() };
        let read = |at: &Vec<String>| {
            let here = Scenario::load(scenario, &[assignments, at].concat());
            let here = Arc::new(here.map_err(|error| error.at_place(at))?);
            here.compared_counts(&clients)?;
            for scheme in &schemes {
                let subject = Subject::new(here.clone(), scheme);
                clients.iter().try_for_each(|count| subject.check(*count))?;
            }
            Ok(GridPoint { at: at.clone(), scenario_text: here.text.clone() })
        };
        let places = places.iter().map(read).collect::<Result<Vec<_>, ScenarioError>>()?;
        let written = Written {
            scenario: base.name,
            invocation: base.invocation,
            columns: swept_columns(&places.iter().map(|place| place.at.as_slice()).collect::<Vec<_>>()),
            places,
            schemes: schemes.iter().map(|scheme| scheme.name.to_owned()).collect(),
            clients,
            seeds,
            program: this_program(),
        };
        Self::from_written(written)
    }

    fn from_written(written: Written) -> Result<Self, RunsError> {
        InputError::check_range("--seeds", written.seeds, 1..=MAX_SEEDS)?;
        let is_allowed = |count: &u32| InputError::check_range("--clients", *count, 1..=MAX_CLIENTS);
        written.clients.iter().try_for_each(is_allowed)?;
        let schemes: Vec<_> =
            written.schemes.iter().map(|name| scheme::named("sweep", name)).collect::<Result<_, _>>()?;
        let factors = [schemes.len(), written.clients.len(), written.seeds as usize];
        let runs = factors.iter().try_fold(written.places.len(), |all, factor| all.checked_mul(*factor));
        match runs {
            Some(1..=MAX_RUNS) => Ok(Self { written, schemes, last: Mutex::default() }),
            _ => {
                let what = "no places, schemes or clients, or too many of them times seeds";
                Err(InputError::new("sweep", what).allowed(format!("1 to {MAX_RUNS} runs")).into())
            }
        }
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.written.places.len() * self.runs_of_place()
    }

    /// Number of runs at one place. They are consecutive.
    fn runs_of_place(&self) -> usize {
        self.schemes.len() * self.runs_of_subject()
    }

    /// Divides the runs into batches of at most 64 that differ only in client count and seed. Each batch is assigned
    /// and stored as a unit.
    pub fn batches(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.batches_of(0..self.runs())
    }

    /// The batches of `runs`, which must be whole places.
    fn batches_of(&self, runs: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let step = self.runs_of_subject();
        let subjects = runs.step_by(step.max(1));
        subjects.flat_map(move |first| {
            (first..first + step).step_by(BATCH).map(move |start| start..(start + BATCH).min(first + step))
        })
    }

    /// The runs in `range`, which must belong to one place, as a small sweep of their own. The order is self-contained,
    /// and its size does not depend on the number of places.
    ///
    /// # Errors
    /// If the range is empty or exceeds its place.
    pub fn order(&self, range: &Range<usize>) -> Result<Order, RunsError> {
        self.check(range)?;
        let place = range.start / self.runs_of_place();
        let first = place * self.runs_of_place();
        if range.is_empty() || range.end > first + self.runs_of_place() {
            return Err(InputError::new("runs", "they are not of one place").into());
        }
        let written = Written { places: vec![self.written.places[place].clone()], ..self.written.clone() };
        Ok(Order { sweep: written, runs: range.start - first..range.end - first })
    }

    /// Number of consecutive runs that differ only in client count and seed.
    fn runs_of_subject(&self) -> usize {
        self.written.clients.len() * self.written.seeds as usize
    }

    /// Name of the scenario.
    pub fn scenario_name(&self) -> &str {
        &self.written.scenario
    }

    /// The assignments at each place.
    pub fn assignments(&self) -> Vec<Vec<String>> {
        self.written.places.iter().map(|place| place.at.clone()).collect()
    }

    /// The client counts.
    pub fn clients(&self) -> &[u32] {
        &self.written.clients
    }

    /// The place of run `run`, which must be in the sweep.
    fn place_of(&self, run: usize) -> &GridPoint {
        &self.written.places[run / self.runs_of_place()]
    }

    /// The specifications of the runs in `range`, which must be within the sweep.
    ///
    /// # Errors
    /// If a trace that the scenario names is missing on this machine.
    fn specs(&self, range: Range<usize>) -> Result<Vec<RunSpec>, RunsError> {
        range.map(|run| self.spec(run)).collect()
    }

    fn spec(&self, run: usize) -> Result<RunSpec, RunsError> {
        let seeds = self.written.seeds as usize;
        let (place, scheme) = (run / self.runs_of_place(), run / self.runs_of_subject() % self.schemes.len());
        let clients = self.written.clients[run / seeds % self.written.clients.len()];
        Ok(RunSpec {
            x: self.x(place),
            ..RunSpec::new(self.subject(place, scheme)?, clients, (run % seeds) as u64 + 1)
        })
    }

    fn subject(&self, place: usize, scheme: usize) -> Result<Arc<Subject>, RunsError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., subject)) =
            last.subject.as_ref().filter(|known| (known.0, known.1) == (place, scheme))
        {
            return Ok(subject.clone());
        }
        let scenario = match &last.scenario {
            Some((known, scenario)) if *known == place => scenario.clone(),
            _ => Arc::new(self.scenario(place)?),
        };
        let subject = Arc::new(Subject::new(scenario.clone(), self.schemes[scheme]));
        *last = Last { scenario: Some((place, scenario)), subject: Some((place, scheme, subject.clone())) };
        Ok(subject)
    }

    /// The scenario at a place, with its name and assignments on the command line.
    fn scenario(&self, place: usize) -> Result<Scenario, ScenarioError> {
        let Written { scenario, invocation, places, .. } = &self.written;
        let GridPoint { at, scenario_text } = &places[place];
        let parsed = Scenario::parse(scenario, scenario_text, &[])?;
        let set: String =
            at.iter().map(|assignment| format!(" --set {}", tacit_scenario::quoted(assignment))).collect();
        Ok(Scenario { name: scenario.clone(), invocation: format!("{invocation}{set}"), ..parsed })
    }

    /// Position of a place on the axis: the number in its only assignment.
    fn x(&self, place: usize) -> Option<f64> {
        let [assignment] = self.written.places[place].at.as_slice() else { return None };
        let value = assignment.split_once('=')?.1.trim();
        let end = value.find(|letter: char| !matches!(letter, '0'..='9' | '.' | '-')).unwrap_or(value.len());
        value[..end].parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// Warnings about settings without effect, with their place, without duplicates.
    ///
    /// # Errors
    /// Same as [`Batches::make`].
    pub fn warnings(&self) -> Result<Vec<String>, RunsError> {
        let mut all: Vec<String> = Vec::new();
        let mut known = BTreeSet::new();
        for (place, GridPoint { at, .. }) in self.written.places.iter().enumerate() {
            // The positions of clients do not depend on scheme and seed.
            let subject = self.subject(place, 0)?;
            for count in &self.written.clients {
                let setup = RunSpec::new(subject.clone(), *count, 1).setup()?;
                let new =
                    warnings::of_setup(&setup).into_iter().filter(|warning| known.insert(warning.clone()));
                all.extend(new.map(|warning| match at.as_slice() {
                    [] => warning,
                    at => format!("{}: {warning}", at.join(", ")),
                }));
            }
        }
        Ok(all)
    }

    /// The names of the runs in `range`. Equal names mean equal results.
    ///
    /// # Errors
    /// If the range exceeds the sweep; also the errors of [`Batches::make`].
    pub fn ids(&self, range: Range<usize>) -> Result<Vec<RunId>, RunsError> {
        self.check(&range)?;
        Ok(self.specs(range)?.iter().map(run_id).collect())
    }

    /// Simulates the runs in `range`, on all cores in the thread pool of the calling thread.
    ///
    /// # Errors
    /// If the range exceeds the sweep, a trace that the scenario names is missing on this machine, a run fails, or the
    /// user interrupts it.
    pub fn make(&self, range: Range<usize>, control: Control<'_>) -> Result<Vec<RunSummary>, RunsError> {
        self.check(&range)?;
        sweep::run(&Plan { runs: self.specs(range)? }, None, control)
    }

    fn check(&self, range: &Range<usize>) -> Result<(), InputError> {
        let inside = range.start <= range.end && range.end <= self.runs();
        let wrong = || InputError::new("runs", format!("{} to {}", range.start, range.end));
        inside.then_some(()).ok_or_else(|| wrong().allowed(format!("0 to {}", self.runs())))
    }

    /// A table of `runs` of one place, numbered from `first`: their labels, a column for each swept key, and
    /// their metrics.
    ///
    /// # Errors
    /// If a run does not belong to this sweep.
    fn table(&self, first: usize, runs: &[RunSummary]) -> Result<Sheet, InputError> {
        let range = first..first + runs.len();
        self.check(&range)?;
        let places: Vec<&[String]> = range.map(|run| self.place_of(run).at.as_slice()).collect();
        Ok(tables::rows(&runs.iter().collect::<Vec<_>>(), &|sheet| {
            for (index, column) in self.written.columns.iter().enumerate() {
                column.add(sheet, index, &places);
            }
        }))
    }

    /// Writes the file at `path` in `format` with `runs` of one place, numbered from `first`.
    fn export(
        &self,
        path: &Path,
        first: usize,
        runs: &[RunSummary],
        format: Format,
    ) -> Result<(), RunsError> {
        let sheet = self.table(first, runs)?;
        if format == Format::Csv {
            return store::write_whole(path, sheet.to_csv().as_bytes());
        }
        let provenance = Provenance {
            version: crate::VERSION.to_owned(),
            command: self.spec(first)?.command(),
            ..self.provenance(self.place_of(first))
        };
        let mut file = SheetWriter::create(path, &sheet, &provenance)?;
        file.write(&sheet)?;
        file.finish()
    }

    /// The record of `runs` of one place. Its scenario is in the sweep.
    fn record(&self, runs: &[RunSummary]) -> Result<Vec<u8>, RunsError> {
        let bare = |run: &RunSummary| RunSummary { scenario_text: "".into(), ..run.clone() };
        let runs: Vec<RunSummary> = runs.iter().map(bare).collect();
        store::record_of(&runs, Path::new("a batch of runs"))
    }

    /// What the sweep says about the runs at `place`.
    fn provenance(&self, place: &GridPoint) -> Provenance {
        Provenance {
            scenario: self.written.scenario.clone(),
            scenario_text: place.scenario_text.clone(),
            seeds: format!("1 to {}", self.written.seeds),
            schemes: self.written.schemes.join(","),
            ..Provenance::default()
        }
    }
}

/// Part of a sweep, in the form in which it is sent to another machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    sweep: Written,
    runs: Range<usize>,
}

impl Order {
    /// The order as text, which [`Order::parse`] can read.
    pub fn to_text(&self) -> String {
        to_text(self)
    }

    /// Parses the text produced by [`Order::to_text`].
    ///
    /// # Errors
    /// If the text is not an order, or was written by another program, whose runs have different names.
    pub fn parse(text: &str) -> Result<Self, RunsError> {
        let order: Self = from_text(text)?;
        order.sweep.check_program()?;
        Ok(order)
    }

    /// Simulates the runs. Returns their record, for [`Directory::keep`].
    ///
    /// # Errors
    /// Same as [`Batches::make`].
    pub fn make(self, control: Control<'_>) -> Result<Vec<u8>, RunsError> {
        let sweep = Batches::from_written(self.sweep)?;
        sweep.record(&sweep.make(self.runs, control)?)
    }
}

impl Written {
    fn check_program(&self) -> Result<(), InputError> {
        if self.program == this_program() {
            return Ok(());
        }
        let what = format!("written by another build of tacit than this ({})", crate::VERSION);
        Err(InputError::new("sweep", what)
            .allowed("one build of tacit on all machines: install the very same wheel"))
    }
}

fn to_text(written: &impl Serialize) -> String {
    serde_json::to_string(written).expect("strings and integers have a JSON form")
}

fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, InputError> {
    let wrong = |error: serde_json::Error| InputError::new("sweep", error.to_string());
    serde_json::from_str(text).map_err(|error| wrong(error).allowed("one that this program wrote"))
}

/// Hash of this program as text.
fn this_program() -> String {
    Program::this().map_or_else(String::new, |program| program.to_string())
}
