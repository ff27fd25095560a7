//! Simulates the runs of a plan on all cores in any order, and returns the results in the order of the plan.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once};

use rayon::prelude::*;

use tacit_scenario::RunSpec;
use tacit_scenario::estimate::long_wait;

use crate::cache::Cache;
use crate::error::RunsError;
use crate::identity::{RunId, run_id};
use crate::plan::Plan;
use crate::record::{Label, RunRecord, RunSummary};
use crate::store::{Store, Writer};

/// Progress reports of a sweep.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Before the first run.
    Started {
        /// Number of runs in the plan.
        total: usize,
        /// Number of runs already in a store.
        reused: usize,
    },
    /// After each simulated run.
    Finished(&'a Label),
    /// A problem that does not affect the results.
    Warning(&'a str),
    /// Before the first run that is simulated, if all of them take minutes.
    LongWait(&'a str),
}

/// Progress callback, stop flag and cache of a sweep.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Set by the caller to stop between runs.
    pub stop: &'a AtomicBool,
    /// Called from any thread.
    pub progress: &'a (dyn Fn(Progress<'_>) + Sync),
    /// Cached results of earlier runs; `None` to simulate every run.
    pub cache: Option<&'a Cache>,
}

/// Never set.
static RUN_ON: AtomicBool = AtomicBool::new(false);

impl Control<'_> {
    /// Without progress reports, and without a way to stop.
    pub const fn unattended() -> Control<'static> {
        Control { stop: &RUN_ON, progress: &|_| {}, cache: None }
    }
}

/// Simulates the runs of `plan` that `store` does not contain, and stores each one when it finishes.
///
/// # Errors
/// The first failure in plan order, or [`RunsError::Interrupted`]. In either case the store contains every run that
/// finished.
pub fn run(plan: &Plan, store: Option<&Store>, control: Control<'_>) -> Result<Vec<RunSummary>, RunsError> {
    let warn = |text: &str| (control.progress)(Progress::Warning(text));
    let (writer, known) = store.map(|store| store.resume(&warn)).transpose()?.unzip();
    let (writer, known) = (writer.map(Mutex::new), known.unwrap_or_default());
    let ids: Vec<RunId> = plan.runs.par_iter().map(run_id).collect();
    let reused = ids.iter().filter(|id| known.contains_key(&id.to_string())).count();
    let total = plan.runs.len();
    (control.progress)(Progress::Started { total, reused });
    let failed = AtomicBool::new(false);
    let missing = plan.runs.iter().zip(&ids).filter(|(_, id)| !known.contains_key(&id.to_string()));
    let wait = long_wait(packets(missing.map(|(run, _)| run))?);
    // Not if all of them are in the cache.
    let announce_wait = Once::new();
    let results: Vec<Option<Result<RunSummary, RunsError>>> = plan
        .runs
        .par_iter()
        .zip(&ids)
        .with_max_len(1)
        .map(|(run, id)| {
            if let Some(found) = known.get(&id.to_string()) {
                return Some(Ok(found.clone().labelled(run)));
            }
            if let Some(record) = control.cached(*id) {
                let record = RunRecord { run: record.run.labelled(run), ..record };
                return Some(keep(record, writer.as_ref()));
            }
            if control.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                return None;
            }
            announce_wait
                .call_once(|| wait.iter().for_each(|wait| (control.progress)(Progress::LongWait(wait))));
            let result = run_one(run, *id, control).and_then(|record| keep(record, writer.as_ref()));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            (control.progress)(Progress::Finished(&Label::for_run(run)));
            Some(result)
        })
        .collect();
    if let Some(cache) = control.cache {
        cache.prune();
    }
    let runs = results.into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
    if runs.len() < total {
        let resume_from = store.map(|store| store.directory().to_owned());
        return Err(RunsError::Interrupted { finished: runs.len(), total, resume_from });
    }
    Ok(runs)
}

