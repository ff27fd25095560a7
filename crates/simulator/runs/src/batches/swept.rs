//! The keys that a sweep sets, as columns of its tables.

use serde::{Deserialize, Serialize};

use crate::store::Sheet;

/// How tables show a swept key. This is decided for the whole sweep, so that all of its files have the same columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SweptColumn {
    pub key: String,
    /// Suffix of the column's name, if all values are numbers with the same unit; `None` if the values are shown as
    /// text.
    pub unit: Option<String>,
}

impl SweptColumn {
    /// Adds the column of the swept key with this index, for rows at `places`.
    pub fn add(&self, sheet: &mut Sheet, index: usize, places: &[&[String]]) {
        let values = places.iter().map(|at| assignment(at, index).unwrap_or_default().1);
        match &self.unit {
            Some(unit) => {
                let numbers = values.map(|value| quantity(value).map(|(number, _)| number));
                sheet.number(&format!("{}{unit}", self.key), numbers);
            }
            None => sheet.text(&self.key, values),
        }
    }
}

/// The columns of a sweep over `places`, each given by its assignments.
pub(super) fn swept_columns(places: &[&[String]]) -> Vec<SweptColumn> {
    let keys = places.first().map_or(0, |at| at.len());
    let column = |index: usize| {
        let key = assignment(places.first()?, index)?.0.to_owned();
        let mut units = places.iter().map(|at| assignment(at, index).and_then(|(_, value)| quantity(value)));
        let unit = units.next().flatten().map(|(_, unit)| unit);
        let one = units.all(|next| next.map(|(_, unit)| unit) == unit);
        Some(SweptColumn { key, unit: unit.filter(|_| one).map(str::to_owned) })
    };
    (0..keys).filter_map(column).collect()
}

/// Adds a column for each swept key, as in the tables of `tacit sweep`. `places` are those of the rows.
pub fn add_swept(sheet: &mut Sheet, places: &[&[String]]) {
    for (index, column) in swept_columns(places).iter().enumerate() {
        column.add(sheet, index, places);
    }
}

/// Key and value of the assignment with this index.
fn assignment(at: &[String], index: usize) -> Option<(&str, &str)> {
    let (key, value) = at.get(index)?.split_once('=')?;
    Some((key.trim(), value.trim()))
}

/// A swept value as a number, and the suffix for its column, which names the unit. Units of the same kind are converted
/// to one unit, so that `500 us` and `5 ms` can share a column. `None` for a value that is not a number.
pub fn quantity(value: &str) -> Option<(f64, &'static str)> {
    let end =
        value.find(|letter: char| !matches!(letter, '0'..='9' | '.' | '-' | '_')).unwrap_or(value.len());
    let number: f64 = value[..end].replace('_', "").parse().ok()?;
    let (factor, unit): (f64, &'static str) = match value[end..].trim() {
        "" => (1.0, ""),
        "m" => (1.0, "_m"),
        "ns" => (1e-9, "_s"),
        "us" => (1e-6, "_s"),
        "ms" => (1e-3, "_s"),
        "s" => (1.0, "_s"),
        "bps" | "b/s" => (1.0, "_bps"),
        "kbps" | "kb/s" => (1e3, "_bps"),
        "Mbps" | "Mb/s" => (1e6, "_bps"),
        "Gbps" | "Gb/s" => (1e9, "_bps"),
        "%" => (1.0, "_percent"),
        "dB" => (1.0, "_db"),
        "dBm" => (1.0, "_dbm"),
        "B" => (1.0, "_bytes"),
        "kB" => (1e3, "_bytes"),
        "KiB" => (1024.0, "_bytes"),
        "MiB" => (1024.0 * 1024.0, "_bytes"),
        "packets" => (1.0, "_packets"),
        _ => return None,
    };
    // A factor below one is applied as a division by its inverse, which is an integer. This gives the exact result: 5
    // ms are 0.005 s.
    let number = if factor < 1.0 { number / (1.0 / factor).round() } else { number * factor };
    Some((number, unit))
}
