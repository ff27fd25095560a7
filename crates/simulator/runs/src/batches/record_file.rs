//! The file with the records of a batch: its name, and how it is read.

use std::ffi::OsStr;
use std::fmt::Display;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use tacit_scenario::table::count;

use super::Batches;
use crate::error::RunsError;
use crate::record::RunSummary;
use crate::store::Log;

/// Directory name of the batches.
pub(super) const RUNS: &str = "runs";
/// File name extension of the record of a batch.
pub(super) const RECORD: &str = "jsonl";

/// The file name of the batch that starts with run `first`, relative to the directory and without the hash.
pub(super) fn name_of_batch(sweep: &Batches, first: usize) -> String {
    let place = first / sweep.runs_of_place();
    let scheme = sweep.schemes[first / sweep.runs_of_subject() % sweep.schemes.len()].name;
    format!("{RUNS}/{place:05}-{scheme}/{first:09}-")
}

/// The end of the name of the record of the runs with these names.
pub(super) fn hash_of(ids: impl Iterator<Item: Display>) -> String {
    let mut hash = blake3::Hasher::new();
    for id in ids {
        hash.update(id.to_string().as_bytes());
    }
    hash.finalize().to_hex()[..16].to_owned()
}

/// The runs of `batch`, whose record is at `path`. Its name says which runs they are, also where another build made them.
pub(super) fn read(
    path: &Path,
    batch: &Range<usize>,
    scenario_text: &Arc<str>,
) -> Result<Vec<RunSummary>, RunsError> {
    let log = Log::open_sound(path)?;
    let run = |run: RunSummary| RunSummary { scenario_text: scenario_text.clone(), ..run };
    let runs: Vec<RunSummary> = log.runs().filter_map(|(_, known)| known.map(run)).collect();
    let what = if runs.len() != batch.len() {
        format!("{} that this version reads, not {}", count(runs.len() as u64, "run"), named(batch))
    } else {
        let hash = hash_of(runs.iter().map(|run| &run.id));
        let name = path.file_stem().and_then(OsStr::to_str);
        if name.is_some_and(|name| name.ends_with(&hash)) {
            return Ok(runs);
        }
        format!("other runs than {} (the command that made the sweep makes them)", named(batch))
    };
    Err(RunsError::store(path)(what))
}

/// The numbers of a batch's runs in words.
pub(super) fn named(batch: &Range<usize>) -> String {
    format!("runs {} to {}", batch.start, batch.end.saturating_sub(1))
}