/// The runs of `plan` in `store`, no matter what program simulated them. Nothing is simulated.
///
/// # Errors
/// [`RunsError::Missing`] if runs are missing, with `command` as the command that simulates them. Also if the store is
/// damaged.
pub fn stored(
    plan: &Plan,
    store: &Store,
    command: &str,
    control: Control<'_>,
) -> Result<Vec<RunSummary>, RunsError> {
    let found = store.select(plan)?;
    let missing = |(run, found): (_, &Option<_>)| found.is_none().then(|| describe(&Label::for_run(run)));
    let missing: Vec<String> = plan.runs.iter().zip(&found).filter_map(missing).collect();
    let directory = store.directory();
    if !missing.is_empty() {
        let there = store.read().ok().map(|(provenance, _)| provenance.command);
        return Err(RunsError::Missing {
            directory: directory.to_owned(),
            missing,
            total: found.len(),
            command: command.to_owned(),
            there: there.filter(|other| other != command && !other.is_empty()),
        });
    }
    let runs: Vec<RunSummary> = found.into_iter().flatten().collect();
    let others: BTreeSet<&str> =
        runs.iter().map(|run| run.version.as_ref()).filter(|version| *version != crate::VERSION).collect();
    if !others.is_empty() {
        let versions = others.into_iter().collect::<Vec<_>>().join(", ");
        let text = format!("{}: made by tacit {versions}, this is {}", directory.display(), crate::VERSION);
        (control.progress)(Progress::Warning(&text));
    }
    Ok(runs)
}

/// Number of packets that `runs` send at most.
fn packets<'r>(runs: impl Iterator<Item = &'r RunSpec>) -> Result<u64, RunsError> {
    let mut sum = 0_u64;
    // Runs that differ in the seed alone follow each other.
    let mut last: Option<(&RunSpec, u64)> = None;
    for run in runs {
        let is_alike =
            |other: &RunSpec| Arc::ptr_eq(&other.subject, &run.subject) && other.clients == run.clients;
        let each = match last {
            Some((other, each)) if is_alike(other) => each,
            _ => run.subject.estimate(run.clients)?.packets,
        };
        last = Some((run, each));
        sum = sum.saturating_add(each);
    }
    Ok(sum)
}

fn run_one(run: &RunSpec, id: RunId, control: Control<'_>) -> Result<RunRecord, RunsError> {
    let setup = run.setup()?;
    let outcome = tacit_sim::run(&setup).map_err(|source| RunsError::Run {
        run: describe(&Label::for_run(run)),
        command: run.command(),
        source,
    })?;
    let record = RunRecord::new(id, run, &setup, &outcome);
    control.remember(id, &record);
    Ok(record)
}

/// Adds a run to the record, if there is one. Returns the run without its parts.
fn keep(record: RunRecord, writer: Option<&Mutex<Writer>>) -> Result<RunSummary, RunsError> {
    if let Some(writer) = writer {
        // A poisoned lock means that another run panicked. This result is still valid.
        writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&record)?;
    }
    Ok(record.run)
}

impl Control<'_> {
    /// The cached result of the run `id`, if any.
    pub fn cached(&self, id: RunId) -> Option<RunRecord> {
        self.cache?.get(id).unwrap_or_else(|what| {
            (self.progress)(Progress::Warning(&what));
            None
        })
    }

    /// Stores the result of the run `id` in the cache. A failure to do so only causes a single warning.
    pub fn remember(&self, id: RunId, record: &RunRecord) {
        if let Some(Err(error)) = self.cache.map(|cache| cache.put(id, record)) {
            (self.progress)(Progress::Warning(&format!("results are not cached from here on: {error}")));
        }
    }
}

