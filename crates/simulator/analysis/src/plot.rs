//! A metric of each scheme along a swept key: `--plot`, and the first pictures of a sweep's report.

use std::collections::{BTreeMap, BTreeSet};

use tacit_runs::RunsError;
use tacit_runs::aggregate::{Column, Mean};
use tacit_runs::batches::{Directory, quantity};
use tacit_runs::metric;
use tacit_runs::record::RunSummary;
use tacit_scenario::InputError;
use tacit_scenario::input::did_you_mean;
use tacit_scenario::table::count;

use crate::compare::Comparison;
use crate::first_seen;
use crate::report::sweep::{Sweep, SweepRow};

/// The option of the command line, in messages.
const OPTION: &str = "--plot";
/// The key of an axis of client counts, as in figures.
const CLIENTS: &str = "clients";

/// What to plot: a metric, and the key along the x axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    /// A column, see [`metric::resolve_column`].
    column: String,
    key: String,
}

/// The mean of the metric over the seeds at one place of a sweep.
struct Point<'a> {
    /// The assignments of the place.
    at: &'a [String],
    scheme: &'a str,
    clients: u32,
    mean: Mean,
}

/// The values of a plot, as runs of a sweep yield them.
#[derive(Debug)]
pub struct Collected {
    plot: Plot,
    column: Column,
    /// Index in `groups` by place, scheme and client count.
    known: BTreeMap<(Vec<String>, String, u32), usize>,
    groups: Vec<(Vec<String>, String, u32, Vec<f64>)>,
}

impl Collected {
    /// Adds runs at the place with these assignments.
    pub fn add(&mut self, at: &[String], runs: &[RunSummary]) {
        for run in runs {
            let Some(value) = self.column.value(run) else { continue };
            let key = (at.to_vec(), run.label.scheme.clone(), run.label.clients);
            let index = *self.known.entry(key.clone()).or_insert(self.groups.len());
            if index == self.groups.len() {
                self.groups.push((key.0, key.1, key.2, Vec::new()));
            }
            // The group exists, because it was added above if it was missing.
            self.groups[index].3.push(value);
        }
    }

    /// The curves of a sweep of `scenario`.
    ///
    /// # Errors
    /// If no run has a value of the metric.
    pub fn sweep(&self, scenario: &str) -> Result<Sweep, InputError> {
        let point = |(at, scheme, clients, values): &'_ (Vec<String>, String, u32, Vec<f64>)| {
            Mean::from_values(values.iter().copied()).map(|mean| (at.clone(), scheme.clone(), *clients, mean))
        };
        let means: Vec<_> = self.groups.iter().filter_map(point).collect();
        if means.is_empty() {
            return Err(InputError::new(
                OPTION,
                format!("no run of {scenario} has a value of {}", self.plot.column),
            ));
        }
        let points = means.iter().map(|(at, scheme, clients, mean)| Point {
            at,
            scheme,
            clients: *clients,
            mean: *mean,
        });
        Ok(self.plot.sweep(scenario, &points.collect::<Vec<_>>()))
    }
}

impl Plot {
    /// Goodput along `key`.
    fn goodput(key: &str) -> Self {
        Self { column: metric::column_for_readers("goodput_bps"), key: key.to_owned() }
    }

    /// Parses `METRIC:KEY`, or `METRIC` in a sweep of one key. `places` are the assignments at each place of the sweep,
    /// `clients` its client counts.
    ///
    /// # Errors
    /// If there is no such metric, or the key is not swept.
    pub fn parse(words: &str, places: &[Vec<String>], clients: &[u32]) -> Result<Self, InputError> {
        let (name, key) =
            words.split_once(':').map_or((words, None), |(name, key)| (name.trim(), Some(key.trim())));
        let metric = metric_named(name)?;
        let keys = swept(places.iter().map(Vec::as_slice), clients);
        let key = match (key, &keys[..]) {
            (None, [only]) => only.clone(),
            (Some(key), keys) if keys.iter().any(|known| known == key) => key.to_owned(),
            (key, keys) => {
                let what = match key {
                    Some(key) => format!("{key} is not swept"),
                    None => format!("{} keys are swept", keys.len()),
                };
                let allowed = keys.iter().map(|key| format!("{name}:{key}")).collect::<Vec<_>>();
                return Err(match allowed.is_empty() {
                    true => InputError::new(OPTION, what).allowed("a key with several values in --sweep"),
                    false => InputError::new(OPTION, what).allowed(allowed.join(", ")),
                });
            }
        };
        Ok(Self { column: metric::column_for_readers(metric), key })
    }

    /// An empty collection of its values.
    pub fn collected(self) -> Collected {
        let column = Column::named(&self.column).expect("parse takes only metrics");
        Collected { plot: self, column, known: BTreeMap::new(), groups: Vec::new() }
    }

