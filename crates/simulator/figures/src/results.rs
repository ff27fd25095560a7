//! Source of a figure's runs: they are simulated and stored, or read from stored results.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::live_runs::LiveRuns;
use tacit_runs::air::Ppdu;
use tacit_runs::identity::run_id;
use tacit_runs::plan::{self, Plan};
use tacit_runs::record::{RunRecord, RunSummary};
use tacit_runs::store::{Provenance, Store};
use tacit_runs::sweep::{self, Control, Progress};
use tacit_runs::track::TrackRecord;
use tacit_runs::{RunsError, VERSION};
use tacit_scenario::input::{Section, integer, text, texts};
use tacit_scenario::scheme::Scheme;
use tacit_scenario::{InputError, MAX_CLIENTS, RunSpec, Scenario, Subject, quoted};
use tacit_sim::{RunError, RunOutcome, Setup};

/// Options for running figures.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fewer and shorter runs, as configured in the files.
    pub quick: bool,
    /// Directory of pictures and results; `None` stores nothing.
    pub directory: Option<PathBuf>,
    /// Directory from which results are read instead of running anything.
    pub from: Option<PathBuf>,
    /// All figures were requested, so those without results in `from` are skipped.
    pub all: bool,
    /// Live runs of the figures that need them.
    pub live: LiveRuns,
}

/// Options and control of a figure, and the versions that produced its results.
#[derive(Clone, Copy)]
pub(super) struct RunContext<'a> {
    pub options: &'a Options,
    pub control: Control<'a>,
    /// The versions of tacit that executed the runs.
    pub versions: &'a RefCell<BTreeSet<String>>,
}

impl RunContext<'_> {
    /// Adds versions that executed runs.
    pub fn made_by(&self, versions: impl IntoIterator<Item = impl Into<String>>) {
        self.versions.borrow_mut().extend(versions.into_iter().map(Into::into));
    }
}

/// The results of one set of runs.
pub(super) struct Results<'a> {
    directory: Option<PathBuf>,
    stored: bool,
    id: String,
    command: String,
    making: RunContext<'a>,
}

impl<'a> Results<'a> {
    /// The results of figure `id` stored under `name`.
    pub fn new(making: RunContext<'a>, id: &str, name: &str) -> Self {
        let options = making.options;
        let directory = options.from.as_deref().or(options.directory.as_deref());
        let quick = if options.quick { " --quick" } else { "" };
        Self {
            directory: directory.map(|directory| directory.join(name)),
            stored: options.from.is_some(),
            id: id.to_owned(),
            command: format!("tacit figure {}{quick}", quoted(id)),
            making,
        }
    }

    fn read(&self, plan: &Plan) -> Result<(Store, Vec<RunSummary>), RunsError> {
        let store = Store::existing(self.directory.as_deref().unwrap_or(Path::new("")));
        let runs = sweep::stored(plan, &store, &self.command, self.making.control)?;
        Ok((store, runs))
    }

    /// The runs of `plan`.
    ///
    /// # Errors
    /// If a run fails or cannot be stored, or is to be read but is missing.
    pub fn runs(
        &self,
        plan: &Plan,
        provenance: impl FnOnce(&[RunSummary]) -> Provenance,
    ) -> Result<Vec<RunSummary>, RunsError> {
        if self.stored {
            let runs = self.read(plan)?.1;
            self.making.made_by(runs.iter().map(|run| &*run.version));
            return Ok(runs);
        }
        let store = self.directory.as_deref().map(Store::open).transpose()?;
        let runs = sweep::run(plan, store.as_ref(), self.making.control)?;
        if let Some(store) = &store {
            store.finish(&provenance(&runs), &runs)?;
        }
        self.making.made_by(runs.iter().map(|run| &*run.version));
        Ok(runs)
    }