fn describe(label: &Label) -> String {
    let scheme = if label.scheme.is_empty() { "as written" } else { &label.scheme };
    format!("{} {scheme}, clients {}, seed {}", label.scenario, label.clients, label.seed)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::plan::SweepPoint;
    use tacit_scenario::{Scenario, scheme};

    fn plan(seeds: u32) -> Plan {
        let short =
            ["run.duration=200ms", "run.measure-from=50ms", "clients.stagger=10ms"].map(str::to_owned);
        // In this scenario, only `stock`, `cubic` and `tcp-l2` result in the same run. With Linux's receiver, stock and
        // tcp-linux would too.
        let scenario = Arc::new(Scenario::load("hack-2014-11n-150", &short).unwrap());
        let mut plan = Plan::default();
        for scheme in scheme::ALL.iter().filter(|scheme| !["cubic", "tcp-l2"].contains(&scheme.name)) {
            plan.push(&scenario, scheme, 1, SweepPoint::default(), seeds).unwrap();
        }
        plan
    }

    /// What came of a plan, and what was reported meanwhile.
    #[derive(Debug, Default)]
    pub(crate) struct ObservedSweep {
        pub runs: Vec<RunSummary>,
        /// Numbers of runs that the store had, and that were simulated.
        pub reused: usize,
        pub simulated: usize,
        pub warned: Vec<String>,
    }

    pub(crate) fn run_observed(plan: &Plan, store: Option<&Store>, cache: Option<&Cache>) -> ObservedSweep {
        let observed = Mutex::new(ObservedSweep::default());
        let progress = |progress: Progress<'_>| {
            let mut observed = observed.lock().unwrap();
            match progress {
                Progress::Started { reused, .. } => observed.reused = reused,
                Progress::Finished(_) => observed.simulated += 1,
                Progress::Warning(text) | Progress::LongWait(text) => observed.warned.push(text.to_owned()),
            }
        };
        let control = Control { progress: &progress, cache, ..Control::unattended() };
        let runs = run(plan, store, control).unwrap();
        ObservedSweep { runs, ..observed.into_inner().unwrap() }
    }

    #[test]
    fn results_come_in_the_order_of_the_plan() {
        let plan = plan(3);
        let records = run(&plan, None, Control::unattended()).unwrap();
        let labels: Vec<_> = records.iter().map(|record| record.label.clone()).collect();
        assert_eq!(labels, plan.runs.iter().map(Label::for_run).collect::<Vec<_>>());
    }

    #[test]
    fn an_interrupted_sweep_resumes_where_it_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let plan = plan(3);
        let stop = AtomicBool::new(false);
        let finished = AtomicUsize::new(0);
        let progress = |progress: Progress<'_>| {
            if matches!(progress, Progress::Finished(_)) && finished.fetch_add(1, Ordering::Relaxed) >= 4 {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let control = Control { stop: &stop, progress: &progress, cache: None };
        let Err(RunsError::Interrupted { finished, total, resume_from }) = run(&plan, Some(&store), control)
        else {
            panic!("the sweep was not interrupted")
        };
        assert_eq!((total, resume_from.as_deref()), (plan.runs.len(), Some(directory.path())));
        assert!((5..total).contains(&finished), "{finished}");

        let ObservedSweep { runs, reused, simulated, warned } = run_observed(&plan, Some(&store), None);
        assert_eq!((reused, simulated, warned.len()), (finished, total - finished, 0), "{warned:?}");
        assert_eq!(runs, run(&plan, None, Control::unattended()).unwrap());
    }

    /// The estimate is of what the links can carry; windows keep these runs short.
    #[test]
    fn a_long_wait_is_told_once_before_the_first_run_and_not_for_known_runs() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let wide = [
            "run.duration=200ms",
            "run.measure-from=50ms",
            "wired.rate=1000Gbps",
            "wired.delay=50 ms",
            "tcp.receive-buffer=64 KiB",
        ];
        let scenario = Arc::new(Scenario::load("wired-10", &wide.map(str::to_owned)).unwrap());
        let mut plan = Plan::default();
        plan.push(&scenario, scheme::find("", "tcp-l2").unwrap(), 1, SweepPoint::default(), 20).unwrap();
        let progress_events = || {
            let events = Mutex::new(Vec::new());
            let progress = |progress: Progress<'_>| match progress {
                Progress::Started { .. } => {}
                Progress::Finished(_) => events.lock().unwrap().push(None),
                Progress::LongWait(text) => events.lock().unwrap().push(Some(text.to_owned())),
                Progress::Warning(text) => panic!("{text}"),
            };
            let control = Control { stop: &AtomicBool::new(false), progress: &progress, cache: None };
            run(&plan, Some(&store), control).unwrap();
            events.into_inner().unwrap()
        };
        let events = progress_events();
        let [Some(wait), runs @ ..] = &events[..] else { panic!("{events:?}") };
        assert!(wait.contains("million packets: some ") && runs.len() == 20, "{wait}");
        assert!(runs.iter().all(Option::is_none), "{events:?}");
        assert_eq!(progress_events(), [], "nothing is left to simulate");
    }

    #[test]
    fn a_run_that_needs_too_much_memory_is_refused_before_any_runs() {
        let samples = ["run.duration=60min", "run.sample-interval=1ms"].map(str::to_owned);
        let scenario = Arc::new(Scenario::load("wired-10", &samples).unwrap());
        let stock = scheme::find("", "stock").unwrap();
        let error = Plan::default().push(&scenario, stock, 1, SweepPoint::default(), 1).unwrap_err();
        assert!(error.to_string().contains("MiB of memory"), "{error}");
    }
}