    /// The curves through `points` of a sweep of `scenario`.
    fn sweep(&self, scenario: &str, points: &[Point<'_>]) -> Sweep {
        let places: Vec<&[String]> = points.iter().map(|point| point.at).collect();
        let axis = Axis::new(&self.key, &places);
        let counts: BTreeSet<u32> = points.iter().map(|point| point.clients).collect();
        let row = |point: &Point<'_>| {
            let others =
                point.at.iter().filter(|set| key_and_value(set).0 != self.key && is_varied(&places, set));
            let clients =
                (self.key != CLIENTS && counts.len() > 1).then(|| count(point.clients.into(), "client"));
            let setting: Vec<String> = clients.into_iter().chain(others.cloned()).collect();
            SweepRow {
                scheme: point.scheme.to_owned(),
                setting: setting.join(", "),
                x: if self.key == CLIENTS { point.clients.into() } else { axis.position(point.at) },
                best_of: None,
                seeds: point.mean.count,
                mean: point.mean.mean,
                ci95: point.mean.ci95,
            }
        };
        let rows = points.iter().map(row).collect();
        let (name, unit) = name_and_unit(&self.column);
        Sweep {
            title: format!("{} over {}", name.replace('_', " "), self.key),
            x_label: axis.label,
            x_names: axis.names,
            y_label: label(&name.replace('_', " "), unit),
            ..Sweep::from_rows(scenario, &self.column, rows)
        }
    }
}

/// The plot of a stored sweep.
///
/// # Errors
/// If the request names no metric or no swept key, or the sweep cannot be read.
pub fn plot_directory(words: &str, directory: &Directory) -> Result<Sweep, RunsError> {
    let sweep = directory.sweep();
    let mut values = Plot::parse(words, &sweep.assignments(), sweep.clients())?.collected();
    for place in directory.places() {
        let place = place?;
        values.add(&place.at, &place.runs);
    }
    Ok(values.sweep(sweep.scenario_name())?)
}

/// Goodput along each swept key, of comparisons that are one sweep; empty if they are not.
pub(crate) fn from_comparisons(comparisons: &[&Comparison]) -> Vec<Sweep> {
    let Some(first) = comparisons.first() else { return Vec::new() };
    if comparisons.iter().any(|other| other.scenario != first.scenario || other.at.is_empty()) {
        return Vec::new();
    }
    let points = || {
        comparisons.iter().flat_map(|comparison| {
            comparison.rows.iter().map(|row| Point {
                at: &comparison.at,
                scheme: &row.scheme,
                clients: row.clients,
                mean: Mean {
                    count: row.seeds,
                    mean: row.goodput_bps_mean / 1e6,
                    ci95: row.goodput_bps_ci95.map(|ci95| ci95 / 1e6),
                },
            })
        })
    };
    let keys = swept(comparisons.iter().map(|comparison| comparison.at.as_slice()), &[]);
    keys.iter().map(|key| Plot::goodput(key).sweep(&first.scenario, &points().collect::<Vec<_>>())).collect()
}

/// Keys with several values, in the order of the command line.
fn swept<'a>(places: impl Iterator<Item = &'a [String]>, clients: &[u32]) -> Vec<String> {
    let places: Vec<&[String]> = places.collect();
    let sets = places.first().copied().unwrap_or_default();
    let varied = sets.iter().filter(|set| is_varied(&places, set));
    let mut keys: Vec<String> = varied.map(|set| key_and_value(set).0.to_owned()).collect();
    if clients.len() > 1 && !keys.iter().any(|key| key == CLIENTS) {
        keys.push(CLIENTS.to_owned());
    }
    keys
}

/// Whether other places have another value of the key in `set`.
fn is_varied(places: &[&[String]], set: &str) -> bool {
    let (key, value) = key_and_value(set);
    places.iter().any(|at| value_of(at, key) != value)
}

fn key_and_value(set: &str) -> (&str, &str) {
    set.split_once('=').map_or((set, ""), |(key, value)| (key.trim(), value.trim()))
}

fn value_of<'a>(at: &'a [String], key: &str) -> &'a str {
    at.iter().map(|set| key_and_value(set)).find(|(known, _)| *known == key).map_or("", |(_, value)| value)
}

/// The metric with this name. The name without its unit suffices if no other metric has it.
fn metric_named(name: &str) -> Result<&'static str, InputError> {
    let all = || metric::ALL.iter().map(|metric| metric.name);
    if let Some((place, _)) = metric::resolve_column(name) {
        return Ok(metric::ALL[place].name);
    }
    let mut short = all().filter(|known| name_and_unit(known).0 == name);
    if let (Some(only), None) = (short.next(), short.next()) {
        return Ok(only);
    }
    let hint = did_you_mean(name, all().chain(all().map(|known| name_and_unit(known).0)));
    Err(InputError::new(OPTION, format!("no metric {name:?}{hint}"))
        .allowed("the metrics of docs/use/results.md, such as goodput or queue_delay_p95"))
}

