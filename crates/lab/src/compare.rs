//! Schemes side by side on the same scenario and the same draws.

mod text;

use std::path::PathBuf;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use tacit_link::wifi::AirtimeUse;

use crate::error::{InputError, LabError};
use crate::metric;
use crate::plan::{self, Plan};
use crate::record::RunRecord;
use crate::scenario::{MAX_CLIENTS, MAX_SEEDS, Scenario};
use crate::scheme::{self, Role, Scheme};
use crate::stats::Mean;
use crate::store::{Provenance, Store};
use crate::sweep::{self, Control};

pub(crate) use text::{airtime_label, gain, goodput};

/// The scenario compared when nobody names one.
pub const DEFAULT_SCENARIO: &str = "wlan-11n-150";
/// Most runs of one comparison.
const MAX_RUNS: usize = 1_000_000;

/// What to compare.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Scenario by name or path.
    pub scenario: String,
    /// `--set` assignments.
    pub assignments: Vec<String>,
    /// Client counts; none means the scenario's.
    pub clients: Vec<u32>,
    /// Schemes by name; none means those compared by default.
    pub schemes: Vec<String>,
    /// Seeds; `None` means the scenario's.
    pub seeds: Option<u32>,
    /// Make it short: see [`Scenario::load_quick`].
    pub quick: bool,
    /// Where results are kept; `None` keeps nothing.
    pub directory: Option<PathBuf>,
}

/// The outcome of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the scenario.
    pub scenario: String,
    /// One per client count and scheme: by client count, then in the order of the scheme table.
    pub rows: Vec<Row>,
    /// Where it comes from.
    #[serde(skip)]
    pub provenance: Provenance,
    /// Length of the measured window of each run in seconds.
    #[serde(skip)]
    pub measured_s: f64,
}

/// One scheme at one client count, averaged over seeds. Fields without meaning for a scenario, such
/// as airtime on a wire, are null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the scheme.
    pub scheme: String,
    /// Clients.
    pub clients: u32,
    /// Runs averaged over.
    pub seeds: usize,
    /// Payload delivered in order per second, all flows, in bits.
    pub goodput_bps_mean: f64,
    /// Half-width of its 95 % confidence interval over the seeds.
    pub goodput_bps_ci95: Option<f64>,
    /// Fraction by which the mean exceeds that of stock.
    pub gain_over_stock: Option<f64>,
    /// Half-width of the 95 % confidence interval of the gain, from pairs of equal seeds.
    pub gain_over_stock_ci95: Option<f64>,
    /// Fraction of what saturating UDP carries.
    pub share_of_udp: Option<f64>,
    /// Pure TCP ACKs on the air per second, retransmissions included.
    pub tcp_acks_on_air_per_s: Option<f64>,
    /// Channel accesses per second in which two or more stations sent at once.
    pub collisions_per_s: Option<f64>,
    /// Retransmitted MPDUs per second.
    pub retries_per_s: Option<f64>,
    /// Fraction of MPDU transmissions that were retransmissions.
    pub retry_share: Option<f64>,
    /// MPDUs per PPDU of data.
    pub ampdu_mean: Option<f64>,
    /// Fractions of the channel's time.
    pub airtime: Option<AirtimeShares>,
    /// Wait in the busiest station's queue, the access point's for downloads: median.
    pub queue_delay_p50_us: Option<f64>,
    /// The same: 95th percentile.
    pub queue_delay_p95_us: Option<f64>,
    /// Segments sent again among those sent.
    pub tcp_retransmitted_share: Option<f64>,
    /// Jain's index of the flows' goodput.
    pub fairness: Option<f64>,
}

/// Fractions of the channel's time by use; they add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AirtimeShares(pub [f64; AirtimeUse::ALL.len()]);

impl Serialize for AirtimeShares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (what, share) in AirtimeUse::ALL.iter().zip(self.0) {
            map.serialize_entry(what.name(), &share)?;
        }
        map.end()
    }
}

