//! Source of a figure's runs: they are made and kept, or read from kept results.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::live_runs::LiveRuns;
use tacit_runs::air::PpduRecord;
use tacit_runs::identity::run_id;
use tacit_runs::plan::{self, Plan};
use tacit_runs::record::{Label, RunRecord, RunSummary};
use tacit_runs::store::{Provenance, Store};
use tacit_runs::sweep::{self, Control, Progress};
use tacit_runs::track::TrackRecord;
use tacit_runs::{RunsError, VERSION};
use tacit_scenario::{InputError, RunSpec, Scenario, quoted};
use tacit_sim::{RunError, RunOutcome, Setup};

/// How to run figures.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fewer and shorter runs, as the files say.
    pub quick: bool,
    /// Where pictures and results go; `None` keeps nothing.
    pub directory: Option<PathBuf>,
    /// Where results are read instead of made: nothing is run.
    pub from: Option<PathBuf>,
    /// Every figure was asked for: those without results in `from` are skipped.
    pub all: bool,
    /// Live runs for the figures of live hops.
    pub live: LiveRuns,
}

/// How a figure is made, and the versions that made its results.
#[derive(Clone, Copy)]
pub(super) struct RunContext<'a> {
    pub options: &'a Options,
    pub control: Control<'a>,
    /// The versions of tacit that made the runs.
    pub versions: &'a RefCell<BTreeSet<String>>,
}

impl RunContext<'_> {
    /// Remembers which versions made runs.
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
    /// Those in the directory that figure `id` has under `name`.
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
    /// Where a run fails, cannot be kept, or was to be read and is missing.
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

    /// The run of `spec` with the observations of `observe`, which makes it where it is not there.
    ///
    /// # Errors
    /// Where the run fails, cannot be kept, or was to be read and is missing.
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
            let plain =
                RunRecord::new(run_id(spec), Label::of(spec), scenario.text.clone(), &setup, &outcome);
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

    /// The provenance that is kept with `runs` of `scenario`.
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

/// Observations of a run moment by moment.
#[derive(Default)]
pub(super) struct Observed {
    /// The frames on the air.
    pub ppdus: Vec<PpduRecord>,
    /// How a flow fared.
    pub track: Vec<TrackRecord>,
}

/// Name of a figure's file.
pub(super) fn file_name(id: &str, end: &str) -> String {
    format!("{}{end}", id.replace('/', "-"))
}

/// A name as part of a file's: letters and digits, one hyphen between words.
pub(super) fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}
