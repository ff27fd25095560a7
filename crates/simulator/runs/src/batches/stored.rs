//! Reads a stored sweep of batches place by place, from CSV files that match their recorded checksums.
//!
//! Parquet files are not read, because the Parquet library panics on invalid files and allocates as much memory as they
//! claim to need.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacit_scenario::{InputError, Scenario, bounded};

use super::directory::{MAX_SWEEP, SUMS, SWEEP, name_of_batch};
use super::{Batches, Written, from_text};
use crate::error::RunsError;
use crate::metric;
use crate::plan::combined_digest;
use crate::record::{Label, RunSummary};
use crate::store::Provenance;

/// Maximum size of a batch file in bytes: 64 runs of several kilobytes each.
const MAX_BATCH: u64 = 16 << 20;

/// A stored sweep, possibly created by another build of tacit.
#[derive(Debug)]
pub struct StoredSweep {
    path: PathBuf,
    sweep: Batches,
    /// Checksums by file path relative to the directory.
    sums: BTreeMap<String, blake3::Hash>,
}

/// The runs of one place of a sweep.
#[derive(Clone, Debug)]
pub struct StoredPlace {
    /// Settings at the place, as assignments.
    pub at: Vec<String>,
    /// Provenance of the runs.
    pub provenance: Provenance,
    /// The runs in order of their numbers.
    pub runs: Vec<RunSummary>,
}

impl StoredSweep {
    /// Opens the sweep in the directory `path`; `None` if there is none.
    ///
    /// # Errors
    /// If its description is damaged or cannot be read.
    pub fn open(path: &Path) -> Result<Option<Self>, RunsError> {
        let Some(text) = read_text(&path.join(SWEEP), MAX_SWEEP)? else { return Ok(None) };
        let sweep = Batches::of(from_text::<Written>(&text)?)?;
        let file = path.join(SUMS);
        let mut sums = BTreeMap::new();
        for (line, number) in read_text(&file, MAX_SWEEP)?.unwrap_or_default().lines().zip(1..) {
            let sum = line.split_once("  ").and_then(|(hash, name)| Some((hash.parse().ok()?, name)));
            let (hash, name) = sum.ok_or_else(|| {
                RunsError::store(&file)(format!("line {number} is no BLAKE3 checksum and file"))
            })?;
            sums.insert(name.to_owned(), hash);
        }
        Ok(Some(Self { path: path.to_owned(), sweep, sums }))
    }

    /// Name of the scenario.
    pub fn scenario(&self) -> &str {
        self.sweep.scenario_name()
    }

    /// The description of the sweep, without its runs.
    pub const fn batches(&self) -> &Batches {
        &self.sweep
    }

    /// Iterates over the places.
    pub fn places(&self) -> impl Iterator<Item = Result<StoredPlace, RunsError>> + '_ {
        (0..self.sweep.written.places.len()).map(|place| self.place(place))
    }

    fn place(&self, place: usize) -> Result<StoredPlace, RunsError> {
        let runs_of_place = self.sweep.runs_of_place();
        let scenario_text = &self.sweep.written.places[place].scenario_text;
        let of_place = place * runs_of_place..(place + 1) * runs_of_place;
        // No memory is reserved, because a description may claim a hundred million runs.
        let mut runs = Vec::new();
        for batch in self.sweep.batches_of(of_place) {
            runs.extend(self.batch(&batch, scenario_text)?);
        }
        let at = self.sweep.written.places[place].at.clone();
        let provenance = Provenance { digest: combined_digest(&runs), ..self.provenance(place, &at)? };
        Ok(StoredPlace { at, provenance, runs })
    }

    fn batch(&self, batch: &Range<usize>, scenario_text: &Arc<str>) -> Result<Vec<RunSummary>, RunsError> {
        let named = format!("runs {} to {}", batch.start, batch.end - 1);
        let begin = name_of_batch(&self.sweep, batch.start);
        let mut known = self.sums.range(begin.clone()..).take_while(|(file, _)| file.starts_with(&begin));
        let (file, sum) = known.find(|(file, _)| file.ends_with(".csv")).ok_or_else(|| {
            let what = "have no CSV file in BLAKE3SUMS (the command that made the sweep, with --format csv, makes it \
                        where none is there)";
            RunsError::store(&self.path)(format!("{named} {what}"))
        })?;
        let file = self.path.join(file);
        let bytes = bounded::read(&file, MAX_BATCH).map_err(RunsError::io(&file))?.unwrap_or_default();
        if blake3::hash(&bytes) != *sum {
            let what =
                "it does not fit its checksum (delete it, and the command that made it makes it again)";
            return Err(RunsError::store(&file)(what));
        }
        let runs = summaries(&bytes, scenario_text).map_err(RunsError::store(&file))?;
        match runs.len() == batch.len() {
            true => Ok(runs),
            false => Err(RunsError::store(&file)(format!("{} runs, not {named}", runs.len()))),
        }
    }

    fn provenance(&self, place: usize, at: &[String]) -> Result<Provenance, RunsError> {
        let Written { clients, seeds, program, .. } = &self.sweep.written;
        let Scenario { description, invocation, .. } = self.sweep.scenario(place)?;
        let clients: Vec<String> = clients.iter().map(u32::to_string).collect();
        let said = self.sweep.provenance(&self.sweep.written.places[place]);
        Ok(Provenance {
            description: if at.is_empty() {
                description
            } else {
                format!("{description}; {}", at.join(", "))
            },
            version: format!("the build with BLAKE3 {}", program.get(..16).unwrap_or(program)),
            command: format!(
                "tacit compare {invocation} --clients {} --schemes {} --seeds {seeds}",
                clients.join(","),
                said.schemes
            ),
            ..said
        })
    }
}

/// The content of `file` as text, if it exists.
fn read_text(file: &Path, most: u64) -> Result<Option<String>, RunsError> {
    match bounded::read(file, most) {
        Ok(bytes) => {
            let wrong = || InputError::new(file.display(), "no text, or too long a one").into();
            bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(wrong).map(Some)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RunsError::io(file)(error)),
    }
}

/// The runs of a batch. Metrics unknown to this version are ignored.
fn summaries(file: &[u8], scenario_text: &Arc<str>) -> Result<Vec<RunSummary>, String> {
    let mut reader = csv::Reader::from_reader(file);
    let names = reader.headers().map_err(|error| error.to_string())?.clone();
    let at = |name: &str| names.iter().position(|known| known == name);
    let metrics: Vec<Option<usize>> = metric::ALL.iter().map(|metric| at(metric.name)).collect();
    let mut runs = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| error.to_string())?;
        let text = |name: &str| at(name).and_then(|column| row.get(column));
        let number = |column: Option<usize>| row.get(column?)?.parse::<f64>().ok();
        let run = || {
            let label = Label {
                scenario: text("scenario")?.to_owned(),
                scheme: text("scheme")?.to_owned(),
                clients: text("clients")?.parse().ok()?,
                x: number(at("x")),
                best_of: number(at("best_of")),
                seed: text("seed")?.parse().ok()?,
            };
            let run = RunSummary {
                id: text("run")?.to_owned(),
                label,
                scenario_text: Arc::clone(scenario_text),
                version: Arc::default(),
                digest: text("digest")?.to_owned(),
                measured_s: number(at("measured_s"))?,
                metrics: metrics.iter().map(|column| number(*column)).collect(),
            };
            Some(run).filter(RunSummary::is_plausible)
        };
        runs.push(run().ok_or_else(|| format!("row {} is of no run", runs.len() + 1))?);
    }
    Ok(runs)
}
