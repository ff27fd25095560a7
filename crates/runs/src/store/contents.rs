//! What a finished sweep is made of: the entry that closes it in the record of results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Provenance;
use super::log::Log;
use crate::error::RunsError;
use crate::identity::run_id;
use crate::plan::Plan;
use crate::record::{Label, RunSummary};

/// A finished sweep: where it comes from, and its rows. Rows may share a run and differ in their label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Contents {
    pub provenance: Provenance,
    /// Scenarios as TOML, for the rows to point at.
    pub scenario_texts: Vec<Arc<str>>,
    /// In the order in which they are shown.
    pub rows: Vec<Row>,
}

/// A run as a row of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub id: String,
    pub label: Label,
    /// Place of its scenario among the texts.
    pub scenario_text: usize,
}

impl Contents {
    pub fn new(provenance: &Provenance, runs: &[RunSummary]) -> Self {
        let mut texts = Vec::new();
        let mut known = BTreeMap::new();
        let rows = runs.iter().map(|run| {
            let scenario_text = *known.entry(run.scenario_text.clone()).or_insert_with(|| {
                texts.push(run.scenario_text.clone());
                texts.len() - 1
            });
            Row { id: run.id.clone(), label: run.label.clone(), scenario_text }
        });
        let rows = rows.collect();
        Self { provenance: provenance.clone(), scenario_texts: texts, rows }
    }

    pub fn text(&self, row: &Row) -> Arc<str> {
        self.scenario_texts.get(row.scenario_text).cloned().unwrap_or_else(|| "".into())
    }
}

/// The last finished sweep in `log`, and its runs in order.
pub(super) fn read(log: &Log) -> Result<(Provenance, Vec<RunSummary>), RunsError> {
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

/// Identifies a run whatever program made it: the scenario's text, the scheme, the clients, the seed.
type RunKey = (Arc<str>, String, u32, u64);

fn run_key(text: &Arc<str>, label: &Label) -> RunKey {
    (text.clone(), label.scheme.clone(), label.clients, label.seed)
}

/// The runs of `plan` that `log` has, whichever program made them; `None` for those that are missing.
pub(super) fn select(log: &Log, plan: &Plan) -> Result<Vec<Option<RunSummary>>, RunsError> {
    let mut runs = BTreeMap::new();
    let mut ids: BTreeMap<RunKey, String> = BTreeMap::new();
    for (_, run) in log.runs() {
        let Some(run) = run else { continue };
        ids.insert(run_key(&run.scenario_text, &run.label), run.id.clone());
        runs.insert(run.id.clone(), run);
    }
    // The rows of what finished last count most.
    let sweeps = log.sweeps().collect::<Result<Vec<_>, _>>()?;
    for sweep in sweeps.iter().rev() {
        for row in sweep.rows.iter().filter(|row| runs.contains_key(&row.id)) {
            ids.insert(run_key(&sweep.text(row), &row.label), row.id.clone());
        }
    }
    let texts = plan.scenario_texts();
    let find = |(spec, text): (_, &Arc<str>)| {
        let label = Label::of(spec);
        let by_this_program = runs.get(&run_id(spec).to_string());
        let run = by_this_program.or_else(|| runs.get(ids.get(&run_key(text, &label))?))?;
        Some(RunSummary { label, scenario_text: text.clone(), ..run.clone() })
    };
    Ok(plan.runs.iter().zip(&texts).map(find).collect())
}
