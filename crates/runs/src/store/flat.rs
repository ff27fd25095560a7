//! Parts of a run, such as its flows, as a sheet. Its columns follow from the part as JSON: objects become
//! prefixes, lists of numbers text, and so does an absent text, which is empty.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use tacit_proto::{fastack, fwp, hack};

use super::sheet::Sheet;
use super::tables::labelled;
use crate::application::ApplicationRecord;
use crate::hop_record::HopRecord;
use crate::record::{FlowRecord, RunRecord, SampleRecord};
use crate::station::{DriverRecord, StationRecord};

/// A part of a run that makes a row.
pub(super) trait Part: Serialize + Sized {
    /// One with everything there can be, whose values tell the types of columns.
    fn full() -> Self;

    /// Those of a run.
    fn of(record: &RunRecord) -> &[Self];

    fn template() -> Value {
        serde_json::to_value(Self::full()).unwrap_or_default()
    }
}

impl Part for StationRecord {
    fn full() -> Self {
        Self {
            hack: Some(DriverRecord::default()),
            fastack: Some(fastack::Counters::default()),
            fwp: Some(fwp::Counters::default()),
            ..Self::default()
        }
    }

    fn of(record: &RunRecord) -> &[Self] {
        &record.stations
    }
}

impl Part for HopRecord {
    fn full() -> Self {
        Self { to: Some(String::new()), ..Self::default() }
    }

    fn of(record: &RunRecord) -> &[Self] {
        &record.hops
    }
}

impl Part for FlowRecord {
    fn full() -> Self {
        Self {
            duration_s: Some(0.0),
            retransmitted_segments: Some(0),
            rtos: Some(0),
            data_segments_sent: Some(0),
            acks_sent: Some(0),
            hack: Some(hack::FlowCounters::default()),
            ..Self::default()
        }
    }

    fn of(record: &RunRecord) -> &[Self] {
        &record.flows
    }
}

impl Part for ApplicationRecord {
    fn full() -> Self {
        Self {
            pages_completed: Some(0),
            on_periods: Some(0),
            frames_played: Some(0),
            frames_damaged: Some(0),
            rebuffers: Some(0),
            released_bytes: Some(0),
            holes: Some(0),
            placeholder_bytes: Some(0),
            late_bytes: Some(0),
            repair_requests: Some(0),
            repeated_repairs: Some(0),
            held_peak_bytes: Some(0),
            failed: Some(false),
            ..Self::default()
        }
    }

    fn of(record: &RunRecord) -> &[Self] {
        &record.applications
    }
}

impl Part for SampleRecord {
    fn full() -> Self {
        Self::default()
    }

    fn of(record: &RunRecord) -> &[Self] {
        &record.series
    }
}

/// The values of a row by column.
type Cells = BTreeMap<String, Value>;

/// Every column under `value`, with the value of the template.
fn columns(name: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                columns(&below(name, key), field, found);
            }
        }
        other => found.push((name.to_owned(), other.clone())),
    }
}

fn below(name: &str, key: &str) -> String {
    if name.is_empty() { key.to_owned() } else { format!("{name}_{key}") }
}

/// The values in `record` by the path that makes a column, as `columns` names it.
fn cells(record: &Value) -> Cells {
    let mut found = Vec::new();
    columns("", record, &mut found);
    found.into_iter().collect()
}

pub(super) fn sheet<P: Part>(records: &[RunRecord]) -> Sheet {
    let rows: Vec<(&RunRecord, Cells)> = records
        .iter()
        .flat_map(|record| P::of(record).iter().map(move |part| (record, part)))
        .map(|(record, part)| (record, cells(&serde_json::to_value(part).unwrap_or_default())))
        .collect();
    let mut sheet = labelled(rows.iter().map(|(record, _)| *record));
    let mut found = Vec::new();
    columns("", &P::template(), &mut found);
    let rows: Vec<&Cells> = rows.iter().map(|(_, cells)| cells).collect();
    fill(&mut sheet, found, &rows);
    sheet
}

/// JSON objects as a sheet, a row each: a column has the type of its first value that is not null.
pub fn objects(rows: &[Value]) -> Sheet {
    let mut kinds: Vec<(String, Value)> = Vec::new();
    for row in rows {
        let mut found = Vec::new();
        columns("", row, &mut found);
        for (name, value) in found {
            match kinds.iter_mut().find(|(known, _)| *known == name) {
                Some((_, kind)) if kind.is_null() => *kind = value,
                Some(_) => {}
                None => kinds.push((name, value)),
            }
        }
    }
    let rows: Vec<Cells> = rows.iter().map(cells).collect();
    let mut sheet = Sheet::default();
    fill(&mut sheet, kinds, &rows.iter().collect::<Vec<_>>());
    sheet
}

/// Adds the columns that `full` has, whose values tell their types, with the values of `rows`.
///
/// # Errors
/// Where one has no form in JSON.
pub fn add_rows<'a, T: Serialize + 'a>(
    sheet: &mut Sheet,
    full: &T,
    rows: impl Iterator<Item = &'a T>,
) -> serde_json::Result<()> {
    let mut kinds = Vec::new();
    columns("", &serde_json::to_value(full)?, &mut kinds);
    let rows = rows.map(|row| Ok(cells(&serde_json::to_value(row)?)));
    let rows = rows.collect::<serde_json::Result<Vec<Cells>>>()?;
    fill(sheet, kinds, &rows.iter().collect::<Vec<_>>());
    Ok(())
}

/// Adds the columns of `kinds`, each of the type of its value there.
fn fill(sheet: &mut Sheet, kinds: Vec<(String, Value)>, rows: &[&Cells]) {
    for (name, kind) in kinds {
        let values = || rows.iter().map(|cells| cells.get(&name));
        match kind {
            Value::Array(_) => {
                let texts: Vec<String> = values().map(list_text).collect();
                sheet.text(&name, texts.iter().map(String::as_str));
            }
            Value::String(_) => {
                sheet.text(&name, values().map(|value| value.and_then(Value::as_str).unwrap_or_default()));
            }
            Value::Number(number) if !number.is_f64() => {
                sheet.integer(&name, values().map(|value| value?.as_u64()));
            }
            // Numbers, and values that may be null.
            _ => sheet.number(&name, values().map(|value| value?.as_f64())),
        }
    }
}

/// A list of numbers with spaces between.
fn list_text(value: Option<&Value>) -> String {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
