//! The x axis of a sweep.

use super::measure::same;
use tacit_scenario::InputError;
use tacit_scenario::input::{Mismatch, Section, Value, numbers, text, texts};

/// The axis key for the number of clients.
pub(super) const CLIENTS: &str = "clients";

/// The x axis of a sweep.
#[derive(Clone, Debug, Default)]
pub(super) struct Axis {
    /// `clients`, or a key of the scenario.
    pub key: String,
    pub values: Vec<f64>,
    /// Appended to the value in an assignment.
    pub unit: String,
    /// Further assignments for individual `values`; empty if there are none.
    pub also: Vec<(f64, Vec<String>)>,
}

impl Axis {
    /// Reads the values of `key` in `section`.
    pub fn read(section: &Section<'_>, key: String) -> Result<Self, InputError> {
        let values = section.required("values", numbers)?;
        let also = read_also(section, &values)?;
        Ok(Self { key, values, unit: section.or("unit", String::new(), text)?, also })
    }

    /// The assignment that sets the axis to `value`.
    pub fn assignment(&self, value: f64) -> String {
        format!("{}={value}{}", self.key, self.unit)
    }

    /// The further assignments at `value`.
    pub fn also(&self, value: f64) -> &[String] {
        let with = self.also.iter().find(|(at, _)| same(*at, value));
        with.map_or(&[], |(_, assignments)| assignments.as_slice())
    }
}

/// The further assignments at each of `values`.
pub(super) fn read_also(
    section: &Section<'_>,
    values: &[f64],
) -> Result<Vec<(f64, Vec<String>)>, InputError> {
    let also = section.or("also", Vec::new(), lists_of_texts)?;
    if !also.is_empty() && also.len() != values.len() {
        return Err(section
            .error("also", format!("{} lists for {} values", also.len(), values.len()))
            .allowed("a list of assignments for each value"));
    }
    Ok(values.iter().copied().zip(also).collect())
}

fn lists_of_texts(value: &Value) -> Result<Vec<Vec<String>>, Mismatch> {
    let wrong = || Mismatch::new(format!("{value} is no list of lists"), "[[\"a=1\"], [\"a=2\"]]");
    let Value::List(items) = value else { return Err(wrong()) };
    items.iter().map(|item| texts(&item.value).map_err(|_| wrong())).collect()
}