/// Runs a comparison, and keeps its results where a directory is given.
///
/// # Errors
/// On input that is not allowed, a failed run, an interruption, or a directory that cannot be written.
pub fn compare(options: &Options, control: Control<'_>) -> Result<Comparison, LabError> {
    let load = if options.quick { Scenario::load_quick } else { Scenario::load };
    let scenario = load(&options.scenario, &options.assignments)?;
    let schemes = scheme::select("--schemes", &options.schemes)?;
    let clients = client_counts(options, &scenario)?;
    let seeds = options.seeds.unwrap_or(scenario.run.seeds);
    if !(1..=MAX_SEEDS).contains(&seeds) {
        return Err(InputError::new("--seeds", format!("{seeds} is out of range"))
            .allowed(format!("1 to {MAX_SEEDS}"))
            .into());
    }
    let plan = plan(&scenario, &schemes, &clients, seeds)?;
    let store = options.directory.as_deref().map(Store::open).transpose()?;
    let records = sweep::run(&plan, store.as_ref(), control)?;
    let names: Vec<&str> = schemes.iter().map(|scheme| scheme.name).collect();
    let provenance = Provenance {
        scenario: scenario.name,
        description: scenario.description,
        scenario_text: scenario.text,
        seeds: format!("1 to {seeds}"),
        version: crate::VERSION.to_owned(),
        command: command(options, &clients, &names, seeds),
        schemes: names.join(","),
        digest: plan::combined_digest(&records),
        ..Provenance::default()
    };
    if let Some(store) = &store {
        store.write(&provenance, &records)?;
    }
    Ok(Comparison::from_records(provenance, &records))
}

fn client_counts(options: &Options, scenario: &Scenario) -> Result<Vec<u32>, InputError> {
    let mut clients =
        if options.clients.is_empty() { scenario.compare.clients.clone() } else { options.clients.clone() };
    if let Some(wrong) = clients.iter().find(|count| !(1..=MAX_CLIENTS).contains(*count)) {
        return Err(InputError::new("--clients", format!("{wrong} is out of range"))
            .allowed(format!("1 to {MAX_CLIENTS}")));
    }
    clients.sort_unstable();
    clients.dedup();
    Ok(clients)
}

