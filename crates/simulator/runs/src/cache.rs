//! A cache of results, keyed by everything they depend on, so that no run is simulated twice.
//!
//! The name of an entry is that of its run ([`crate::identity`]). A result can therefore only come from this very
//! program, not from another build of its sources. An entry is a record of results with that run alone. An entry that does
//! not match its checksum is ignored.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use crate::error::RunsError;
use crate::identity::{Program, RunId};
use crate::record::RunRecord;
use crate::store::{Log, record_of, write_whole};

/// Maximum size of a cache in bytes. When it is exceeded, the least recently used entries are removed.
const LIMIT: u64 = 256 << 20;
/// The cache is pruned after 1/64 of its limit has been written.
const PRUNED_EVERY: u64 = 64;

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
    limit: u64,
    /// Writing has failed once and is not attempted again.
    gave_up: Arc<AtomicBool>,
    /// Bytes written since the last pruning. Initially the limit, so that the cache is pruned once.
    unpruned: Arc<AtomicU64>,
}

impl Cache {
    /// The cache of this user: `TACIT_CACHE_DIR`, otherwise `tacit` in `XDG_CACHE_HOME` or `~/.cache`. `None` if none
    /// of these is available, or if the program cannot read its own executable.
    pub fn for_user() -> Option<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let directory = variable("TACIT_CACHE_DIR")
            .or_else(|| variable("XDG_CACHE_HOME").map(|home| home.join("tacit")))
            .or_else(|| variable("HOME").map(|home| home.join(".cache/tacit")))?;
        Program::this()?;
        Some(Self::new(directory, LIMIT))
    }

    /// A cache in `directory` with a limit in bytes.
    pub fn at(directory: &Path, limit: u64) -> Self {
        Self::new(directory.to_owned(), limit)
    }

    fn new(directory: PathBuf, limit: u64) -> Self {
        Self { directory, limit, gave_up: Arc::default(), unpruned: Arc::new(AtomicU64::new(limit)) }
    }

    fn path(&self, id: RunId) -> PathBuf {
        let name = id.to_string();
        self.directory.join("runs").join(&name[..2]).join(&name[2..])
    }

    /// The result of the run `id`, if there is one. Its label and scenario are those of the run that created it.
    ///
    /// # Errors
    /// If the entry is not what was written. The message names it.
    pub fn get(&self, id: RunId) -> Result<Option<RunRecord>, String> {
        let path = self.path(id);
        let Ok(file) = fs::File::open(&path) else { return Ok(None) };
        let record = Log::from_file(&path, file).ok().and_then(|log| log.only_run());
        let Some(record) = record.filter(|record| record.run.id == id.to_string()) else {
            return Err(format!("{}: corrupted, the run is made again", path.display()));
        };
        // Marks the entry as recently used. Errors are ignored, because a read-only cache is still useful.
        let used = fs::File::options().append(true).open(&path);
        let _ = used.and_then(|file| file.set_modified(now()));
        Ok(Some(record))
    }

    /// Stores the result of the run `id`, unless an earlier one could not be stored.
    ///
    /// # Errors
    /// If it cannot be written. Only the first failure is reported.
    pub fn put(&self, id: RunId, record: &RunRecord) -> Result<(), RunsError> {
        if self.gave_up.load(Relaxed) {
            return Ok(());
        }
        let path = self.path(id);
        let content = record_of(&[record], &path)?;
        self.unpruned.fetch_add(content.len() as u64, Relaxed);
        match write_whole(&path, &content) {
            // Another thread has already reported it.
            Err(_) if self.gave_up.swap(true, Relaxed) => Ok(()),
            written => written,
        }
    }

    /// Removes the least recently used entries until the limit is met. Does nothing unless much has been written since
    /// the last pruning, because each entry has to be examined. It is harmless if another process removes entries at
    /// the same time.
    pub fn prune(&self) {
        if self.unpruned.load(Relaxed) < self.limit / PRUNED_EVERY {
            return;
        }
        self.unpruned.store(0, Relaxed);
        let mut entries = Vec::new();
        for shelf in fs::read_dir(self.directory.join("runs")).into_iter().flatten().flatten() {
            for file in fs::read_dir(shelf.path()).into_iter().flatten().flatten() {
                if let Ok(about) = file.metadata() {
                    entries.push((
                        about.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                        file.path(),
                        about.len(),
                    ));
                }
            }
        }
        entries.sort();
        let mut size: u64 = entries.iter().map(|(_, _, len)| len).sum();
        for (_, path, len) in entries {
            if size <= self.limit {
                break;
            }
            let _ = fs::remove_file(path);
            size -= len;
        }
    }
}

