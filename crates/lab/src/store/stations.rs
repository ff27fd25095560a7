//! Stations as a sheet. Its columns follow from the record as JSON: objects become prefixes, lists text.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::sheet::{Column, Sheet};
use super::tables::Cells;
use crate::record::RunRecord;
use crate::station::{DriverRecord, StationRecord};

/// A record with everything there can be, whose values tell the types of columns.
fn template() -> Value {
    let full = StationRecord { hack: Some(DriverRecord::default()), ..StationRecord::default() };
    serde_json::to_value(full).unwrap_or_default()
}

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

/// What stands in `record` under the path that makes `column`, as `columns` names it.
fn cells(record: &Value) -> BTreeMap<String, Value> {
    let mut found = Vec::new();
    columns("", record, &mut found);
    found.into_iter().collect()
}

pub(super) fn sheet(records: &[RunRecord]) -> Sheet {
    let rows: Vec<(&RunRecord, BTreeMap<String, Value>)> = records
        .iter()
        .flat_map(|record| record.stations.iter().map(move |station| (record, station)))
        .map(|(record, station)| (record, cells(&serde_json::to_value(station).unwrap_or_default())))
        .collect();
    let mut sheet = Sheet::default();
    sheet.text("run", rows.iter().map(|(record, _)| record.id.as_str()));
    sheet.text("scheme", rows.iter().map(|(record, _)| record.label.scheme.as_str()));
    sheet.integer("clients", rows.iter().map(|(record, _)| Some(record.label.clients.into())));
    sheet.integer("seed", rows.iter().map(|(record, _)| Some(record.label.seed)));
    let mut found = Vec::new();
    columns("", &template(), &mut found);
    for (name, kind) in found {
        let values = || rows.iter().map(|(_, cells)| cells.get(&name));
        match kind {
            Value::Array(_) => {
                let texts: Vec<String> = values().map(list_text).collect();
                sheet.text(&name, texts.iter().map(String::as_str));
            }
            Value::Number(number) if !number.is_f64() => {
                sheet.integer(&name, values().map(|value| value?.as_u64()));
            }
            // Numbers, and what may be null.
            _ => sheet.number(&name, values().map(|value| value?.as_f64())),
        }
    }
    sheet
}

/// A list of numbers with spaces between.
fn list_text(value: Option<&Value>) -> String {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The stations of each run, by its id.
pub(super) fn read(sheet: &Sheet) -> Result<BTreeMap<String, Vec<StationRecord>>, String> {
    let ids = Cells::new(sheet, "run")?;
    let template = template();
    let mut stations: BTreeMap<String, Vec<StationRecord>> = BTreeMap::new();
    for row in 0..ids.len() {
        let value = value_at(sheet, row, "", &template)?;
        let station = serde_json::from_value(value).map_err(|error| error.to_string())?;
        stations.entry(ids.text(row).to_owned()).or_default().push(station);
    }
    Ok(stations)
}

/// The row as JSON of the template's shape; null for an object of which nothing is there.
fn value_at(sheet: &Sheet, row: usize, name: &str, template: &Value) -> Result<Value, String> {
    let Value::Object(fields) = template else {
        let (_, column) = sheet
            .columns
            .iter()
            .find(|(column, _)| column == name)
            .ok_or_else(|| format!("there is no column {name:?}"))?;
        return Ok(cell(column, row));
    };
    let mut object = Map::new();
    for (key, field) in fields {
        object.insert(key.clone(), value_at(sheet, row, &below(name, key), field)?);
    }
    Ok(if object.values().all(Value::is_null) { Value::Null } else { Value::Object(object) })
}

fn cell(column: &Column, row: usize) -> Value {
    match column {
        Column::Text(values) => {
            let items = values.get(row).map_or("", String::as_str).split_whitespace();
            items.filter_map(|item| item.parse::<u64>().ok()).collect()
        }
        Column::Integer(values) => values.get(row).copied().flatten().into(),
        Column::Number(values) => values.get(row).copied().flatten().into(),
    }
}
