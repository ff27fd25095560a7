//! Flow completion times out of the record: of each run no more than those is taken into memory.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::entry::{self, Entry, Kind};
use super::log::Log;
use crate::error::RunsError;
use crate::record::MAX_VALUE;

/// As much of a run as is wanted.
#[derive(Deserialize)]
struct Run {
    id: String,
    #[serde(default)]
    flows: Vec<Flow>,
    #[serde(default)]
    applications: Vec<Program>,
}

#[derive(Deserialize)]
struct Flow {
    flow: u32,
    #[serde(default)]
    duration_s: Option<f64>,
}

#[derive(Deserialize)]
struct Program {
    #[serde(default)]
    first_flow: u32,
    #[serde(default)]
    connections: u32,
    /// Of repaired downloads only.
    #[serde(default)]
    released_bytes: Option<u64>,
}

impl Program {
    /// The connections beside the first of a repaired download have what it lacks, and no reader of their own.
    fn repairs_with(&self, flow: u32) -> bool {
        let own = flow.checked_sub(self.first_flow);
        self.released_bytes.is_some() && own.is_some_and(|own| (1..self.connections).contains(&own))
    }
}

pub(super) fn read(log: &Log, ids: &BTreeSet<&str>) -> Result<BTreeMap<String, Vec<f64>>, RunsError> {
    let mut times = BTreeMap::new();
    for line in log.of_kind(Kind::Run) {
        let entry = entry::read::<Run, IgnoredAny>(&log.file, line).map_err(RunsError::store(&log.path))?;
        let Entry::Run(run) = entry else { continue };
        if !ids.contains(run.id.as_str()) {
            continue;
        }
        let is_read = |flow: &&Flow| !run.applications.iter().any(|program| program.repairs_with(flow.flow));
        let took = run.flows.iter().filter(is_read).filter_map(|flow| flow.duration_s);
        let mut took: Vec<f64> = took.filter(|seconds| (0.0..=MAX_VALUE).contains(seconds)).collect();
        took.sort_unstable_by(f64::total_cmp);
        times.insert(run.id, took);
    }
    Ok(times)
}
