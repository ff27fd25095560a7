//! Repeats the run of a stored result and compares the new result with the stored one.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::checksum;
use crate::error::RunsError;
use crate::metric;
use crate::record::RunSummary;
use crate::single::{Options, prepare_scenario};
use crate::store::{self, Provenance, Store};
use crate::sweep::Control;
use tacit_scenario::scheme::AS_WRITTEN;
use tacit_scenario::table::{TextTable, number_or_dash};
use tacit_scenario::{InputError, Scenario, bounded};

/// A stored result.
#[derive(Clone, Debug, PartialEq)]
struct Stored {
    scenario: String,
    scenario_text: String,
    scheme: Option<String>,
    clients: u32,
    seed: u64,
    version: String,
    digest: String,
    metrics: Vec<(String, Option<f64>)>,
    intact: Option<bool>,
}

/// Maximum size of the JSON of a run, in bytes.
const MAX_JSON: u64 = 1 << 26;

/// The outcome of repeating a stored run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replay {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scheme; null for the scenario as written.
    pub scheme: Option<String>,
    /// Number of clients.
    pub clients: u32,
    /// Seed.
    pub seed: u64,
    /// True if the digests are equal, and so are all metrics that both results have.
    pub same: bool,
    /// Whether the stored result matches its checksum; null if it has none.
    pub intact: Option<bool>,
    /// Version of the program that created the stored result.
    pub stored_version: String,
    /// Version of this program.
    pub version: String,
    /// Digest of the stored result.
    pub stored_digest: String,
    /// Digest of the new run.
    pub digest: String,
    /// Metrics that differ.
    pub differences: Vec<Difference>,
}

/// A metric whose value has changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its name.
    pub metric: String,
    /// The stored value.
    pub stored: Option<f64>,
    /// The new value.
    pub now: Option<f64>,
}

/// Repeats the run of a stored result. The result may be the output of `tacit run --json`, or a row, counted from 1, of
/// the runs in a results directory or its `runs.parquet`. The row may be omitted if there is only one.
///
/// # Errors
/// If there is no such result, it has no provenance, or the run fails.
pub fn replay(path: &Path, row: Option<usize>) -> Result<Replay, RunsError> {
    let stored = read(path, row)?;
    let source = format!("{} in {}", stored.scenario, path.display());
    let scenario =
        Scenario { name: stored.scenario.clone(), ..Scenario::parse_stored(&source, &stored.scenario_text)? };
    let options = Options {
        scenario: stored.scenario.clone(),
        scheme: stored.scheme.clone(),
        clients: Some(stored.clients),
        seed: stored.seed,
        ..Options::default()
    };
    // Without a cache, because a cached result would prove nothing.
    let single = prepare_scenario(scenario, &options, |_| {})?.run(Control::unattended())?;
    let now: Vec<_> = single.metrics.named().collect();
    let differs = |(name, stored): &(String, Option<f64>)| {
        let (_, now) = now.iter().find(|(known, _)| known == name)?;
        let bits = |value: Option<f64>| value.map(f64::to_bits);
        let difference = Difference { metric: name.clone(), stored: *stored, now: *now };
        (bits(*stored) != bits(*now)).then_some(difference)
    };
    let differences: Vec<Difference> = stored.metrics.iter().filter_map(differs).collect();
    Ok(Replay {
        same: stored.digest == single.digest && differences.is_empty(),
        intact: stored.intact,
        scenario: stored.scenario,
        scheme: stored.scheme,
        clients: stored.clients,
        seed: stored.seed,
        stored_version: stored.version,
        version: crate::VERSION.to_owned(),
        stored_digest: stored.digest,
        digest: single.digest,
        differences,
    })
}

