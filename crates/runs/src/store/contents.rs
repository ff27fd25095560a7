//! Contents of a finished sweep: the entry that closes it in the record of results.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Provenance;
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
