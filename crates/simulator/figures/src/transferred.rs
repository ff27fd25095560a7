//! Results of transfers: the runs of each curve and place, live and simulated, and which of them the machine disturbed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::measure::{Curve, Curves};
use tacit_runs::aggregate::median;

/// The results of a figure in the stored form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Transferred {
    pub points: Vec<Point>,
}

/// The runs of a curve at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Point {
    pub curve: String,
    pub variant: Option<String>,
    pub x: f64,
    /// The values of each run by column. Unavailable values are missing.
    pub runs: Vec<Row>,
    /// Why its claims are not judged.
    pub disturbed: Option<String>,
}

/// The values of a run by column.
pub(super) type Row = BTreeMap<String, f64>;

/// The available `values`, which are in the order of `columns`.
pub(super) fn row(columns: &[&str], values: impl IntoIterator<Item = Option<f64>>) -> Row {
    let named = columns.iter().zip(values);
    named
        .filter_map(|(name, value)| Some(((*name).to_owned(), value.filter(|value| value.is_finite())?)))
        .collect()
}

impl Transferred {
    /// The values of a column in the runs of a curve that have it.
    pub fn column(&self, curve: &str, column: &str) -> Vec<f64> {
        let points = self.points.iter().filter(|point| point.curve == curve);
        points.flat_map(|point| point.column(column)).collect()
    }

    /// The curves `names` of a variant, consisting of medians.
    pub fn curves(&self, columns: &[&str], names: Vec<String>, variant: Option<&str>) -> Curves {
        let curve = |name: String| {
            let is_own = |point: &&Point| point.variant.as_deref() == variant && point.curve == name;
            let measured = self.points.iter().filter(is_own);
            let mut points: Vec<_> = measured.map(|point| (point.x, point.medians(columns))).collect();
            points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            Curve { name, points, ..Curve::default() }
        };
        let curves = names.into_iter().map(curve).collect();
        Curves { columns: columns.iter().map(|name| (*name).to_owned()).collect(), curves }
    }
}

impl Point {
    /// A point of simulated runs, which nothing disturbs.
    pub fn simulated(curve: String, variant: Option<&str>, x: f64, runs: Vec<Row>) -> Self {
        Self { curve, variant: variant.map(str::to_owned), x, runs, disturbed: None }
    }

    /// The values of a column in the runs that have it.
    pub fn column(&self, name: &str) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.get(name).copied()).collect()
    }

    /// The median of each of `columns`.
    pub fn medians(&self, columns: &[&str]) -> Vec<Option<f64>> {
        columns.iter().map(|name| median(self.column(name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved;

    #[test]
    fn points_are_written_with_the_names_of_their_columns() {
        let columns = ["gain_percent", "ack_ratio", "stock_mbps", "hack_mbps"];
        let runs = vec![row(&columns, [Some(7.5), None, Some(1.0), None])];
        let disturbed = Some("busy".to_owned());
        let point = Point { curve: "live".into(), variant: None, x: 150.0, runs, disturbed };
        let results = Transferred { points: vec![point] };
        let json = saved::to_json("hack/live", &results).unwrap();
        let point = serde_json::json!({
            "curve": "live", "variant": null, "x": 150.0,
            "runs": [{"gain_percent": 7.5, "stock_mbps": 1.0}], "disturbed": "busy"
        });
        assert_eq!((&json["figure"], &json["points"][0]), (&"hack/live".into(), &point));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("points.json");
        std::fs::write(&path, json.to_string()).unwrap();
        assert_eq!(saved::read(&path).unwrap().results, results);
        // A former file format of gains.
        std::fs::write(&path, r#"{"figure":"hack/live","version":"0","curves":[],"slowed":[]}"#).unwrap();
        let error = saved::read(&path).err().unwrap().to_string();
        assert!(
            error.contains("missing field `points`") && error.contains("this version of tacit"),
            "{error}"
        );
    }
}
