//! Results of runs by what they depend on, so that no run is made twice.
//!
//! An entry's name is a hash of the executable file, the program's version and the whole setup of the run, seed
//! included. A result can thus only come from this very program, whatever its sources say of themselves.
//! An entry is a checksum and the result as JSON; one that does not fit its checksum is no entry.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tacit_sim::Setup;

use crate::error::LabError;
use crate::record::RunRecord;
use crate::store::write_whole;

/// Most octets of a cache; beyond it the entries used longest ago go.
const LIMIT: u64 = 256 << 20;

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
    program: blake3::Hash,
    limit: u64,
}

/// What a cache has under a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The result.
    Found(Box<RunRecord>),
    /// Nothing.
    Missing,
    /// Something that is not what was written; the message names it.
    Corrupted(String),
}

impl Cache {
    /// The cache of this user: `TACIT_CACHE_DIR`, else `tacit` in `XDG_CACHE_HOME` or `~/.cache`. `None` where
    /// there is no such place or the program cannot read itself.
    pub fn of_user() -> Option<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let directory = variable("TACIT_CACHE_DIR")
            .or_else(|| variable("XDG_CACHE_HOME").map(|home| home.join("tacit")))
            .or_else(|| variable("HOME").map(|home| home.join(".cache/tacit")))?;
        let program = hash_of_file(&std::env::current_exe().ok()?)?;
        Some(Self { directory, program, limit: LIMIT })
    }

    /// A cache in `directory` for a program of that content, of at most `limit` octets.
    pub fn at(directory: &Path, program: &[u8], limit: u64) -> Self {
        Self { directory: directory.to_owned(), program: blake3::hash(program), limit }
    }

    /// The name of the result of `setup`.
    fn name(&self, setup: &Setup) -> String {
        let mut hash = blake3::Hasher::new();
        hash.update(self.program.as_bytes());
        hash.update(format!("{}\n{setup:?}", crate::VERSION).as_bytes());
        hash.finalize().to_hex().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join("runs").join(&name[..2]).join(&name[2..])
    }

    /// What there is of `setup`; its id, label and scenario are those of whoever wrote it.
    pub fn get(&self, setup: &Setup) -> Entry {
        let path = self.path(&self.name(setup));
        let Ok(content) = fs::read(&path) else { return Entry::Missing };
        match parse(&content) {
            Some(record) => {
                // Used now; a cache that cannot be written still gives what it has.
                let used = fs::File::options().append(true).open(&path);
                let _ = used.and_then(|file| file.set_modified(now()));
                Entry::Found(Box::new(record))
            }
            None => Entry::Corrupted(format!("{}: corrupted, the run is made again", path.display())),
        }
    }

    /// Keeps the result of `setup`.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn put(&self, setup: &Setup, record: &RunRecord) -> Result<(), LabError> {
        let path = self.path(&self.name(setup));
        let json = serde_json::to_vec(record).map_err(LabError::store(&path))?;
        let mut content = blake3::hash(&json).to_hex().as_bytes().to_vec();
        content.push(b'\n');
        content.extend(json);
        write_whole(&path, &content)
    }

    /// Removes what was used longest ago, until the rest fits. What another process removes meanwhile is
    /// nobody's concern.
    pub fn prune(&self) {
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

/// The time of the machine, which only orders entries.
#[expect(clippy::disallowed_methods, reason = "the age of a file is no simulated time")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// The result in an entry, if its checksum is right.
fn parse(content: &[u8]) -> Option<RunRecord> {
    let (checksum, json) = content.split_at_checked(blake3::OUT_LEN * 2)?;
    let json = json.strip_prefix(b"\n")?;
    let right = blake3::hash(json).to_hex().as_bytes() == checksum;
    right.then(|| serde_json::from_slice(json).ok())?
}

fn hash_of_file(path: &Path) -> Option<blake3::Hash> {
    let mut file = fs::File::open(path).ok()?;
    let mut hash = blake3::Hasher::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece).ok()? {
            0 => return Some(hash.finalize()),
            octets => drop(hash.update(&piece[..octets])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, PlannedRun};
    use crate::sweep::{self, Control, Progress};
    use crate::{Scenario, scheme};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn plan() -> Plan {
        let short = ["run.duration=200ms".to_owned(), "run.measure-from=50ms".to_owned()];
        let scenario = Scenario::load("wlan-11n-150", &short).unwrap();
        let mut plan = Plan::default();
        plan.push(&scenario, &scheme::ALL[1], 2, None, 3).unwrap();
        plan
    }

    /// Results, how many runs were made for them, and what was warned of.
    fn run(plan: &Plan, cache: &Cache) -> (Vec<RunRecord>, usize, Vec<String>) {
        let (made, warned) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let progress = |progress: Progress<'_>| match progress {
            Progress::Finished(_) => drop(made.fetch_add(1, Ordering::Relaxed)),
            Progress::Warning(text) => warned.lock().unwrap().push(text.to_owned()),
            Progress::Started { .. } => {}
        };
        let control = Control { progress: &progress, cache: Some(cache), ..Control::unattended() };
        let records = sweep::run(plan, None, control).unwrap();
        (records, made.into_inner(), warned.into_inner().unwrap())
    }

    fn file_of(cache: &Cache, run: &PlannedRun) -> PathBuf {
        cache.path(&cache.name(&run.setup))
    }

    #[test]
    fn what_was_run_is_not_run_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), b"a program", LIMIT);
        let plan = plan();
        let (first, made, _) = run(&plan, &cache);
        assert_eq!(made, 3);
        let (second, made, warned) = run(&plan, &cache);
        assert_eq!((made, warned.len()), (0, 0));
        assert_eq!(second, first);
        assert_eq!(second, sweep::run(&plan, None, Control::unattended()).unwrap());
    }

    #[test]
    fn another_program_another_seed_and_another_setting_are_other_results() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), b"a program", LIMIT);
        let plan = plan();
        run(&plan, &cache);
        let rebuilt = Cache::at(directory.path(), b"a program with another comment", LIMIT);
        assert_eq!(run(&plan, &rebuilt).1, 3);
        let mut other = plan;
        other.runs.truncate(1);
        other.runs[0].setup.seed = 77;
        assert_eq!(run(&other, &cache).1, 1);
        other.runs[0].setup.seed = 1;
        other.runs[0].setup.sample_interval = None;
        assert_eq!(run(&other, &cache).1, 1);
    }

    #[test]
    fn a_corrupted_entry_is_told_of_and_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), b"a program", LIMIT);
        let plan = plan();
        let (first, ..) = run(&plan, &cache);
        let path = file_of(&cache, &plan.runs[1]);
        let whole = fs::read(&path).unwrap();
        // A digit of a result, which is as good JSON as before.
        let mut changed = whole.clone();
        let digit = changed.iter().rposition(u8::is_ascii_digit).unwrap();
        changed[digit] ^= 1;
        for damaged in [changed, whole[..whole.len() / 2].to_vec(), b"{}".to_vec(), Vec::new()] {
            fs::write(&path, damaged).unwrap();
            let (again, made, warned) = run(&plan, &cache);
            assert_eq!((again, made), (first.clone(), 1));
            assert!(warned.len() == 1 && warned[0].contains("corrupted"), "{warned:?}");
        }
        assert_eq!(fs::read(&path).unwrap(), whole, "and is whole afterwards");
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path(), b"a program", LIMIT);
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
        assert!(matches!(cache.get(&plan.runs[0].setup), Entry::Found(_)), "the first is used again");
        Cache { limit: sizes.iter().sum::<u64>() - 1, ..cache.clone() }.prune();
        let kept: Vec<bool> = plan.runs.iter().map(|run| file_of(&cache, run).exists()).collect();
        assert_eq!(kept, [true, false, true]);
    }
}
