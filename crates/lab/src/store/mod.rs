//! Results on disk: one directory per sweep.
//!
//! ```text
//! runs.parquet     one row per run: label, digest, every metric
//! flows.parquet    one row per flow of each run
//! applications.parquet  one row per program that feeds flows of a run
//! hops.parquet     one row per direction of each hop of each run
//! stations.parquet one row per station of each run
//! series.parquet   one row per sample of each flow
//! runs.jsonl       only while a sweep is unfinished: finished runs, one per line
//! ```
//!
//! Each file is written under another name and renamed, so none is ever half there. The journal is
//! appended to as runs finish; a line cut short by a crash is ignored. When the last run is in, the
//! Parquet files are written and the journal goes.

mod flat;
mod guard;
mod journal;
mod sheet;
mod tables;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tacit_sim::capture::AtomicFile;

pub use journal::Journal;

use crate::application::ApplicationRecord;
use crate::error::LabError;
use crate::hop_record::HopRecord;
use crate::record::{FlowRecord, RunRecord, SampleRecord};
use crate::station::StationRecord;

/// The file of runs.
pub(crate) const RUNS: &str = "runs.parquet";
const FLOWS: &str = "flows.parquet";
const APPLICATIONS: &str = "applications.parquet";
const HOPS: &str = "hops.parquet";
const STATIONS: &str = "stations.parquet";
const SERIES: &str = "series.parquet";
const JOURNAL: &str = "runs.jsonl";

/// Where results come from; in the metadata of every Parquet file, each field as `tacit.<field>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Name of the scenario.
    pub scenario: String,
    /// What it is, in a line.
    pub description: String,
    /// Its whole TOML.
    pub scenario_text: String,
    /// The seeds.
    pub seeds: String,
    /// Version and commit of the program.
    pub version: String,
    /// The command that makes the same results.
    pub command: String,
    /// The schemes shown, with commas; runs of others are yardsticks only.
    pub schemes: String,
    /// Hash of all runs' digests, in order.
    pub digest: String,
    /// What varies along the axis of a sweep; empty for no sweep, like the next two.
    pub x_label: String,
    /// What is drawn over it.
    pub y_label: String,
    /// The metric that is: its name, with `_mbps` for a `_bps` one in millions.
    pub column: String,
}

impl Provenance {
    fn fields(&self) -> [(&'static str, &str); 11] {
        [
            ("tacit.scenario", &self.scenario),
            ("tacit.description", &self.description),
            ("tacit.scenario_text", &self.scenario_text),
            ("tacit.seeds", &self.seeds),
            ("tacit.version", &self.version),
            ("tacit.command", &self.command),
            ("tacit.schemes", &self.schemes),
            ("tacit.digest", &self.digest),
            ("tacit.x_label", &self.x_label),
            ("tacit.y_label", &self.y_label),
            ("tacit.column", &self.column),
        ]
    }

    fn from_fields(get: impl Fn(&str) -> String) -> Self {
        Self {
            scenario: get("tacit.scenario"),
            description: get("tacit.description"),
            scenario_text: get("tacit.scenario_text"),
            seeds: get("tacit.seeds"),
            version: get("tacit.version"),
            command: get("tacit.command"),
            schemes: get("tacit.schemes"),
            digest: get("tacit.digest"),
            x_label: get("tacit.x_label"),
            y_label: get("tacit.y_label"),
            column: get("tacit.column"),
        }
    }
}

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// Opens `directory`, making it where it is not there.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn open(directory: &Path) -> Result<Self, LabError> {
        fs::create_dir_all(directory).map_err(LabError::io(directory))?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// `directory` as it is, for reading.
    pub fn existing(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Every finished run in it, sorted by id.
    ///
    /// # Errors
    /// Where a file is there and cannot be read.
    pub fn finished_runs(&self) -> Result<Vec<RunRecord>, LabError> {
        let mut records = journal::read(&self.path(JOURNAL))?;
        if self.path(RUNS).is_file() {
            // Files of another version of the program hold nothing that could be reused.
            records.extend(self.read().map_or_else(|_| Vec::new(), |(_, stored)| stored));
        }
        records.sort_by(|a, b| a.id.cmp(&b.id));
        records.dedup_by(|a, b| a.id == b.id);
        Ok(records)
    }

    /// The journal, ready to be appended to.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn journal(&self) -> Result<Journal, LabError> {
        Journal::open(&self.path(JOURNAL))
    }

    /// Writes a finished sweep and ends its journal.
    ///
    /// # Errors
    /// Where a file cannot be written.
    pub fn write(&self, provenance: &Provenance, records: &[RunRecord]) -> Result<(), LabError> {
        tables::runs(records).write(&self.path(RUNS), provenance)?;
        self.write_parts::<FlowRecord>(FLOWS, provenance, records)?;
        self.write_parts::<ApplicationRecord>(APPLICATIONS, provenance, records)?;
        self.write_parts::<HopRecord>(HOPS, provenance, records)?;
        self.write_parts::<StationRecord>(STATIONS, provenance, records)?;
        self.write_parts::<SampleRecord>(SERIES, provenance, records)?;
        remove_if_there(&self.path(JOURNAL))
    }

