//! Compares schemes in the same scenario with the same random draws.

mod completions;
mod headline;
mod mix;
mod receiver;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tacit_link::wifi::AirtimeUse;
use tacit_runs::RunsError;
use tacit_runs::aggregate::{self, Column, Gain, Group};
use tacit_runs::batches::StoredPlace;
use tacit_runs::metric::{AirtimeShares, airtime_name};
use tacit_runs::plan::{self, Plan, SweepPoint};
use tacit_runs::record::{Label, RunSummary};
use tacit_runs::store::{Provenance, Store};
use tacit_runs::sweep::{self, Control, Progress};
use tacit_runs::threshold::Reading;
use tacit_scenario::scheme::{self, Role, Scheme};
use tacit_scenario::table::count;
use tacit_scenario::{InputError, MAX_SEEDS, Scenario, ScenarioError, brought, explain, quoted, warnings};

pub use completions::CompletionTimes;
pub use mix::Mix;
use receiver::{Twin, name_in_2014};
pub use text::overview;
pub(crate) use text::{adoption_table, airtime_label, beside, gain, goodput, numbers_table, who_switches};

/// The scenario compared by default.
pub const DEFAULT_SCENARIO: &str = "wlan-11n-150";
/// Maximum number of runs in one comparison.
const MAX_RUNS: usize = 1_000_000;
/// Settings that affect headline results but that a scenario's description does not mention. Those that exist in a
/// scenario are listed with its results.
const CONDITIONS: [&str; 5] =
    ["tcp.profile", "tcp.congestion", "wifi.capture", "wifi.protection", "wifi.ap-queue"];

/// Options of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Scenario by name or path.
    pub scenario: String,
    /// `--set` assignments.
    pub assignments: Vec<String>,
    /// Further assignments: those of the sweep point.
    pub at: Vec<String>,
    /// Client counts; if empty, those of the scenario.
    pub clients: Vec<u32>,
    /// Names of schemes; if empty, those compared by default.
    pub schemes: Vec<String>,
    /// Number of seeds; `None` for that of the scenario.
    pub seeds: Option<u32>,
    /// Shorten the runs, see [`Scenario::load_quick`].
    pub quick: bool,
    /// Directory of the results; `None` stores nothing.
    pub directory: Option<PathBuf>,
}

/// The outcome of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the scenario.
    pub scenario: String,
    /// The assignments of the sweep point.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// One row per client count and scheme, ordered by client count, then as in the scheme table.
    pub rows: Vec<Row>,
    /// Results with the receiver of 2014, which sends one ACK per 2 segments: the baseline and one TCP/HACK scheme for
    /// each client count. Empty if no TCP/HACK scheme is compared, or if the scenario's receiver is not Linux's.
    pub receiver_of_2014: Vec<Row>,
    /// Settings that affect the results but are not in the scenario's description, as TOML: `wifi.capture = false`.
    pub conditions: Vec<String>,
    /// Warnings about settings without effect, and about bytes missing from the goodput.
    pub warnings: Vec<String>,
    /// The provenance of the results.
    #[serde(skip)]
    pub provenance: Provenance,
    /// Completion times of fixed-size flows in the order of the rows; empty if nothing is stored.
    #[serde(rename = "flow_completion_cdfs", skip_serializing_if = "Vec::is_empty")]
    pub completions: Vec<CompletionTimes>,
    /// Length of the measured window of each run in seconds.
    #[serde(skip)]
    pub measured_s: f64,
}

