//! Stored results, one directory per sweep.
//!
//! `runs.jsonl` is the record. Each run is appended once when it finishes, and each sweep when all of its runs are
//! recorded. If the program is killed while writing a line, the incomplete line is dropped when the sweep is resumed. A
//! line that does not match its checksum is reported. All code that reads results reads this file.
//!
//! The Parquet files are exports for other programs: a row per run, flow, application, hop, station and sample. Each is
//! written under a temporary name and then renamed, so it is never incomplete.

mod completions;
mod contents;
mod csv;
mod entry;
mod export;
mod flat;
mod log;
mod query;
mod sheet;
pub(crate) mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tacit_sim::capture::AtomicFile;

pub(crate) use export::RUNS;
pub use export::{sheet_of, table_names};
pub use flat::{add_rows, objects};
pub use log::{Appender, Writer};
pub(crate) use log::{Log, record_of};
pub(crate) use sheet::SheetWriter;
pub use sheet::{Column, Sheet};

use crate::error::RunsError;
use crate::plan::Plan;
use crate::record::{RunRecord, RunSummary};
use contents::Contents;

/// File name of the record.
pub(crate) const RECORD: &str = "runs.jsonl";

/// Provenance of results. It is stored with every finished sweep, and in the metadata of every Parquet file with each
/// field as `tacit.<field>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// Name of the scenario.
    pub scenario: String,
    /// A description of one line.
    pub description: String,
    /// The whole scenario as TOML.
    pub scenario_text: Arc<str>,
    /// The seeds.
    pub seeds: String,
    /// Version and commit of the program.
    pub version: String,
    /// The command that reproduces the results.
    pub command: String,
    /// The schemes shown, separated by commas. Runs of other schemes are only references.
    pub schemes: String,
    /// Hash over the digests of all runs, in order.
    pub digest: String,
    /// Settings that the results depend on but that the scenario does not include, one line of TOML each.
    pub conditions: String,
    /// Warnings about settings without effect, one line each.
    pub warnings: String,
    /// The variable on the axis of a sweep. Like the next two fields, it is empty if there is no sweep.
    pub x_label: String,
    /// The quantity shown.
    pub y_label: String,
    /// The name of its metric, with `_mbps` for a `_bps` metric in millions.
    pub column: String,
}

impl Provenance {
    /// Names and values of the metadata.
    fn metadata(&self) -> impl Iterator<Item = (String, Option<String>)> {
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else { unreachable!("it is a struct") };
        fields.into_iter().map(|(name, value)| (format!("tacit.{name}"), value.as_str().map(str::to_owned)))
    }
}

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// Opens `directory`, and creates it if it does not exist.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(directory: &Path) -> Result<Self, RunsError> {
        fs::create_dir_all(directory).map_err(RunsError::io(directory))?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// Opens `directory` for reading without creating it.
    pub fn existing(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Opens the record for appending. Also returns the recorded runs by id. Incomplete or damaged lines are dropped
    /// and reported to `warn`.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn resume(&self, warn: &dyn Fn(&str)) -> Result<(Writer, BTreeMap<String, RunSummary>), RunsError> {
        Writer::open(&self.path(RECORD), warn)
    }

    /// Completes a sweep of `runs`, all of which must be in the record, and exports it, unless this has been done
    /// before.
    ///
    /// # Errors
    /// If a file cannot be written, or a run is missing from the record.
    pub fn finish(&self, provenance: &Provenance, runs: &[RunSummary]) -> Result<(), RunsError> {
        let contents = Contents::new(provenance, runs);
        let path = self.path(RECORD);
        let log = Log::open_sound(&path)?;
        // Repeating a complete sweep adds nothing to the record.
        let is_there = log.sweeps().next().and_then(Result::ok).as_ref() == Some(&contents);
        if is_there && log.ends_with_a_sweep() && export::is_current(&path, &self.directory) {
            return Ok(());
        }
        let used = export::export(&log, &contents, &self.directory)?;
        if is_there {
            export::mark_current(&path, &self.directory)?;
        } else {
            log::append_sweep(&path, &contents)?;
        }
        Log::open(&path)?.compact(&used)
    }

    /// Reads the last finished sweep: its provenance, and its runs in order.
    ///
    /// # Errors
    /// If there is none, or the record is damaged.
    pub fn read(&self) -> Result<(Provenance, Vec<RunSummary>), RunsError> {
        query::last_sweep(&Log::open_sound(&self.path(RECORD))?)
    }

    /// True if it has no record.
    pub fn is_empty(&self) -> bool {
        !self.path(RECORD).exists()
    }

    /// The run `id` with all of its parts.
    ///
    /// # Errors
    /// If it does not exist, or the record is damaged.
    pub fn record(&self, id: &str) -> Result<RunRecord, RunsError> {
        let path = self.path(RECORD);
        let log = Log::open_sound(&path)?;
        let is = |run: &Option<RunSummary>| run.as_ref().is_some_and(|run| run.id == id);
        let found = log.runs().find(|(_, run)| is(run)).map(|(line, _)| *line);
        let line = found.ok_or_else(|| RunsError::store(&path)(format!("there is no run {id} in it")))?;
        log.run(&line)
    }

    /// Completion times in seconds of the fixed-size flows that users read, by run id. Runs recorded before this value
    /// existed have none.
    ///
    /// # Errors
    /// If the record is damaged.
    pub fn completion_times(&self, ids: &BTreeSet<&str>) -> Result<BTreeMap<String, Vec<f64>>, RunsError> {
        Ok(completions::read(&Log::open_sound(&self.path(RECORD))?, ids))
    }

    /// The runs of `plan` that are in the record, regardless of which program simulated them and whether their sweep
    /// finished.
    ///
    /// # Errors
    /// If the record is damaged.
    pub(crate) fn select(&self, plan: &Plan) -> Result<Vec<Option<RunSummary>>, RunsError> {
        if self.is_empty() {
            return Ok(vec![None; plan.runs.len()]);
        }
        query::select(&Log::open_sound(&self.path(RECORD))?, plan)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Writes a file atomically: it is complete or not created at all.
///
/// # Errors
/// If it cannot be written.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), RunsError> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::create_dir_all(directory).map_err(RunsError::io(directory))?;
    }
    let written = AtomicFile::create(path).and_then(|mut file| {
        file.write_all(content)?;
        file.commit()
    });
    written.map_err(RunsError::io(path))
}

/// Checks that [`write_whole`] can write a file at `path`, and leaves nothing there.
///
/// # Errors
/// If it cannot be written.
pub fn check_writable(path: &Path) -> io::Result<()> {
    // Devices are there, and a pipe is only opened for its content.
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    let directory = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
    let is_there = |path: &Path| path.as_os_str().is_empty() || path.exists();
    // Missing directories are created in the first existing one.
    let mut probe = path.to_owned();
    while !is_there(&directory(&probe)) {
        probe = directory(&probe);
    }
    AtomicFile::create(&probe).map(drop)
}

#[cfg(test)]
mod tests;