    /// Reads a finished sweep: where it came from, and its runs in order.
    ///
    /// # Errors
    /// Where a file is missing or is not what this program writes.
    pub fn read(&self) -> Result<(Provenance, Vec<RunRecord>), LabError> {
        let (provenance, runs) = sheet::Sheet::read(&self.path(RUNS))?;
        let mut records = tables::read_runs(&runs).map_err(LabError::store(&self.path(RUNS)))?;
        self.read_parts::<FlowRecord>(FLOWS, &mut records)?;
        self.read_parts::<ApplicationRecord>(APPLICATIONS, &mut records)?;
        self.read_parts::<HopRecord>(HOPS, &mut records)?;
        self.read_parts::<StationRecord>(STATIONS, &mut records)?;
        self.read_parts::<SampleRecord>(SERIES, &mut records)?;
        Ok((provenance, records))
    }

    fn write_parts<P: flat::Part>(
        &self,
        name: &str,
        provenance: &Provenance,
        records: &[RunRecord],
    ) -> Result<(), LabError> {
        flat::sheet::<P>(records).write(&self.path(name), provenance)
    }

    fn read_parts<P: flat::Part>(&self, name: &str, records: &mut [RunRecord]) -> Result<(), LabError> {
        let path = self.path(name);
        let (_, sheet) = sheet::Sheet::read(&path)?;
        flat::read::<P>(&sheet, records).map_err(LabError::store(&path))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Writes a file whole or not at all.
///
/// # Errors
/// Where it cannot be written.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), LabError> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::create_dir_all(directory).map_err(LabError::io(directory))?;
    }
    let written = AtomicFile::create(path).and_then(|mut file| {
        file.write_all(content)?;
        file.commit()
    });
    written.map_err(LabError::io(path))
}

fn remove_if_there(path: &Path) -> Result<(), LabError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(LabError::io(path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::sweep::{self, Control};
    use crate::{Scenario, scheme};

    #[test]
    fn what_is_written_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let mut plan = Plan::default();
        let short = ["run.duration=2s".to_owned(), "run.measure-from=500ms".to_owned()];
        for (name, x, application) in
            [("wlan-11n-150", Some(2.5), "request-response"), ("wired-10", None, "streaming")]
        {
            let mut assignments = short.to_vec();
            assignments.push(format!("traffic.application={application}"));
            let scenario = Scenario::load(name, &assignments).unwrap();
            for scheme in scheme::ALL {
                plan.push(&scenario, scheme, 2, x, 2).unwrap();
            }
        }
        let records = sweep::run(&plan, None, Control::unattended()).unwrap();
        assert!(records.iter().any(|record| !record.applications.is_empty()));
        let provenance =
            Provenance {
                scenario: "a".into(), scenario_text: "x = \"ü\"\n".into(), ..Provenance::default()
            };
        store.write(&provenance, &records).unwrap();
        let (read_provenance, read_records) = store.read().unwrap();
        assert_eq!(read_provenance, provenance);
        assert_eq!(read_records, records);
        let mut names: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort_unstable();
        assert_eq!(names, [APPLICATIONS, FLOWS, HOPS, RUNS, SERIES, STATIONS]);
    }

    #[test]
    fn a_file_that_is_no_parquet_is_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(RUNS), "nonsense").unwrap();
        let error = Store::open(directory.path()).unwrap().read().unwrap_err();
        assert!(error.to_string().contains("runs.parquet"), "{error}");
    }

    #[test]
    fn a_damaged_old_result_is_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let mut plan = Plan::default();
        let short = ["run.duration=1s".to_owned(), "run.measure-from=500ms".to_owned()];
        plan.push(&Scenario::load("wired-10", &short).unwrap(), &scheme::AS_WRITTEN, 1, None, 1).unwrap();
        let records = sweep::run(&plan, None, Control::unattended()).unwrap();
        store.write(&Provenance::default(), &records).unwrap();
        assert_eq!(store.finished_runs().unwrap(), records);
        // The type of the first page, from dictionary to one that is skipped: the library panics at that.
        let mut octets = fs::read(directory.path().join(FLOWS)).unwrap();
        assert_eq!(octets[4..6], [0x15, 4]);
        octets[5] = 2;
        fs::write(directory.path().join(FLOWS), octets).unwrap();
        assert!(store.read().unwrap_err().to_string().contains("flows.parquet: "));
        assert_eq!(store.finished_runs().unwrap(), []);
    }
}