/// Ends of columns' names, and how axes show their units. The first that fits counts.
const UNITS: [(&str, &str); 10] = [
    ("_per_s", "/s"),
    ("_mbps", "Mb/s"),
    ("_bps", "b/s"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_kb", "kB"),
    ("_bytes", "B"),
    ("_dbm", "dBm"),
    ("_percent", "%"),
];

/// A column's name without its unit, and the unit on axes.
fn name_and_unit(column: &str) -> (&str, &'static str) {
    let found = UNITS.iter().find_map(|(end, unit)| Some((column.strip_suffix(end)?, *unit)));
    found.unwrap_or((column, ""))
}

/// Name and unit of an axis.
fn label(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

/// The x axis: the places of a swept key.
struct Axis {
    key: String,
    label: String,
    /// The values as names, if they are not numbers with one unit.
    names: Vec<String>,
    /// Whether values as written have units of one kind, but not all the same one.
    is_si: bool,
}

impl Axis {
    fn new(key: &str, places: &[&[String]]) -> Self {
        let values = first_seen(places.iter().map(|at| value_of(at, key)));
        let one = |unit: &dyn Fn(&str) -> Option<String>| {
            let mut units = values.iter().map(|value| unit(value));
            let first = units.next().flatten()?;
            units.all(|unit| unit.as_ref() == Some(&first)).then_some(first)
        };
        let key = key.to_owned();
        if key == CLIENTS {
            return Self { label: key.clone(), key, names: Vec::new(), is_si: false };
        }
        if let Some(unit) = one(&|value| Some(split(value)?.1.to_owned())) {
            return Self { label: label(&key, &unit), key, names: Vec::new(), is_si: false };
        }
        if let Some(suffix) = one(&|value| Some(quantity(value)?.1.to_owned())) {
            let label = label(&key, name_and_unit(&suffix).1);
            return Self { label, key, names: Vec::new(), is_si: true };
        }
        Self { label: key.clone(), key, names: values.into_iter().map(str::to_owned).collect(), is_si: false }
    }

    /// Position on the axis of the place with these assignments.
    fn position(&self, at: &[String]) -> f64 {
        let value = value_of(at, &self.key);
        if let Some(place) = self.names.iter().position(|name| name == value) {
            return place as f64;
        }
        let number =
            if self.is_si { quantity(value).map(|(number, _)| number) } else { split(value).map(|(x, _)| x) };
        number.unwrap_or(0.0)
    }
}

/// Number and unit of a quantity as written.
fn split(value: &str) -> Option<(f64, &str)> {
    quantity(value)?;
    let end =
        value.find(|letter: char| !matches!(letter, '0'..='9' | '.' | '-' | '_')).unwrap_or(value.len());
    Some((value[..end].replace('_', "").parse().ok()?, value[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(values: &[&str]) -> Vec<Vec<String>> {
        values.iter().map(|value| vec![format!("wired.delay={value}"), "tcp.sack=true".to_owned()]).collect()
    }

    #[test]
    fn a_plot_is_named_by_metric_and_swept_key() {
        let swept = places(&["1 ms", "5 ms"]);
        let parse = |words: &str, clients: &[u32]| Plot::parse(words, &swept, clients);
        let goodput = Plot { column: "goodput_mbps".into(), key: "wired.delay".into() };
        for words in ["goodput", "goodput:wired.delay", "goodput_bps:wired.delay", "goodput_mbps"] {
            assert_eq!(parse(words, &[1]).unwrap(), goodput, "{words}");
        }
        assert_eq!(parse("queue_delay_p95:clients", &[1, 4]).unwrap().column, "queue_delay_p95_ms");
        for (words, clients, expected) in [
            ("godput", &[1][..], "no metric \"godput\", did you mean \"goodput\"?"),
            ("goodput:tcp.sack", &[1], "tcp.sack is not swept; allowed: goodput:wired.delay"),
            ("goodput", &[1, 4], "2 keys are swept; allowed: goodput:wired.delay, goodput:clients"),
        ] {
            let error = parse(words, clients).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let error = Plot::parse("goodput", &places(&["1 ms"]), &[1]).unwrap_err().to_string();
        assert!(error.contains("a key with several values in --sweep"), "{error}");
    }

    #[test]
    fn an_axis_has_numbers_where_the_values_are_numbers_of_one_kind() {
        let axis = |values: &[&str]| {
            let places = places(values);
            let places: Vec<&[String]> = places.iter().map(Vec::as_slice).collect();
            let axis = Axis::new("wired.delay", &places);
            let positions: Vec<f64> = places.iter().map(|at| axis.position(at)).collect();
            (axis.label, positions)
        };
        assert_eq!(axis(&["1 ms", "20ms"]), ("wired.delay (ms)".into(), vec![1.0, 20.0]));
        assert_eq!(axis(&["500 us", "5 ms"]), ("wired.delay (s)".into(), vec![0.0005, 0.005]));
        assert_eq!(axis(&["5", "7"]), ("wired.delay".into(), vec![5.0, 7.0]));
        assert_eq!(axis(&["none", "5 ms", "none"]), ("wired.delay".into(), vec![0.0, 1.0, 0.0]));
    }
}
