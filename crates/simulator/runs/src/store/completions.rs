//! Reads flow completion times from the record. Only these parts of each run are loaded into memory.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::entry::{self, Entry, Kind};
use super::log::Log;
use crate::record::MAX_VALUE;

/// The parts of a run that are needed.
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
    /// Present only for repaired downloads.
    #[serde(default)]
    released_bytes: Option<u64>,
}

impl Run {
    /// Completion times of the flows that users read, ascending, in seconds.
    fn completion_times(&self) -> Vec<f64> {
        let is_read = |flow: &&Flow| !self.applications.iter().any(|program| program.repairs_with(flow.flow));
        let took = self.flows.iter().filter(is_read).filter_map(|flow| flow.duration_s);
        let mut took: Vec<f64> = took.filter(|seconds| (0.0..=MAX_VALUE).contains(seconds)).collect();
        took.sort_unstable_by(f64::total_cmp);
        took
    }
}

impl Program {
    /// All connections of a repaired download except the first carry its missing bytes, and no user reads them
    /// separately.
    fn repairs_with(&self, flow: u32) -> bool {
        let connection = flow.checked_sub(self.first_flow);
        self.released_bytes.is_some()
            && connection.is_some_and(|connection| (1..self.connections).contains(&connection))
    }
}

pub(super) fn read(log: &Log, ids: &BTreeSet<&str>) -> BTreeMap<String, Vec<f64>> {
    let mut times = BTreeMap::new();
    for line in log.entries(Kind::Run) {
        // A record may contain runs that this version cannot read. None of them is in `ids`.
        let Ok(Entry::Run(run)) = entry::read::<Run, IgnoredAny>(&log.file, line) else { continue };
        if !ids.contains(run.id.as_str()) {
            continue;
        }
        let took = run.completion_times();
        times.insert(run.id, took);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(run: &str) -> Vec<f64> {
        serde_json::from_str::<Run>(run).unwrap().completion_times()
    }

    #[test]
    fn flows_that_only_repair_others_are_left_out() {
        let flows = r#"[{"flow":0,"duration_s":3.0},{"flow":1,"duration_s":0.1},{"flow":2,"duration_s":2.0},
            {"flow":3,"duration_s":null},{"flow":4,"duration_s":1e300}]"#;
        let run = |program: &str| format!(r#"{{"id":"a","flows":{flows},"applications":[{program}]}}"#);
        let repaired = r#"{"first_flow":0,"connections":2,"released_bytes":9}"#;
        assert_eq!(times(&run(repaired)), [2.0, 3.0]);
        let pages = r#"{"first_flow":0,"connections":2,"released_bytes":null}"#;
        assert_eq!(times(&run(pages)), [0.1, 2.0, 3.0]);
    }

    #[test]
    fn a_record_from_before_flows_had_it_says_nothing() {
        assert!(times(r#"{"id":"a","flows":[{"flow":0,"completed_s":1.0}]}"#).is_empty());
        assert!(times(r#"{"id":"a"}"#).is_empty());
    }
}
