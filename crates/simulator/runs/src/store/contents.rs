//! Contents of a finished sweep: the entry that completes it in the record.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Provenance;
use crate::record::{Label, RunSummary};

/// A finished sweep: its provenance and its rows. Rows may refer to the same run with different labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Contents {
    pub provenance: Provenance,
    /// Scenarios as TOML. Rows refer to them by index.
    pub scenario_texts: Vec<Arc<str>>,
    /// The rows in the order in which they are shown.
    pub rows: Vec<Row>,
}

/// A run as a row of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub id: String,
    pub label: Label,
    /// Index of its scenario in the list of texts.
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