/// Declares the columns that are means over the seeds of the metric with the same name.
macro_rules! means {
    ($($(#[$meta:meta])* $metric:ident,)*) => {
        /// Means of metrics over the seeds; `None` if a metric does not apply.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct Means {
            $($(#[$meta])* pub $metric: Option<f64>,)*
        }

        impl Means {
            fn from_metrics(mean: impl Fn(&str) -> Option<f64>) -> Self {
                Self { $($metric: mean(stringify!($metric)),)* }
            }
        }
    };
}

means! {
    /// Pure ACKs of any transport transmitted per second, including retransmissions.
    tcp_acks_on_air_per_s,
    /// Packets with only an acknowledgment that receivers sent in any way, divided by the data packets that reached
    /// them.
    acks_per_data_packet,
    /// Channel accesses per second in which at least two stations transmitted at once.
    collisions_per_s,
    /// Retransmitted MPDUs per second.
    retries_per_s,
    /// Fraction of MPDU transmissions that were retransmissions.
    retry_share,
    /// MPDUs per data PPDU.
    ampdu_mean,
    /// Median queueing delay at the busiest station, which is the access point for downloads.
    queue_delay_p50_us,
    /// 95th percentile of the queueing delay at the busiest station, which is the access point for downloads.
    queue_delay_p95_us,
    /// 95th percentile of the end-to-end delay, without Wi-Fi only.
    one_way_delay_p95_us,
    /// Retransmitted data packets of connections as a fraction of those sent.
    tcp_retransmitted_share,
    /// Jain's index of the flows' goodput.
    fairness,
    /// Goodput of the flows to clients.
    download_goodput_bps,
    /// Goodput of the flows from clients.
    upload_goodput_bps,
    /// Goodput of the client that has least.
    least_client_goodput_bps,
    /// Number of clients that use the scheme, if only some do.
    adopters,
    /// Mean goodput of these clients. With stock, of the same clients before they switch.
    adopter_goodput_bps,
    /// Goodput of the one of them that has least.
    adopter_least_goodput_bps,
    /// Retransmitted data packets of their connections as a fraction of those sent.
    adopter_retransmitted_share,
    /// Median completion time of their fixed-size flows, in seconds.
    adopter_completion_p50_s,
    /// Mean goodput of the other clients, which keep stock.
    other_goodput_bps,
    /// Goodput of the one of the others that has least.
    other_least_goodput_bps,
    /// Retransmitted data packets of their connections as a fraction of those sent.
    other_retransmitted_share,
    /// Median completion time of their fixed-size flows, in seconds.
    other_completion_p50_s,
    /// Number of fixed-size flows that completed.
    flows_completed,
    /// Median completion time of such flows, from their start until the sink had received everything, in seconds.
    flow_completion_p50_s,
    /// 95th percentile of this completion time, in seconds.
    flow_completion_p95_s,
    /// 99th percentile of this completion time, in seconds.
    flow_completion_p99_s,
}

/// One scheme at one client count, averaged over seeds. Fields that do not apply to a scenario, such as airtime on a
/// wire, are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Name of the scheme.
    pub scheme: String,
    /// Number of clients.
    pub clients: u32,
    /// Number of runs averaged.
    pub seeds: usize,
    /// Payload delivered in order, over all flows, in bits per second; of files from their start to their end.
    pub goodput_bps_mean: f64,
    /// Half-width of its 95 % confidence interval over the seeds.
    pub goodput_bps_ci95: Option<f64>,
    /// Gain of the mean over that of stock, as a fraction; of files the median completion time of stock over its own, less
    /// one.
    pub gain_over_stock: Option<f64>,
    /// Half-width of the 95 % confidence interval of the gain, from pairs of equal seeds.
    pub gain_over_stock_ci95: Option<f64>,
    /// Gain of the clients that use the scheme, if only some do, over the same clients with stock, as a fraction.
    pub adopter_gain_over_stock: Option<f64>,
    /// Half-width of its 95 % confidence interval.
    pub adopter_gain_over_stock_ci95: Option<f64>,
    /// Gain of the other clients over themselves before anyone switched; negative for a loss.
    pub other_gain_over_stock: Option<f64>,
    /// Half-width of its 95 % confidence interval.
    pub other_gain_over_stock_ci95: Option<f64>,
    /// Fraction of the goodput of saturating UDP.
    pub share_of_udp: Option<f64>,
    /// Fractions of the channel's time.
    pub airtime: Option<AirtimeShares>,
    /// Means of metrics.
    #[serde(flatten)]
    pub means: Means,
}

impl Row {
    /// Its values with their names in JSON, for evaluating conditions.
    pub fn readings(&self) -> Vec<Reading> {
        let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(self) else { return Vec::new() };
        let number = |(name, value): (String, serde_json::Value)| match value {
            serde_json::Value::Number(number) => Some(Reading::new(name, number.as_f64())),
            serde_json::Value::Null => Some(Reading::new(name, None)),
            _ => None,
        };
        let mut readings: Vec<Reading> = fields.into_iter().filter_map(number).collect();
        readings.retain(|reading| reading.name != "airtime");
        let share = |at: usize| self.airtime.as_ref().map(|shares| shares.0[at]);
        let uses = AirtimeUse::ALL.into_iter().enumerate();
        readings.extend(uses.map(|(at, what)| Reading::new(airtime_name(what), share(at))));
        // A condition on goodput refers to the mean.
        readings.push(Reading::new("goodput_bps", Some(self.goodput_bps_mean)));
        readings
    }
}

/// Runs a comparison, and stores its results if a directory is given.
///
/// # Errors
/// If any input is not allowed, a run fails, the user interrupts it, or a directory cannot be written.
pub fn compare(options: &Options, control: Control<'_>) -> Result<Comparison, RunsError> {
    let all =
        Options { assignments: [options.assignments.as_slice(), &options.at].concat(), ..options.clone() };
    let scenario = Arc::new(load(&all)?);
    let schemes = scheme::select("--schemes", &all.schemes)?;
    let twin = Twin::find(&all, &scenario, &schemes)?;
    let (provenance, records, store) =
        make(&all, &scenario, &schemes, twin.as_ref(), all.directory.as_deref(), control)?;
    let comparison = Comparison::recorded(provenance, &records, store.as_ref())?;
    Ok(Comparison { at: options.at.clone(), ..comparison })
}

/// Executes the runs of a comparison without the receiver of 2014, and stores nothing.
///
/// # Errors
/// Same as [`compare`].
pub(crate) fn records(
    options: &Options,
    control: Control<'_>,
) -> Result<(Provenance, Vec<RunSummary>), RunsError> {
    let scenario = Arc::new(load(options)?);
    let schemes = scheme::select("--schemes", &options.schemes)?;
    let (provenance, records, _) = make(options, &scenario, &schemes, None, None, control)?;
    Ok((provenance, records))
}

/// Executes the runs of `scenario` with `schemes` and the reference schemes, and those of `twin`. Returns their provenance,
/// and the store that has them.
fn make(
    options: &Options,
    scenario: &Arc<Scenario>,
    schemes: &[&'static Scheme],
    twin: Option<&Twin>,
    directory: Option<&Path>,
    control: Control<'_>,
) -> Result<(Provenance, Vec<RunSummary>, Option<Store>), RunsError> {
    let clients = scenario.compared_counts(&options.clients)?;
    let seeds = options.seeds.unwrap_or(scenario.run.seeds);
    InputError::check_range("--seeds", seeds, 1..=MAX_SEEDS)?;
    let plan = plan(scenario, schemes, twin, &clients, seeds)?;
    let warnings = warned(options, &plan, schemes, control)?;
    // Opened after all input has been checked, so that invalid input leaves no directory behind.
    let store = directory.map(Store::open).transpose()?;
    let records = sweep::run(&plan, store.as_ref(), control)?;
    let provenance = provenance(options, scenario, schemes, (&clients, seeds), &warnings, &records)?;
    Ok((provenance, records, store))
}

/// The provenance of `records`, which are the runs of `scenario` with `schemes`, `clients` and `seeds`.
pub(crate) fn provenance(
    options: &Options,
    scenario: &Scenario,
    schemes: &[&'static Scheme],
    (clients, seeds): (&[u32], u32),
    warnings: &[String],
    records: &[RunSummary],
) -> Result<Provenance, ScenarioError> {
    let names: Vec<&str> = schemes.iter().map(|scheme| scheme.name).collect();
    Ok(Provenance {
        scenario: scenario.name.clone(),
        description: match options.at.as_slice() {
            [] => scenario.description.clone(),
            at => format!("{}; {}", scenario.description, at.join(", ")),
        },
        scenario_text: scenario.text.clone(),
        seeds: format!("1 to {seeds}"),
        version: tacit_runs::VERSION.to_owned(),
        command: command(options, clients, &names, seeds),
        schemes: names.join(","),
        digest: plan::combined_digest(records),
        conditions: conditions(options)?.join("\n"),
        warnings: warnings.join("\n"),
        ..Provenance::default()
    })
}

pub(crate) fn load(options: &Options) -> Result<Scenario, ScenarioError> {
    match options.quick {
        true => Scenario::load_quick(&options.scenario, &options.assignments, &options.clients),
        false => Scenario::load(&options.scenario, &options.assignments),
    }
}

/// Those of [`CONDITIONS`] that exist in the scenario.
fn conditions(options: &Options) -> Result<Vec<String>, ScenarioError> {
    let explained = explain::explain(&options.scenario, &options.assignments, None, &[])?;
    let condition = |key: &&str| {
        let setting = explained.settings.iter().find(|setting| setting.key == **key)?;
        Some(format!("{} = {}", setting.key, setting.value))
    };
    Ok(CONDITIONS.iter().filter_map(condition).collect())
}

/// Reports warnings about settings without effect on the runs of `plan`, and returns them without duplicates.
pub(crate) fn warned(
    options: &Options,
    plan: &Plan,
    schemes: &[&Scheme],
    control: Control<'_>,
) -> Result<Vec<String>, InputError> {
    let mut counts: Vec<u32> = plan.runs.iter().map(|run| run.clients).collect();
    counts.dedup();
    let most = counts.iter().copied().max().unwrap_or(1);
    let mut all = warnings::of_assignments(&options.scenario, &options.assignments, schemes, most);
    for count in counts {
        // Start and stop times of flows and the positions of clients do not depend on the scheme.
        let Some(run) = plan.runs.iter().find(|run| run.clients == count) else { continue };
        let more = warnings::of_setup(&run.setup()?);
        all.extend(more.into_iter().filter(|warning| !all.contains(warning)).collect::<Vec<_>>());
    }
    for warning in &all {
        (control.progress)(Progress::Warning(&format!("warning: {warning}")));
    }
    Ok(all)
}

/// Caveats about bytes missing from the goodput of groups of runs. Equal caveats for the same client count are merged.
fn caveats(groups: &[Group<'_>]) -> Vec<String> {
    let mut lines: Vec<(u32, String, Vec<&str>)> = Vec::new();
    for group in groups {
        let Some(label) = group.label() else { continue };
        for caveat in tacit_runs::caveats::from_metrics(|name| group.mean_of(name)) {
            let known =
                lines.iter_mut().find(|(clients, known, _)| (*clients, known) == (label.clients, &caveat));
            match known {
                Some((.., schemes)) => schemes.push(&label.scheme),
                None => lines.push((label.clients, caveat, vec![&label.scheme])),
            }
        }
    }
    let line = |(clients, caveat, mut schemes): (u32, String, Vec<&str>)| {
        schemes.dedup();
        format!("{}, {}: {caveat}", count(clients.into(), "client"), schemes.join(", "))
    };
    lines.into_iter().map(line).collect()
}

/// The runs of the schemes asked for, and of the two yardsticks: gains and shares need them.
fn plan(
    scenario: &Arc<Scenario>,
    shown: &[&'static Scheme],
    twin: Option<&Twin>,
    clients: &[u32],
    seeds: u32,
) -> Result<Plan, InputError> {
    let needed = |scheme: &&Scheme| {
        matches!(scheme.role, Role::Baseline | Role::Bound)
            || shown.iter().any(|asked| asked.name == scheme.name)
    };
    let schemes: Vec<&'static Scheme> = scheme::ALL.iter().chain(brought::all()).filter(needed).collect();
    let runs = (schemes.len() + twin.map_or(0, Twin::schemes)) * clients.len() * seeds as usize;
    if runs > MAX_RUNS {
        return Err(InputError::new("--clients, --schemes and --seeds", format!("{runs} runs"))
            .allowed(format!("at most {MAX_RUNS}")));
    }
    let mut plan = Plan::default();
    for count in clients {
        for scheme in &schemes {
            plan.push(scenario, scheme, *count, SweepPoint::default(), seeds)?;
        }
        if let Some(twin) = twin {
            twin.push(&mut plan, *count, seeds)?;
        }
    }
    Ok(plan)
}

fn command(options: &Options, clients: &[u32], schemes: &[&str], seeds: u32) -> String {
    let clients = clients.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let mut command = format!("tacit compare {} --clients {clients}", quoted(&options.scenario));
    command.push_str(&format!(" --schemes {} --seeds {seeds}", schemes.join(",")));
    for assignment in &options.assignments {
        command.push_str(&format!(" --set {}", quoted(assignment)));
    }
    if options.quick {
        command.push_str(" --quick");
    }
    command
}

impl Comparison {
    /// Aggregates the runs of a comparison.
    pub fn from_records(provenance: Provenance, records: &[RunSummary]) -> Self {
        let groups = aggregate::groups(records);
        let mut clients: Vec<u32> = records.iter().map(|record| record.label.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        let mut names: Vec<&str> = provenance.schemes.split(',').collect();
        names.sort_by_key(|name| Scheme::position(name));
        let (baseline, bound) = (Scheme::with_role(Role::Baseline).name, Scheme::with_role(Role::Bound).name);
        let twin = name_in_2014(&provenance.scenario);
        let mut rows = Vec::new();
        let mut receiver_of_2014 = Vec::new();
        for count in clients {
            let group = |scenario: &str, name: &str| {
                let is = |label: &Label| {
                    (label.clients, &*label.scenario, &*label.scheme) == (count, scenario, name)
                };
                groups.iter().find(|group| group.label().is_some_and(is)).cloned().unwrap_or_default()
            };
            let bound = group(&provenance.scenario, bound);
            let rows_in = |scenario: &str, names: &[&str]| -> Vec<Row> {
                let yardstick = group(scenario, baseline);
                let row = |name: &&str| Row::new(name, count, &group(scenario, name), &yardstick, &bound);
                names.iter().filter_map(row).collect()
            };
            rows.extend(rows_in(&provenance.scenario, &names));
            // The other scheme is compared with the baseline, whether the baseline is shown above or not.
            let others = names.iter().copied().filter(|name| *name != baseline);
            receiver_of_2014
                .extend(rows_in(&twin, &std::iter::once(baseline).chain(others).collect::<Vec<_>>()));
        }
        let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
        Self {
            scenario: provenance.scenario.clone(),
            at: Vec::new(),
            rows,
            receiver_of_2014,
            conditions: lines(&provenance.conditions),
            warnings: lines(&provenance.warnings).into_iter().chain(caveats(&groups)).collect(),
            completions: Vec::new(),
            measured_s: records.first().map_or(0.0, |record| record.measured_s),
            provenance,
        }
    }

    /// Aggregates the runs of a comparison, which completes the sweep in the store that has them.
    pub(crate) fn recorded(
        provenance: Provenance,
        records: &[RunSummary],
        store: Option<&Store>,
    ) -> Result<Self, RunsError> {
        store.map_or(Ok(()), |store| store.finish(&provenance, records))?;
        let mut comparison = Self::from_records(provenance, records);
        store.map_or(Ok(()), |store| comparison.take_completions(store, records))?;
        Ok(comparison)
    }

    /// Aggregates the runs of a sweep point.
    ///
    /// # Errors
    /// If this version cannot read its scenario.
    pub fn from_place(place: StoredPlace) -> Result<Self, RunsError> {
        let StoredPlace { at, provenance, runs } = place;
        let options = Options { scenario: provenance.scenario_text.to_string(), ..Options::default() };
        let conditions = conditions(&options)?.join("\n");
        Ok(Self { at, ..Self::from_records(Provenance { conditions, ..provenance }, &runs) })
    }

    /// The client counts in ascending order.
    pub fn client_counts(&self) -> Vec<u32> {
        let mut counts: Vec<u32> = self.rows.iter().map(|row| row.clients).collect();
        counts.dedup();
        counts
    }

    /// The rows for one client count.
    pub fn rows_of(&self, clients: u32) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.clients == clients)
    }

    /// The result in a sentence or two for each client count.
    pub fn headlines(&self) -> Vec<String> {
        headline::headlines(self)
    }

    /// The result in words, then tables, one per client count: in lines of at most `width` characters, where columns are left
    /// out that do not fit.
    pub fn to_text(&self, width: Option<usize>) -> String {
        text::tables(self, width)
    }
}

impl Row {
    /// The row for the runs of `scheme`; `None` if they have no goodput.
    pub(crate) fn new(
        scheme: &str,
        clients: u32,
        runs: &Group<'_>,
        baseline: &Group<'_>,
        bound: &Group<'_>,
    ) -> Option<Self> {
        let mean = |metric: &str| runs.mean_of(metric);
        let goodput = runs.mean(goodput_column(runs)?)?;
        // Both means use the same seeds, because some schemes may have more seeds.
        let twins = baseline.with_seeds_of(runs);
        let gain = gain_over(runs, &twins);
        let adopters = gain_of(runs, &twins, ["adopter_completion_p50_s", "adopter_goodput_bps"]);
        let others = gain_of(runs, &twins, ["other_completion_p50_s", "other_goodput_bps"]);
        Some(Self {
            scheme: scheme.to_owned(),
            clients,
            seeds: goodput.count,
            goodput_bps_mean: goodput.mean,
            goodput_bps_ci95: goodput.ci95,
            gain_over_stock: gain.map(|gain| gain.of_means),
            gain_over_stock_ci95: gain.and_then(|gain| gain.ci95),
            adopter_gain_over_stock: adopters.map(|gain| gain.of_means),
            adopter_gain_over_stock_ci95: adopters.and_then(|gain| gain.ci95),
            other_gain_over_stock: others.map(|gain| gain.of_means),
            other_gain_over_stock_ci95: others.and_then(|gain| gain.ci95),
            share_of_udp: share_of(runs, bound),
            airtime: AirtimeShares::from_metrics(mean),
            means: Means::from_metrics(mean),
        })
    }
}

/// The metric of files: how long they take.
const FILES: &str = "flow_completion_p50_s";

/// Whether the flows of a group are files that end.
pub(crate) fn are_files(group: &Group<'_>) -> bool {
    group.mean_of(FILES).is_some()
}

/// The goodput of a group. Where files end it counts only until they do: a window behind their end has none.
fn goodput_column(group: &Group<'_>) -> Option<Column> {
    Column::named(if are_files(group) { "transfer_goodput_bps" } else { "goodput_bps" })
}

/// Mean goodput of a group.
pub(crate) fn goodput_of(group: &Group<'_>) -> Option<f64> {
    Some(group.mean(goodput_column(group)?)?.mean)
}

/// The goodput of `group` as a fraction of that of `bound`.
pub(crate) fn share_of(group: &Group<'_>, bound: &Group<'_>) -> Option<f64> {
    let (goodput, bound) = (goodput_of(group)?, goodput_of(bound)?);
    (bound > 0.0).then(|| goodput / bound)
}

/// The gain of a group over another: of the first metric, a time, where both have it, else of the second.
fn gain_of(group: &Group<'_>, yardstick: &Group<'_>, [time, rate]: [&str; 2]) -> Option<Gain> {
    let speedup = Column::named(time).and_then(|time| group.speedup_over(yardstick, time));
    speedup.or_else(|| group.gain_over(yardstick, Column::named(rate)?))
}

/// The gain of a group over another: in the time that files take, or in goodput.
pub(crate) fn gain_over(group: &Group<'_>, yardstick: &Group<'_>) -> Option<Gain> {
    gain_of(group, yardstick, [FILES, "goodput_bps"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(schemes: &[&str]) -> Options {
        Options {
            scenario: DEFAULT_SCENARIO.into(),
            assignments: vec!["run.duration=300ms".into(), "run.measure-from=100ms".into()],
            clients: vec![2, 1],
            schemes: schemes.iter().map(|&name| name.into()).collect(),
            seeds: Some(3),
            ..Options::default()
        }
    }

    fn comparison(schemes: &[&str]) -> Comparison {
        compare(&options(schemes), Control::unattended()).unwrap()
    }

    #[test]
    fn a_sweep_compares_at_each_place_and_shows_all_in_one_table() {
        let at = |delay: &str| {
            let options = Options { at: vec![format!("wired.delay={delay}")], ..options(&["stock"]) };
            compare(&options, Control::unattended()).unwrap()
        };
        let (near, far) = (at("1 ms"), at("40 ms"));
        assert_eq!(near.at, ["wired.delay=1 ms"]);
        assert!(near.to_text(None).contains("; wired.delay=1 ms\n"), "{}", near.to_text(None));
        assert!(near.rows[0].goodput_bps_mean > far.rows[0].goodput_bps_mean);
        let all = overview(&[&near, &far]);
        assert!(all.contains("wired.delay=1 ms") && all.contains("wired.delay=40 ms"), "{all}");
        assert_eq!(all.lines().filter(|line| line.contains("wired.delay=")).count(), 4, "{all}");
    }

    #[test]
    fn rows_go_by_clients_then_scheme() {
        let comparison = comparison(&[]);
        let order: Vec<_> = comparison.rows.iter().map(|row| (row.clients, row.scheme.as_str())).collect();
        let names = || scheme::by_default().map(|scheme| scheme.name);
        assert_eq!(
            order,
            names().map(|name| (1, name)).chain(names().map(|name| (2, name))).collect::<Vec<_>>()
        );
    }

    #[test]
    fn the_baseline_gains_nothing_and_the_bound_is_all() {
        let comparison = comparison(&[]);
        for row in &comparison.rows {
            if row.scheme == "stock" {
                assert_eq!(row.gain_over_stock, Some(0.0));
                assert_eq!(row.gain_over_stock_ci95, Some(0.0));
            }
            if row.scheme == "udp" {
                assert_eq!(row.share_of_udp, Some(1.0));
            }
            let total: f64 = row.airtime.unwrap().0.iter().sum();
            assert!((total - 1.0).abs() < 1e-9, "{total}");
        }
    }

    #[test]
    fn yardsticks_are_run_though_not_shown() {
        let comparison = comparison(&["tcp-l8"]);
        assert_eq!(comparison.rows.len(), 2);
        assert!(
            comparison.rows.iter().all(|row| row.gain_over_stock.is_some() && row.share_of_udp.is_some())
        );
    }

    #[test]
    fn the_receiver_of_2014_stands_beside_that_of_today() {
        let comparison = comparison(&["hack-batch"]);
        let beside: Vec<_> = comparison
            .receiver_of_2014
            .iter()
            .map(|row| (row.clients, row.scheme.as_str(), row.seeds))
            .collect();
        assert_eq!(beside, [(1, "stock", 3), (1, "hack-batch", 3), (2, "stock", 3), (2, "hack-batch", 3)]);
        let text = comparison.to_text(None);
        let expected =
            "with the receiver of 2014 (tcp.profile = \"classic\", one ACK per 2 segments): stock ";
        assert_eq!(text.matches(expected).count(), 2, "{text}");
        // This is the scenario of the paper, run for run.
        let options = Options { scenario: "hack-2014-11n-150".into(), ..options(&["hack-batch", "stock"]) };
        let paper = compare(&options, Control::unattended()).unwrap();
        assert_eq!(paper.rows, comparison.receiver_of_2014);
        assert_eq!(paper.receiver_of_2014, [], "which needs nothing beside it");
    }

    #[test]
    fn only_hack_over_wifi_is_held_against_2014() {
        let beside = |scenario: &str, schemes: &[&str], set: &[&str]| {
            let mut options = Options { scenario: scenario.into(), seeds: Some(1), ..options(schemes) };
            options.assignments.extend(set.iter().map(|&text| text.to_owned()));
            compare(&options, Control::unattended()).unwrap().receiver_of_2014.len()
        };
        assert_eq!(beside("wlan-11a-54", &["hack-timer"], &[]), 4);
        assert_eq!(beside("wlan-11a-54", &["tcp-l8", "fastack"], &[]), 0);
        assert_eq!(beside("wlan-11a-54", &["hack-timer"], &["tcp.ack-policy=neqo"]), 0);
        assert_eq!(beside("wired-10", &["hack-timer"], &[]), 0);
    }

    #[test]
    fn a_headline_says_what_it_depends_on() {
        let text = comparison(&["stock"]).to_text(None);
        let conditions = "with tcp.profile = \"linux\", tcp.congestion = \"cubic\", wifi.capture = false, \
                          wifi.protection = \"none\", wifi.ap-queue = \"126 packets\"";
        assert!(text.lines().any(|line| line == conditions), "{text}");
        assert!(text.starts_with("1 client: ACKs cost "), "{text}");
        let wire = Options { scenario: "wired-10".into(), ..options(&["stock"]) };
        let wire = compare(&wire, Control::unattended()).unwrap();
        assert_eq!(wire.conditions, ["tcp.profile = \"linux\"", "tcp.congestion = \"cubic\""]);
    }

    #[test]
    fn ineffective_requests_are_warned_of_once() {
        let heard = std::sync::Mutex::new(Vec::new());
        let progress = |progress: Progress<'_>| {
            if let Progress::Warning(text) = progress {
                heard.lock().unwrap().push(text.to_owned());
            }
        };
        let mut options = options(&["stock", "tcp-l8"]);
        options.assignments.push("tcp.ack-every=4".into());
        options.assignments.push("clients.stagger=10ms".into());
        options.clients = vec![1, 3];
        let control = Control { progress: &progress, ..Control::unattended() };
        let comparison = compare(&options, control).unwrap();
        let [in_vain] = &comparison.warnings[..] else { panic!("{:?}", comparison.warnings) };
        assert!(
            in_vain.starts_with("--set tcp.ack-every=4 changes nothing under stock, tcp-l8"),
            "{in_vain}"
        );
        let expected: Vec<_> = comparison.warnings.iter().map(|text| format!("warning: {text}")).collect();
        assert_eq!(heard.into_inner().unwrap(), expected);
    }

    #[test]
    fn the_table_names_every_scheme_and_says_what_is_no_tcp() {
        let text = comparison(&[]).to_text(None);
        for scheme in scheme::by_default() {
            assert!(text.contains(scheme.name), "{text}");
            let is_described = text.contains(&format!("\n{}: {}\n", scheme.name, scheme.summary));
            assert_eq!(is_described, scheme.role == Role::Transport, "{text}");
        }
    }
}