    /// The run of `spec` with its observations. `observe` executes it if it is not stored.
    ///
    /// # Errors
    /// If the run fails or cannot be stored, or is to be read but is missing.
    pub fn observed(
        &self,
        spec: &RunSpec,
        description: String,
        observe: impl FnOnce(&Setup) -> Result<(RunOutcome, Observed), RunError>,
    ) -> Result<RunRecord, RunsError> {
        let scenario = spec.subject.scenario();
        let make = || {
            let setup = spec.setup()?;
            let (outcome, Observed { ppdus, track }) = observe(&setup).map_err(|source| RunsError::Run {
                run: format!("figure {}, seed {}", self.id, spec.seed),
                command: self.command.clone(),
                source,
            })?;
            let plain = RunRecord::new(run_id(spec), spec, &setup, &outcome);
            Ok(RunRecord { ppdus, track, ..plain })
        };
        let Some(directory) = &self.directory else {
            self.making.made_by([VERSION]);
            return make();
        };
        let plan = Plan { runs: vec![spec.clone()] };
        if !self.stored {
            let store = Store::open(directory)?;
            let warn = |text: &str| (self.making.control.progress)(Progress::Warning(text));
            let (mut writer, known) = store.resume(&warn)?;
            if !known.contains_key(&run_id(spec).to_string()) {
                writer.append(&make()?)?;
            }
            let runs = sweep::stored(&plan, &store, &self.command, self.making.control)?;
            let (seed, scheme) = (spec.seed.to_string(), spec.subject.scheme().name.to_owned());
            store.finish(&self.provenance(scenario, description, seed, scheme, &runs), &runs)?;
        }
        let (store, runs) = self.read(&plan)?;
        let [run] = &runs[..] else {
            return Err(InputError::new(&self.command, format!("{} runs instead of one", runs.len())).into());
        };
        self.making.made_by([&*run.version]);
        store.record(&run.id)
    }

    /// The provenance stored with `runs` of `scenario`.
    pub fn provenance(
        &self,
        scenario: &Scenario,
        description: String,
        seeds: String,
        schemes: String,
        runs: &[RunSummary],
    ) -> Provenance {
        Provenance {
            scenario: scenario.name.clone(),
            description,
            scenario_text: scenario.text.clone(),
            seeds,
            version: VERSION.to_owned(),
            command: self.command.clone(),
            schemes,
            digest: plan::combined_digest(runs),
            ..Provenance::default()
        }
    }
}

/// Largest seed. A figure needs a seed that shows the effect, not many seeds.
const MAX_SEED: u32 = 10_000;

/// Runs of one seed, which a figure shows in detail.
#[derive(Clone, Debug)]
pub(super) struct Observable {
    scenario: String,
    assignments: Vec<String>,
    seed: u32,
    clients: u32,
}

impl Observable {
    pub fn read(section: &Section<'_>) -> Result<Self, InputError> {
        Ok(Self {
            scenario: section.required("scenario", text)?,
            assignments: section.or("set", Vec::new(), texts)?,
            seed: section.or("seed", 1, integer(1..=MAX_SEED))?,
            clients: section.or("clients", 1, integer(1..=MAX_CLIENTS))?,
        })
    }

    /// The run with further assignments and this scheme.
    ///
    /// # Errors
    /// If it is not possible.
    pub fn spec(&self, further: &[String], scheme: &'static Scheme) -> Result<RunSpec, RunsError> {
        let assignments = [self.assignments.as_slice(), further].concat();
        let scenario = Arc::new(Scenario::load(&self.scenario, &assignments)?);
        let subject = Arc::new(Subject::new(scenario, scheme));
        subject.check(self.clients)?;
        Ok(RunSpec::new(subject, self.clients, u64::from(self.seed)))
    }
}

/// Detailed observations of a run.
#[derive(Default)]
pub(super) struct Observed {
    /// The frames on the air.
    pub ppdus: Vec<Ppdu>,
    /// The state of a flow over time.
    pub track: Vec<TrackRecord>,
}

/// Name of a file of a figure.
pub(super) fn file_name(id: &str, end: &str) -> String {
    format!("{}{end}", id.replace('/', "-"))
}

/// A name as part of a file name: letters and digits, with single hyphens between words.
pub(super) fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}