fn read(path: &Path, row: Option<usize>) -> Result<Stored, RunsError> {
    if path.is_dir() {
        return read_row(path, row);
    }
    match path.extension().and_then(|end| end.to_str()) {
        Some("json") => {
            if row.is_some() {
                return Err(InputError::new("--row", "JSON of a run has no rows").allowed("no --row").into());
            }
            read_json(path)
        }
        Some(_) if path.file_name().is_some_and(|name| name == store::RUNS || name == store::RECORD) => {
            read_row(path.parent().unwrap_or(Path::new("")), row)
        }
        _ => Err(InputError::new(path.display(), "not a result of runs")
            .allowed("output of tacit run --json, in a file that ends in .json; a directory of results, or its runs.parquet")
            .into()),
    }
}

fn read_json(path: &Path) -> Result<Stored, RunsError> {
    let bytes = bounded::read(path, MAX_JSON).map_err(RunsError::io(path))?.ok_or_else(|| {
        let what = format!("more than {MAX_JSON} bytes are no result of one run");
        InputError::new(path.display(), what).allowed("output of tacit run --json")
    })?;
    let value: Value = serde_json::from_slice(&bytes).map_err(RunsError::store(path))?;
    let missing = |key: &str| {
        InputError::new(path.display(), format!("no {key:?} in it")).allowed("output of tacit run --json")
    };
    let text = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| missing(key))
    };
    let whole = |key: &str| value.get(key).and_then(Value::as_u64).ok_or_else(|| missing(key));
    let provenance = value.get("provenance").ok_or_else(|| missing("provenance"))?;
    let metrics = value.get("metrics").and_then(Value::as_object).ok_or_else(|| missing("metrics"))?;
    Ok(Stored {
        scenario: text(&value, "scenario")?,
        scenario_text: text(provenance, "scenario_text")?,
        scheme: value.get("scheme").and_then(Value::as_str).map(str::to_owned),
        clients: u32::try_from(whole("clients")?).map_err(|_| missing("clients"))?,
        seed: whole("seed")?,
        version: text(provenance, "version")?,
        digest: text(&value, "digest")?,
        metrics: metrics.iter().map(|(name, value)| (name.clone(), value.as_f64())).collect(),
        intact: checksum::is_intact(&value),
    })
}

fn read_row(directory: &Path, row: Option<usize>) -> Result<Stored, RunsError> {
    let (provenance, records) = Store::existing(directory).read()?;
    let rows = records.len();
    let allowed = || format!("1 to {rows}");
    let index = match row {
        Some(row) => row
            .checked_sub(1)
            .filter(|index| *index < rows)
            .ok_or_else(|| InputError::new("--row", format!("{row} is out of range")).allowed(allowed()))?,
        None if rows == 1 => 0,
        None => {
            return Err(InputError::new("--row", format!("{} has {rows} runs", directory.display()))
                .allowed(allowed())
                .into());
        }
    };
    // The index has been checked against the number of records.
    Ok(Stored::new(&provenance, &records[index]))
}

impl Stored {
    fn new(provenance: &Provenance, record: &RunSummary) -> Self {
        let label = &record.label;
        let metrics =
            metric::ALL.iter().map(|metric| metric.name.to_owned()).zip(record.metrics.iter().copied());
        Self {
            scenario: label.scenario.clone(),
            scenario_text: record.scenario_text.as_ref().to_owned(),
            scheme: Some(label.scheme.clone()).filter(|name| !name.is_empty() && name != AS_WRITTEN.name),
            clients: label.clients,
            seed: label.seed,
            version: provenance.version.clone(),
            digest: record.digest.clone(),
            metrics: metrics.collect(),
            // The record was verified when it was read.
            intact: Some(true),
        }
    }
}

