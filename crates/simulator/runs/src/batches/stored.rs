//! Reads a stored sweep of batches place by place, from their records.

use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use tacit_scenario::Scenario;

use super::Written;
use super::directory::Directory;
use super::record_file::{RECORD, name_of_batch, named, read};
use crate::error::RunsError;
use crate::plan::combined_digest;
use crate::record::RunSummary;
use crate::store::Provenance;

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

impl Directory {
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
        // The rest of the name is a hash that depends on the program.
        let begin = self.path.join(name_of_batch(&self.sweep, batch.start));
        let name = begin.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let files = begin.parent().and_then(|folder| fs::read_dir(folder).ok());
        let files = files.into_iter().flatten().flatten().map(|file| file.path());
        let is_its = |file: &PathBuf| {
            let file_name = file.file_name().and_then(OsStr::to_str);
            file_name.is_some_and(|found| found.starts_with(name) && found.ends_with(RECORD))
        };
        let file = files.filter(is_its).min().ok_or_else(|| {
            let runs = named(batch);
            let what = format!("{runs} have no record (the command that made the sweep makes it)");
            RunsError::store(&self.path)(what)
        })?;
        read(&file, batch, scenario_text)
    }

    fn provenance(&self, place: usize, at: &[String]) -> Result<Provenance, RunsError> {
        let Written { clients, seeds, program, .. } = &self.sweep.written;
        let Scenario { description, invocation, .. } = self.sweep.scenario(place)?;
        let clients: Vec<String> = clients.iter().map(u32::to_string).collect();
        let common = self.sweep.provenance(&self.sweep.written.places[place]);
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
                common.schemes
            ),
            ..common
        })
    }
}
