//! Results on disk: one directory per sweep.
//!
//! `runs.jsonl` is the record: each run is appended to it once, as it finishes, and each sweep when all its runs are
//! in. A line cut short by a kill is dropped when the sweep is resumed; a line that does not fit its checksum is
//! named. Everything that reads results again reads this file.
//!
//! The Parquet files are its export, for other programs: a row per run, flow, application, hop, station and sample.
//! Each is written under another name and renamed, so none is ever half there.

mod completions;
mod contents;
mod csv;
pub(crate) mod entry;
mod export;
mod flat;
mod log;
mod query;
mod sheet;
pub(crate) mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tacit_sim::capture::AtomicFile;

pub(crate) use export::RUNS;
pub use export::{sheet_of, table_names};
pub use flat::{add_rows, objects};
pub use log::Writer;
pub(crate) use sheet::parquet;
pub use sheet::{Column, Sheet};

use crate::error::RunsError;
use crate::plan::Plan;
use crate::record::{RunRecord, RunSummary};
use contents::Contents;
use log::Log;

/// The record.
pub(crate) const RECORD: &str = "runs.jsonl";

/// Where results come from; with every finished sweep, and in the metadata of every Parquet file, each field as `tacit.<field>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// Name of the scenario.
    pub scenario: String,
    /// One line about it.
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
    /// Settings that the results depend on beside the description, a line of TOML each.
    pub conditions: String,
    /// Requests that are not in the results, a line each.
    pub warnings: String,
    /// The variable along the axis of a sweep; empty for no sweep, like the next two.
    pub x_label: String,
    /// The quantity drawn over it.
    pub y_label: String,
    /// Name of its metric, with `_mbps` for a `_bps` one in millions.
    pub column: String,
}

impl Provenance {
    fn fields(&self) -> [(&'static str, &str); 13] {
        [
            ("tacit.scenario", &self.scenario),
            ("tacit.description", &self.description),
            ("tacit.scenario_text", &self.scenario_text),
            ("tacit.seeds", &self.seeds),
            ("tacit.version", &self.version),
            ("tacit.command", &self.command),
            ("tacit.schemes", &self.schemes),
            ("tacit.digest", &self.digest),
            ("tacit.conditions", &self.conditions),
            ("tacit.warnings", &self.warnings),
            ("tacit.x_label", &self.x_label),
            ("tacit.y_label", &self.y_label),
            ("tacit.column", &self.column),
        ]
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
    pub fn open(directory: &Path) -> Result<Self, RunsError> {
        fs::create_dir_all(directory).map_err(RunsError::io(directory))?;
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

    /// Opens the record for appending, with the runs in it by id. Parts of it that are cut short or damaged are dropped,
    /// and `warn` is told of them.
    ///
    /// # Errors
    /// Where it cannot be read or written.
    pub fn resume(&self, warn: &dyn Fn(&str)) -> Result<(Writer, BTreeMap<String, RunSummary>), RunsError> {
        Writer::open(&self.path(RECORD), warn)
    }

    /// Closes a sweep of `runs`, all of which the record has, and exports it, unless that was done before.
    ///
    /// # Errors
    /// Where a file cannot be written, or the record lacks a run.
    pub fn finish(&self, provenance: &Provenance, runs: &[RunSummary]) -> Result<(), RunsError> {
        let contents = Contents::new(provenance, runs);
        let path = self.path(RECORD);
        let log = Log::open_sound(&path)?;
        // A sweep that is made again, though nothing is missing, adds nothing.
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

    /// Reads the last finished sweep: where it came from, and its runs in order.
    ///
    /// # Errors
    /// Where there is none, or the record is damaged.
    pub fn read(&self) -> Result<(Provenance, Vec<RunSummary>), RunsError> {
        query::last_sweep(&Log::open_sound(&self.path(RECORD))?)
    }

    /// Nothing was ever recorded in it.
    pub fn is_empty(&self) -> bool {
        !self.path(RECORD).exists()
    }

    /// The run called `id`, with all its parts.
    ///
    /// # Errors
    /// Where it is not there, or the record is damaged.
    pub fn record(&self, id: &str) -> Result<RunRecord, RunsError> {
        let path = self.path(RECORD);
        let log = Log::open_sound(&path)?;
        let is = |run: &Option<RunSummary>| run.as_ref().is_some_and(|run| run.id == id);
        let found = log.runs().find(|(_, run)| is(run)).map(|(line, _)| *line);
        let line = found.ok_or_else(|| RunsError::store(&path)(format!("there is no run {id} in it")))?;
        log.run(&line)
    }

    /// Completion times of the flows of a fixed size that users read, in seconds, by the ids of the runs in `ids`. A record
    /// from before flows had it has none.
    ///
    /// # Errors
    /// Where the record is damaged.
    pub fn completion_times(&self, ids: &BTreeSet<&str>) -> Result<BTreeMap<String, Vec<f64>>, RunsError> {
        Ok(completions::read(&Log::open_sound(&self.path(RECORD))?, ids))
    }

    /// The runs of `plan` that are in it, whichever program made them and whether or not its sweep finished.
    ///
    /// # Errors
    /// Where the record is damaged.
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

/// Writes a file whole or not at all.
///
/// # Errors
/// Where it cannot be written.
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

#[cfg(test)]
mod tests;