impl Replay {
    /// The replay as text: `same`, or the differences.
    pub fn to_text(&self) -> String {
        let scheme = self.scheme.as_deref().unwrap_or("as written");
        let clients = tacit_scenario::table::count(self.clients.into(), "client");
        let run = format!("{} ({scheme}), {clients}, seed {}", self.scenario, self.seed);
        let changed = match self.intact {
            Some(false) => {
                "  the stored result was changed after it was written: it does not fit its checksum\n"
            }
            _ => "",
        };
        if self.same {
            return format!("{run}: same, digest {}\n{changed}", self.digest);
        }
        let mut text = format!(
            "{run}: differs\n{changed}  stored  digest {}, tacit {}\n  now     digest {}, tacit {}\n",
            self.stored_digest, self.stored_version, self.digest, self.version
        );
        if !self.differences.is_empty() {
            let mut table = TextTable::new(&[["metric"], ["stored"], ["now"]]);
            for difference in &self.differences {
                table.push(vec![
                    difference.metric.clone(),
                    number_or_dash(difference.stored, 6),
                    number_or_dash(difference.now, 6),
                ]);
            }
            text.push('\n');
            text.push_str(&table.render());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::plan::{Plan, SweepPoint};
    use crate::single::prepare;
    use crate::sweep;

    const SHORT: [&str; 2] = ["run.duration=300ms", "run.measure-from=100ms"];

    fn json(directory: &Path) -> (std::path::PathBuf, Value) {
        let options = Options {
            scenario: "wlan-11n-150".into(),
            assignments: SHORT.map(String::from).to_vec(),
            scheme: Some("hack-more-data".into()),
            clients: Some(2),
            seed: 5,
            ..Options::default()
        };
        let single = prepare(&options).unwrap().run(Control::unattended()).unwrap();
        (directory.join("run.json"), serde_json::to_value(&single).unwrap())
    }

    #[test]
    fn a_run_replays_from_its_json() {
        let directory = tempfile::tempdir().unwrap();
        let (path, value) = json(directory.path());
        fs::write(&path, value.to_string()).unwrap();
        let replayed = replay(&path, None).unwrap();
        assert!(replayed.same && replayed.intact == Some(true), "{replayed:?}");
        assert!(replayed.to_text().contains("same, digest"), "{}", replayed.to_text());
    }

    #[test]
    fn a_run_of_the_scenario_as_it_is_written_replays() {
        let directory = tempfile::tempdir().unwrap();
        let scenario = Arc::new(Scenario::load("wlan-11n-150", &SHORT.map(String::from)).unwrap());
        let mut plan = Plan::default();
        plan.push(&scenario, &AS_WRITTEN, 1, SweepPoint { x: Some(1.0), best_of: None }, 1).unwrap();
        let store = Store::open(directory.path()).unwrap();
        let runs = sweep::run(&plan, Some(&store), Control::unattended()).unwrap();
        store.finish(&Provenance::default(), &runs).unwrap();
        let replayed = replay(directory.path(), None).unwrap();
        assert!(replayed.same && replayed.scheme.is_none(), "{replayed:?}");
    }

    #[test]
    fn differences_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let (path, mut value) = json(directory.path());
        value["digest"] = "0123456789abcdef".into();
        value["metrics"]["fairness"] = 0.25.into();
        value["provenance"]["version"] = "0.0.1 (older)".into();
        fs::write(&path, value.to_string()).unwrap();
        let replayed = replay(&path, None).unwrap();
        assert!(!replayed.same);
        assert_eq!(replayed.differences.len(), 1);
        assert_eq!(
            (replayed.differences[0].metric.as_str(), replayed.differences[0].stored),
            ("fairness", Some(0.25))
        );
        assert!(replayed.to_text().contains("0.0.1 (older)"));
        assert_eq!(replayed.intact, Some(false));
        assert!(replayed.to_text().contains("changed after it was written"));
        // Without a checksum, integrity is unknown.
        value["provenance"].as_object_mut().unwrap().remove("checksum");
        fs::write(&path, value.to_string()).unwrap();
        assert_eq!(replay(&path, None).unwrap().intact, None);
    }

    #[test]
    fn endless_files_are_read_to_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let endless = directory.path().join("run.json");
        std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
        let error = replay(&endless, None).unwrap_err().to_string();
        assert!(error.contains("bytes are no result of one run"), "{error}");
        std::os::unix::fs::symlink("/dev/zero", directory.path().join(store::RECORD)).unwrap();
        let error = replay(directory.path(), None).unwrap_err().to_string();
        assert!(error.contains("no regular file"), "{error}");
    }
}
