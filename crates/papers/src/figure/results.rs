//! Where the runs of a figure come from: they are made and kept, or read from what was kept.

use std::path::{Path, PathBuf};

use super::run::Options;
use tacit_runs::RunsError;
use tacit_runs::identity::run_id;
use tacit_runs::plan::Plan;
use tacit_runs::record::{RunRecord, RunSummary};
use tacit_runs::store::{Provenance, Store};
use tacit_runs::sweep::{self, Control, Progress};
use tacit_scenario::{InputError, quoted};

/// The results of one set of runs.
pub(super) struct Results<'a> {
    directory: Option<PathBuf>,
    stored: bool,
    command: String,
    control: Control<'a>,
}

impl<'a> Results<'a> {
    /// Those in the directory that figure `id` has under `name`.
    pub fn new(options: &Options, id: &str, name: &str, control: Control<'a>) -> Self {
        let directory = options.from.as_deref().or(options.directory.as_deref());
        let quick = if options.quick { " --quick" } else { "" };
        Self {
            directory: directory.map(|directory| directory.join(name)),
            stored: options.from.is_some(),
            command: format!("tacit figure {}{quick}", quoted(id)),
            control,
        }
    }

    /// The command that makes them.
    pub fn command(&self) -> String {
        self.command.clone()
    }

    fn read(&self, plan: &Plan) -> Result<(Store, Vec<RunSummary>), RunsError> {
        let store = Store::existing(self.directory.as_deref().unwrap_or(Path::new("")));
        let runs = sweep::stored(plan, &store, &self.command, self.control)?;
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
            return Ok(self.read(plan)?.1);
        }
        let store = self.directory.as_deref().map(Store::open).transpose()?;
        let runs = sweep::run(plan, store.as_ref(), self.control)?;
        if let Some(store) = &store {
            store.finish(&provenance(&runs), &runs)?;
        }
        Ok(runs)
    }

    /// The one run of `plan` with what was on the air, which `make` makes where it is not there.
    ///
    /// # Errors
    /// Where the run fails, cannot be kept, or was to be read and is missing.
    pub fn observed(
        &self,
        plan: &Plan,
        make: impl FnOnce() -> Result<RunRecord, RunsError>,
        provenance: impl FnOnce(&[RunSummary]) -> Provenance,
    ) -> Result<RunRecord, RunsError> {
        let Some(directory) = &self.directory else { return make() };
        if !self.stored {
            let store = Store::open(directory)?;
            let warn = |text: &str| (self.control.progress)(Progress::Warning(text));
            let (mut writer, known) = store.resume(&warn)?;
            if !plan.runs.iter().all(|run| known.contains_key(&run_id(run).to_string())) {
                writer.append(&make()?)?;
            }
            let runs = sweep::stored(plan, &store, &self.command, self.control)?;
            store.finish(&provenance(&runs), &runs)?;
        }
        let (store, runs) = self.read(plan)?;
        let [run] = &runs[..] else {
            return Err(InputError::new(&self.command, format!("{} runs instead of one", runs.len())).into());
        };
        store.record(&run.id)
    }
}
