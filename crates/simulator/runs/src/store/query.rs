//! Queries of the record: its last sweep, and the runs of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Provenance;
use super::contents::Row;
use super::log::Log;
use crate::error::RunsError;
use crate::identity::run_id;
use crate::plan::Plan;
use crate::record::{Label, RunSummary};
use tacit_scenario::RunSpec;

/// The last finished sweep in `log`, and its runs in order.
pub(super) fn last_sweep(log: &Log) -> Result<(Provenance, Vec<RunSummary>), RunsError> {
    let damaged = |what: String| RunsError::store(&log.path)(what);
    let Some(contents) = log.sweeps().next().transpose()? else {
        let finished = log.runs().count();
        return Err(damaged(format!("{finished} runs of a sweep that did not finish")));
    };
    let wanted: BTreeSet<&str> = contents.rows.iter().map(|row| row.id.as_str()).collect();
    let runs = log.runs().filter_map(|(_, run)| run).filter(|run| wanted.contains(run.id.as_str()));
    let runs: BTreeMap<String, RunSummary> = runs.map(|run| (run.id.clone(), run)).collect();
    let row = |row: &Row| {
        let run = runs.get(&row.id).ok_or_else(|| {
            damaged(format!("run {} of its sweep is not in it, or nothing that this version reads", row.id))
        })?;
        let run = RunSummary { label: row.label.clone(), scenario_text: contents.text(row), ..run.clone() };
        let allowed = run.is_plausible();
        allowed
            .then_some(run)
            .ok_or_else(|| damaged(format!("run {} has a label that no sweep gives", row.id)))
    };
    let runs = contents.rows.iter().map(row).collect::<Result<_, RunsError>>()?;
    Ok((contents.provenance, runs))
}

/// Identifies a run across programs: the scenario's text, the scheme, the client count and the seed.
type RunKey = (Arc<str>, String, u32, u64);

fn run_key(text: &Arc<str>, label: &Label) -> RunKey {
    (text.clone(), label.scheme.clone(), label.clients, label.seed)
}

/// The runs of `plan` that `log` contains, no matter what program simulated them; `None` for those that are
/// missing.
pub(super) fn select(log: &Log, plan: &Plan) -> Result<Vec<Option<RunSummary>>, RunsError> {
    let mut runs = BTreeMap::new();
    let mut ids: BTreeMap<RunKey, String> = BTreeMap::new();
    for (_, run) in log.runs() {
        let Some(run) = run else { continue };
        ids.insert(run_key(&run.scenario_text, &run.label), run.id.clone());
        runs.insert(run.id.clone(), run);
    }
    // Rows of the sweep that finished last take precedence.
    let sweeps = log.sweeps().collect::<Result<Vec<_>, _>>()?;
    for sweep in sweeps.iter().rev() {
        for row in sweep.rows.iter().filter(|row| runs.contains_key(&row.id)) {
            ids.insert(run_key(&sweep.text(row), &row.label), row.id.clone());
        }
    }
    let find = |spec: &RunSpec| {
        let by_this_program = runs.get(&run_id(spec).to_string());
        let key = || run_key(&spec.subject.scenario().text, &Label::for_run(spec));
        let run = by_this_program.or_else(|| runs.get(ids.get(&key())?))?;
        Some(run.clone().labelled(spec))
    };
    Ok(plan.runs.iter().map(find).collect())
}
