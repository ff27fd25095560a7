//! Converts parts of a run, such as its flows, to a sheet. Columns follow from the JSON form: objects become prefixes,
//! lists of numbers become text, and a missing text becomes an empty one.

use serde::Serialize;
use serde_json::Value;
use tacit_between::{fastack, fwp, hack};

use super::sheet::Sheet;
use super::tables::labelled;
use crate::application::ApplicationRecord;
use crate::hop_record::HopRecord;
use crate::record::{FlowRecord, RunRecord, SampleRecord};
use crate::station::{DriverRecord, StationRecord};

/// A part of a run that corresponds to one row.
pub(super) trait Part: Serialize + Sized {
    /// An instance in which every optional value is present. Its values determine the types of the columns.
    fn full() -> Self;

    /// The parts of a run.
    fn in_run(record: &RunRecord) -> &[Self];

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

    fn in_run(record: &RunRecord) -> &[Self] {
        &record.stations
    }
}

impl Part for HopRecord {
    fn full() -> Self {
        Self { to: Some(String::new()), ..Self::default() }
    }

    fn in_run(record: &RunRecord) -> &[Self] {
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

    fn in_run(record: &RunRecord) -> &[Self] {
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

    fn in_run(record: &RunRecord) -> &[Self] {
        &record.applications
    }
}

impl Part for SampleRecord {
    fn full() -> Self {
        Self::default()
    }

    fn in_run(record: &RunRecord) -> &[Self] {
        &record.series
    }
}

/// A column for the values with the same path in each row.
struct ColumnPath {
    name: String,
    /// Names of the enclosing objects, outermost first, and its own name.
    path: Vec<String>,
    /// A sample value, which determines the type.
    kind: Value,
}

impl ColumnPath {
    fn value<'a>(&self, row: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(row, |value, name| value.get(name))
    }
}

/// All columns of `template`.
fn columns(template: &Value) -> Vec<ColumnPath> {
    let mut found = Vec::new();
    add_columns(&mut Vec::new(), template, &mut found);
    found
}

fn add_columns(path: &mut Vec<String>, value: &Value, found: &mut Vec<ColumnPath>) {
    let Value::Object(fields) = value else {
        found.push(ColumnPath { name: path.join("_"), path: path.clone(), kind: value.clone() });
        return;
    };
    for (key, field) in fields {
        path.push(key.clone());
        add_columns(path, field, found);
        path.pop();
    }
}

pub(super) fn sheet<P: Part>(records: &[RunRecord]) -> Sheet {
    let parts = || records.iter().flat_map(|record| P::in_run(record).iter().map(move |part| (record, part)));
    let mut sheet = labelled(parts().map(|(record, _)| &record.run));
    let rows: Vec<Value> = parts().map(|(_, part)| serde_json::to_value(part).unwrap_or_default()).collect();
    fill(&mut sheet, &columns(&P::template()), &rows);
    sheet
}

/// JSON objects as a sheet, one row per object. The first value of a column that is not null determines its type.
pub fn objects(rows: &[Value]) -> Sheet {
    let mut all: Vec<ColumnPath> = Vec::new();
    for column in rows.iter().flat_map(columns) {
        match all.iter_mut().find(|known| known.name == column.name) {
            Some(known) if known.kind.is_null() => known.kind = column.kind,
            Some(_) => {}
            None => all.push(column),
        }
    }
    let mut sheet = Sheet::default();
    fill(&mut sheet, &all, rows);
    sheet
}

/// Adds the columns of `full`, whose values determine the types, with the values of `rows`.
///
/// # Errors
/// If a value cannot be serialised as JSON.
pub fn add_rows<'a, T: Serialize + 'a>(
    sheet: &mut Sheet,
    full: &T,
    rows: impl Iterator<Item = &'a T>,
) -> serde_json::Result<()> {
    let rows = rows.map(serde_json::to_value).collect::<serde_json::Result<Vec<Value>>>()?;
    fill(sheet, &columns(&serde_json::to_value(full)?), &rows);
    Ok(())
}

/// Adds `columns` with the types of their sample values.
fn fill(sheet: &mut Sheet, columns: &[ColumnPath], rows: &[Value]) {
    for column in columns {
        let values = || rows.iter().map(|row| column.value(row));
        match &column.kind {
            Value::Array(_) => {
                let texts: Vec<String> = values().map(list_text).collect();
                sheet.text(&column.name, texts.iter().map(String::as_str));
            }
            Value::String(_) => {
                let texts = values().map(|value| value.and_then(Value::as_str).unwrap_or_default());
                sheet.text(&column.name, texts);
            }
            Value::Number(number) if !number.is_f64() => {
                sheet.integer(&column.name, values().map(|value| value?.as_u64()));
            }
            // Numbers, and values that may be null.
            _ => sheet.number(&column.name, values().map(|value| value?.as_f64())),
        }
    }
}

/// A list of numbers separated by spaces.
fn list_text(value: Option<&Value>) -> String {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