/// The system time, which is only used to order entries.
#[expect(clippy::disallowed_methods, reason = "the age of a file is no simulated time")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::run_id;
    use crate::plan::{Plan, SweepPoint};
    use crate::sweep::tests::{ObservedSweep, run_observed};
    use crate::sweep::{self, Control};
    use tacit_scenario::{RunSpec, Scenario, scheme};

    fn plan() -> Plan {
        let short =
            ["run.duration=200ms", "run.measure-from=50ms", "clients.stagger=10ms"].map(str::to_owned);
        let scenario = Arc::new(Scenario::load("wlan-11n-150", &short).unwrap());
        let mut plan = Plan::default();
        plan.push(&scenario, &scheme::ALL[1], 2, SweepPoint::default(), 3).unwrap();
        plan
    }

    fn run(plan: &Plan, cache: &Cache) -> ObservedSweep {
        run_observed(plan, None, Some(cache))
    }

    fn file_of(cache: &Cache, run: &RunSpec) -> PathBuf {
        cache.path(run_id(run))
    }

    #[test]
    fn a_cached_run_is_not_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), LIMIT);
        let plan = plan();
        let first = run(&plan, &cache);
        assert_eq!(first.simulated, 3);
        let second = run(&plan, &cache);
        assert_eq!((second.simulated, second.warned.len()), (0, 0));
        assert_eq!(second.runs, first.runs);
        assert_eq!(second.runs, sweep::run(&plan, None, Control::unattended()).unwrap());
    }

    #[test]
    fn another_place_of_a_sweep_is_the_same_run() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), LIMIT);
        let mut plan = plan();
        run(&plan, &cache);
        plan.runs[0].x = Some(2.0);
        plan.runs[1].seed = 77;
        let ObservedSweep { runs, simulated, .. } = run(&plan, &cache);
        assert_eq!((runs[0].label.x, runs[1].label.seed, simulated), (Some(2.0), 77, 1));
    }

    #[test]
    fn a_corrupted_entry_is_told_of_and_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), LIMIT);
        let plan = plan();
        let first = run(&plan, &cache);
        let path = file_of(&cache, &plan.runs[1]);
        let whole = fs::read(&path).unwrap();
        // Changes a digit of a result, so that it remains valid JSON.
        let mut changed = whole.clone();
        let digit = changed.iter().rposition(u8::is_ascii_digit).unwrap();
        changed[digit] ^= 1;
        for damaged in [changed, whole[..whole.len() / 2].to_vec(), b"{}".to_vec(), Vec::new()] {
            fs::write(&path, damaged).unwrap();
            let ObservedSweep { runs, simulated, warned, .. } = run(&plan, &cache);
            assert_eq!((&runs, simulated), (&first.runs, 1));
            assert!(warned.len() == 1 && warned[0].contains("corrupted"), "{warned:?}");
        }
        assert_eq!(fs::read(&path).unwrap(), whole, "and is whole afterwards");
    }

    #[test]
    fn the_least_recently_used_entry_is_evicted_first() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), LIMIT);
        let plan = plan();
        run(&plan, &cache);
        let sizes: Vec<u64> =
            plan.runs.iter().map(|run| fs::metadata(file_of(&cache, run)).unwrap().len()).collect();
        let long_ago = SystemTime::UNIX_EPOCH;
        for run in &plan.runs[..2] {
            fs::File::options()
                .append(true)
                .open(file_of(&cache, run))
                .unwrap()
                .set_modified(long_ago)
                .unwrap();
        }
        assert!(cache.get(run_id(&plan.runs[0])).unwrap().is_some(), "the first is used again");
        let small = Cache::at(directory.path(), sizes.iter().sum::<u64>() - 1);
        let kept = || plan.runs.iter().map(|run| file_of(&cache, run).exists()).collect::<Vec<bool>>();
        small.prune();
        assert_eq!(kept(), [true, false, true]);
        // The evicted run is written again, which triggers pruning in such a small cache.
        assert_eq!(run(&plan, &small).simulated, 1);
        assert_eq!(kept().iter().filter(|kept| **kept).count(), 2);
    }
}