/// The runs of the schemes asked for, and of the two yardsticks: gains and shares need them.
fn plan(
    scenario: &Scenario,
    shown: &[&'static Scheme],
    clients: &[u32],
    seeds: u32,
) -> Result<Plan, InputError> {
    let needed = |scheme: &&Scheme| {
        matches!(scheme.role, Role::Baseline | Role::Bound)
            || shown.iter().any(|asked| asked.name == scheme.name)
    };
    let schemes: Vec<&Scheme> = scheme::ALL.iter().filter(needed).collect();
    let runs = schemes.len() * clients.len() * seeds as usize;
    if runs > MAX_RUNS {
        return Err(InputError::new("--clients, --schemes and --seeds", format!("{runs} runs"))
            .allowed(format!("at most {MAX_RUNS}")));
    }
    let mut plan = Plan::default();
    for count in clients {
        for scheme in &schemes {
            plan.push(scenario, scheme, *count, None, seeds)?;
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

/// As a shell takes it.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

impl Comparison {
    /// Aggregates the runs of a comparison.
    pub fn from_records(provenance: Provenance, records: &[RunRecord]) -> Self {
        let mut clients: Vec<u32> = records.iter().map(|record| record.label.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        let mut names: Vec<&str> = provenance.schemes.split(',').collect();
        names.sort_by_key(|name| Scheme::position(name));
        let mut rows = Vec::new();
        for count in clients {
            let of = |name: &str| -> Vec<&RunRecord> {
                let matches =
                    |record: &&RunRecord| record.label.clients == count && record.label.scheme == name;
                records.iter().filter(matches).collect()
            };
            let baseline = of(Scheme::of_role(Role::Baseline).name);
            let bound = of(Scheme::of_role(Role::Bound).name);
            rows.extend(names.iter().filter_map(|name| Row::new(name, count, &of(name), &baseline, &bound)));
        }
        Self {
            scenario: provenance.scenario.clone(),
            rows,
            measured_s: records.first().map_or(0.0, |record| record.measured_s),
            provenance,
        }
    }

    /// The client counts compared, ascending.
    pub fn client_counts(&self) -> Vec<u32> {
        let mut counts: Vec<u32> = self.rows.iter().map(|row| row.clients).collect();
        counts.dedup();
        counts
    }

    /// The rows of one client count.
    pub fn rows_of(&self, clients: u32) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.clients == clients)
    }

    /// As tables of text, one per client count.
    pub fn to_text(&self) -> String {
        text::tables(self)
    }
}

const GOODPUT: &str = "goodput_bps";

fn mean_of(records: &[&RunRecord], metric: &str) -> Option<Mean> {
    Mean::of(records.iter().filter_map(|record| record.metric(metric)))
}

impl Row {
    fn new(
        scheme: &str,
        clients: u32,
        records: &[&RunRecord],
        baseline: &[&RunRecord],
        bound: &[&RunRecord],
    ) -> Option<Self> {
        let goodput = mean_of(records, GOODPUT)?;
        let over = |yardstick: &[&RunRecord]| {
            let mean = mean_of(yardstick, GOODPUT)?.mean;
            (mean > 0.0).then(|| goodput.mean / mean)
        };
        let mean = |metric| Some(mean_of(records, metric)?.mean);
        Some(Self {
            scheme: scheme.to_owned(),
            clients,
            seeds: goodput.count,
            goodput_bps_mean: goodput.mean,
            goodput_bps_ci95: goodput.ci95,
            gain_over_stock: over(baseline).map(|ratio| ratio - 1.0),
            gain_over_stock_ci95: paired_gain(records, baseline).and_then(|gain| gain.ci95),
            share_of_udp: over(bound),
            tcp_acks_on_air_per_s: mean("tcp_acks_on_air_per_s"),
            collisions_per_s: mean("collisions_per_s"),
            retries_per_s: mean("retries_per_s"),
            retry_share: mean("retry_share"),
            ampdu_mean: mean("ampdu_mean"),
            airtime: airtime_shares(records),
            queue_delay_p50_us: mean("queue_delay_p50_us"),
            queue_delay_p95_us: mean("queue_delay_p95_us"),
            tcp_retransmitted_share: mean("tcp_retransmitted_share"),
            fairness: mean("fairness"),
        })
    }
}

/// The mean of the gains of runs over the baseline's with the same seed.
fn paired_gain(records: &[&RunRecord], baseline: &[&RunRecord]) -> Option<Mean> {
    Mean::of(records.iter().filter_map(|record| {
        let twin = baseline.iter().find(|other| other.label.seed == record.label.seed)?;
        let (goodput, stock) = (record.metric(GOODPUT)?, twin.metric(GOODPUT)?);
        (stock > 0.0).then(|| goodput / stock - 1.0)
    }))
}

fn airtime_shares(records: &[&RunRecord]) -> Option<AirtimeShares> {
    let mut shares = [0.0; AirtimeUse::ALL.len()];
    for (share, what) in shares.iter_mut().zip(AirtimeUse::ALL) {
        *share = mean_of(records, &metric::airtime_name(what))?.mean;
    }
    Some(AirtimeShares(shares))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(schemes: &[&str]) -> Comparison {
        let options = Options {
            scenario: DEFAULT_SCENARIO.into(),
            assignments: vec!["run.duration=300ms".into(), "run.measure-from=100ms".into()],
            clients: vec![2, 1],
            schemes: schemes.iter().map(|&name| name.into()).collect(),
            seeds: Some(3),
            ..Options::default()
        };
        compare(&options, Control::unattended()).unwrap()
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
    fn the_table_names_every_scheme() {
        let text = comparison(&[]).to_text();
        for scheme in scheme::by_default() {
            assert!(text.contains(scheme.name), "{text}");
        }
    }
}
