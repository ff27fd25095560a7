//! Makes the runs of a plan on all cores, in any order, and gives the results back in the plan's.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use tacit_sim::Setup;

use crate::cache::{Cache, Entry};
use crate::error::LabError;
use crate::plan::{Plan, PlannedRun};
use crate::record::{Label, RunRecord};
use crate::store::{Journal, Store};

/// What a sweep reports while it runs.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Before the first run.
    Started {
        /// Runs in the plan.
        total: usize,
        /// Runs that a store had already.
        reused: usize,
    },
    /// After each run that was made.
    Finished(&'a Label),
    /// Something that the results do not suffer from.
    Warning(&'a str),
}

/// How a sweep is watched and stopped.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Set from outside to stop between runs.
    pub stop: &'a AtomicBool,
    /// Called from any thread.
    pub progress: &'a (dyn Fn(Progress<'_>) + Sync),
    /// Results of runs made before; `None` makes them all.
    pub cache: Option<&'a Cache>,
}

/// Never set.
static RUN_ON: AtomicBool = AtomicBool::new(false);

impl Control<'_> {
    /// Nobody watches, nobody stops.
    pub const fn unattended() -> Control<'static> {
        Control { stop: &RUN_ON, progress: &|_| {}, cache: None }
    }
}

/// Makes the runs of `plan` that `store` does not hold already, and keeps each as it finishes.
///
/// # Errors
/// The first failure in plan order, or [`LabError::Interrupted`]; either way the store has every run
/// that finished.
pub fn run(plan: &Plan, store: Option<&Store>, control: Control<'_>) -> Result<Vec<RunRecord>, LabError> {
    let known = store.map_or_else(|| Ok(Vec::new()), Store::finished_runs)?;
    let find = |run: &PlannedRun| known.binary_search_by(|record| record.id.cmp(&run.id)).ok();
    let reused = plan.runs.iter().filter(|run| find(run).is_some()).count();
    let total = plan.runs.len();
    (control.progress)(Progress::Started { total, reused });
    let journal = store.filter(|_| reused < total).map(Store::journal).transpose()?.map(Mutex::new);
    let failed = AtomicBool::new(false);
    let results: Vec<Option<Result<RunRecord, LabError>>> = plan
        .runs
        .par_iter()
        .with_max_len(1)
        .map(|run| {
            if let Some(index) = find(run) {
                // The label may differ where two sweeps share a run.
                return Some(Ok(run.labelled(known[index].clone())));
            }
            if let Some(record) = control.cached(&run.setup) {
                return Some(keep(run.labelled(record), journal.as_ref()));
            }
            if control.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                return None;
            }
            let result = run_one(run, control).and_then(|record| keep(record, journal.as_ref()));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            (control.progress)(Progress::Finished(&run.label));
            Some(result)
        })
        .collect();
    if let Some(cache) = control.cache {
        cache.prune();
    }
    let records = results.into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
    if records.len() < total {
        let resume_from = store.map(|store| store.directory().to_owned());
        return Err(LabError::Interrupted { finished: records.len(), total, resume_from });
    }
    Ok(records)
}

fn run_one(run: &PlannedRun, control: Control<'_>) -> Result<RunRecord, LabError> {
    let outcome = tacit_sim::run(&run.setup).map_err(|source| LabError::Run {
        run: describe(&run.label),
        command: run.command.clone(),
        source,
    })?;
    let text = run.scenario_text.to_string();
    let record = RunRecord::new(run.id.clone(), run.label.clone(), text, &run.setup, &outcome);
    control.remember(&run.setup, &record);
    Ok(record)
}

/// Writes a record into the journal, if there is one.
fn keep(record: RunRecord, journal: Option<&Mutex<Journal>>) -> Result<RunRecord, LabError> {
    if let Some(journal) = journal {
        // A poisoned lock means another run panicked; what this one found is still worth keeping.
        journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&record)?;
    }
    Ok(record)
}

impl PlannedRun {
    /// `record` as this run's: two runs may share a result and differ in their label.
    fn labelled(&self, record: RunRecord) -> RunRecord {
        RunRecord {
            id: self.id.clone(),
            label: self.label.clone(),
            scenario_text: self.scenario_text.to_string(),
            ..record
        }
    }
}

impl Control<'_> {
    /// The result of `setup`, if the cache has it.
    pub fn cached(&self, setup: &Setup) -> Option<RunRecord> {
        match self.cache?.get(setup) {
            Entry::Found(record) => Some(*record),
            Entry::Missing => None,
            Entry::Corrupted(what) => {
                (self.progress)(Progress::Warning(&what));
                None
            }
        }
    }

    /// Gives the result of `setup` to the cache. One that cannot be kept is no failure.
    pub fn remember(&self, setup: &Setup, record: &RunRecord) {
        if let Some(Err(error)) = self.cache.map(|cache| cache.put(setup, record)) {
            (self.progress)(Progress::Warning(&format!("not cached: {error}")));
        }
    }
}

fn describe(label: &Label) -> String {
    let scheme = if label.scheme.is_empty() { "as written" } else { &label.scheme };
    format!("{} {scheme}, clients {}, seed {}", label.scenario, label.clients, label.seed)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::scenario::Scenario;
    use crate::scheme;

    fn plan(seeds: u32) -> Plan {
        let short = ["run.duration=200ms".to_owned(), "run.measure-from=50ms".to_owned()];
        let scenario = Scenario::load("wlan-11n-150", &short).unwrap();
        let mut plan = Plan::default();
        for scheme in scheme::ALL {
            plan.push(&scenario, scheme, 1, None, seeds).unwrap();
        }
        plan
    }

    #[test]
    fn results_come_in_the_order_of_the_plan() {
        let plan = plan(3);
        let records = run(&plan, None, Control::unattended()).unwrap();
        let labels: Vec<_> = records.iter().map(|record| &record.label).collect();
        assert_eq!(labels, plan.runs.iter().map(|run| &run.label).collect::<Vec<_>>());
    }

    #[test]
    fn an_interrupted_sweep_resumes_where_it_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let plan = plan(3);
        let stop = AtomicBool::new(false);
        let made = AtomicUsize::new(0);
        let progress = |progress: Progress<'_>| {
            if matches!(progress, Progress::Finished(_)) && made.fetch_add(1, Ordering::Relaxed) >= 4 {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let control = Control { stop: &stop, progress: &progress, cache: None };
        let Err(LabError::Interrupted { finished, total, resume_from }) = run(&plan, Some(&store), control)
        else {
            panic!("the sweep was not interrupted")
        };
        assert_eq!((total, resume_from.as_deref()), (plan.runs.len(), Some(directory.path())));
        assert!((5..total).contains(&finished), "{finished}");

        let (reused, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let progress = |progress: Progress<'_>| match progress {
            Progress::Started { reused: known, .. } => reused.store(known, Ordering::Relaxed),
            Progress::Finished(_) => drop(made.fetch_add(1, Ordering::Relaxed)),
            Progress::Warning(text) => panic!("{text}"),
        };
        let control = Control { stop: &AtomicBool::new(false), progress: &progress, cache: None };
        let resumed = run(&plan, Some(&store), control).unwrap();
        assert_eq!(reused.into_inner(), finished);
        assert_eq!(made.into_inner(), total - finished);
        assert_eq!(resumed, run(&plan, None, Control::unattended()).unwrap());
    }
}
