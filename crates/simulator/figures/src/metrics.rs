//! Metrics named in figure files.

use tacit_runs::metric;
use tacit_scenario::InputError;
use tacit_scenario::input::{Mismatch, Section, Value, did_you_mean, few, text};

/// Refuses a name that is not a metric of runs. `root` is the figure file.
pub(super) fn check_metric(name: &str, root: &Section<'_>) -> Result<(), InputError> {
    match metric_column(&Value::Text(name.to_owned())) {
        Ok(_) => Ok(()),
        Err(mismatch) => Err(root.error("claim", mismatch.what).allowed(mismatch.allowed)),
    }
}

/// A metric by name; `_mbps` means a `_bps` metric in millions.
pub(super) fn metric_column(value: &Value) -> Result<String, Mismatch> {
    let name = text(value)?;
    known_metric(&name).map(|_| name)
}

/// Index and factor of the metric with this name.
pub(super) fn known_metric(name: &str) -> Result<(usize, f64), Mismatch> {
    metric::resolve_column(name).ok_or_else(|| {
        let known: Vec<&str> = metric::ALL.iter().map(|metric| metric.name).collect();
        let hint = did_you_mean(name, known.iter().copied());
        Mismatch::new(format!("{name:?} is no metric{hint}"), few(name, &known, metric::PAGE))
    })
}
