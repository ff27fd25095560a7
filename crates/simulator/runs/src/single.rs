//! A single run, as simulated by `tacit run`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use tacit_link::AirFrame;
use tacit_link::wired::PipeCounters;
use tacit_packet::Packet;
use tacit_sim::capture::{self, AtomicFile, Recorder};
use tacit_sim::{Observer, RunOutcome, Setup};

use crate::application::{self, ApplicationRecord};
use crate::caveats;
use crate::checksum;
use crate::error::RunsError;
use crate::hop_record::HopRecord;
use crate::identity::run_id;
use crate::metric;
use crate::metric::AirtimeShares;
use crate::record::{FlowRecord, Label, RunRecord, RunSummary};
use crate::station::StationRecord;
use crate::sweep::{Control, Progress};
use crate::threshold::Reading;
use tacit_scenario::estimate::{Estimate, long_wait};
use tacit_scenario::table::{Page, TextTable, number, number_or_dash, percent, significant};
use tacit_scenario::{InputError, RunSpec, Scenario, Subject, scheme, warnings};

/// Options of the run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Scenario by name or path.
    pub scenario: String,
    /// `--set` assignments.
    pub assignments: Vec<String>,
    /// Name of the scheme; `None` for the scenario as written.
    pub scheme: Option<String>,
    /// Number of clients; `None` for that of the scenario.
    pub clients: Option<u32>,
    /// Seed of all random draws.
    pub seed: u64,
    /// Encode and decode every packet in transit.
    pub wire: bool,
    /// Shorten the run, see [`Scenario::load_quick`].
    pub quick: bool,
}

/// The outcome of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Single {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scheme; null for the scenario as written.
    pub scheme: Option<String>,
    /// Number of clients.
    pub clients: u32,
    /// Seed.
    pub seed: u64,
    /// Hash of the event trace, which is equal for equal runs.
    pub digest: String,
    /// Payload delivered in order in the measured window, over all flows, in bits per second.
    pub goodput_bps: f64,
    /// Length of the measured window in seconds.
    pub measured_s: f64,
    /// The flows.
    pub flows: Vec<FlowRecord>,
    /// The programs that feed flows, except those that only feed themselves.
    pub applications: Vec<ApplicationRecord>,
    /// The hops, one record per direction: wired links in both directions, then channels.
    pub hops: Vec<HopRecord>,
    /// The stations of each channel, access point first.
    pub stations: Vec<StationRecord>,
    /// Fractions of the channel's time; null without Wi-Fi.
    pub airtime: Option<AirtimeShares>,
    /// Every metric by name; null if it does not apply.
    pub metrics: Metrics,
    /// Warnings about settings without effect, and about bytes missing from the goodput.
    pub warnings: Vec<String>,
    /// Everything needed to repeat the run.
    pub provenance: RunProvenance,
}

/// The provenance of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunProvenance {
    /// Version and commit of the program.
    pub version: String,
    /// The command that repeats the run.
    pub command: String,
    /// The scenario as TOML, before applying the scheme.
    pub scenario_text: Arc<str>,
    /// BLAKE3 of the result as JSON without spaces, computed with an empty string in this field.
    pub checksum: String,
}

/// Every metric of a run, in the order of [`metric::ALL`].
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics(Vec<Option<f64>>);

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        metric::by_name::serialize(&self.0, serializer)
    }
}

impl Single {
    /// Every metric by name, for evaluating conditions.
    pub fn readings(&self) -> Vec<Reading> {
        metric::ALL
            .iter()
            .zip(&self.metrics.0)
            .map(|(metric, value)| Reading::new(metric.name, *value))
            .collect()
    }
}

/// Callback that receives the simulated time reached.
pub type Reached<'a> = &'a mut (dyn FnMut(Duration) + Send);

/// A run that is ready to be simulated.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The simulator's configuration.
    pub setup: Setup,
    /// Warnings about settings without effect.
    pub warnings: Vec<String>,
    spec: RunSpec,
}

/// Loads the scenario and builds the run.
///
/// # Errors
/// If any input is not allowed.
pub fn prepare(options: &Options) -> Result<Prepared, RunsError> {
    prepare_changed(options, |_| {})
}

/// Loads the scenario and builds the run after applying the scheme and then `change`. No command can express these
/// changes, so results must not be cached.
///
/// # Errors
/// Same as [`prepare`].
pub fn prepare_changed(options: &Options, change: impl FnOnce(&mut Scenario)) -> Result<Prepared, RunsError> {
    let mut prepared = prepare_scenario(load(options)?, options, change)?;
    Estimate::for_setup(&prepared.setup).check()?;
    let RunSpec { subject, clients, .. } = &prepared.spec;
    let warnings_of_options =
        warnings::of_assignments(&options.scenario, &options.assignments, &[subject.scheme()], *clients);
    prepared.warnings.splice(..0, warnings_of_options);
    Ok(prepared)
}

/// Loads the scenario that the options name.
pub(crate) fn load(options: &Options) -> Result<Scenario, RunsError> {
    let (scenario, assignments) = (&options.scenario, &options.assignments);
    Ok(match options.quick {
        true => {
            let clients = options
                .clients
                .map_or_else(|| Ok(Scenario::load(scenario, assignments)?.clients), Ok::<_, RunsError>)?;
            Scenario::load_quick(scenario, assignments, &[clients])?
        }
        false => Scenario::load(scenario, assignments)?,
    })
}

/// Builds the run of `scenario` with the other options.
pub(crate) fn prepare_scenario(
    scenario: Scenario,
    options: &Options,
    change: impl FnOnce(&mut Scenario),
) -> Result<Prepared, RunsError> {
    let scheme = options.scheme.as_deref().map(|name| scheme::find("--scheme", name)).transpose()?;
    let clients = scenario.run_count(options.clients)?;
    let subject = Subject::new(Arc::new(scenario), scheme.unwrap_or(&scheme::AS_WRITTEN)).changed_by(change);
    let spec = RunSpec { wire: options.wire, ..RunSpec::new(Arc::new(subject), clients, options.seed) };
    let setup = spec.setup()?;
    Ok(Prepared { warnings: warnings::of_setup(&setup), setup, spec })
}

impl Prepared {
    /// The scenario before applying the scheme.
    pub fn scenario(&self) -> &Scenario {
        self.spec.subject.scenario()
    }

    /// Number of clients.
    pub fn clients(&self) -> u32 {
        self.spec.clients
    }

    /// Simulated duration of the run, if [`Prepared::run_watched`] reports progress, which it does with Wi-Fi.
    pub fn watched_length(&self) -> Option<Duration> {
        let length = Duration::from_nanos(self.setup.duration.as_nanos());
        Some(length).filter(|_| !self.setup.bss.is_empty())
    }

    /// Name of the scenario, and the setup of the run.
    pub fn into_parts(self) -> (String, Setup) {
        (self.spec.subject.scenario().name.clone(), self.setup)
    }

    /// Simulates the run without creating a record. `bench` measures this function.
    ///
    /// # Errors
    /// If the run fails.
    pub fn simulate(&self) -> Result<RunOutcome, RunsError> {
        tacit_sim::run(&self.setup).map_err(|source| self.failed(source))
    }

    /// Simulates the run, unless its result is in the cache of `control`.
    ///
    /// # Errors
    /// If the run fails.
    pub fn run(&self, control: Control<'_>) -> Result<Single, RunsError> {
        self.run_watched(control, None)
    }

    /// Simulates the run, unless its result is in the cache of `control`. `reached`, if given, is called with the time
    /// of each frame.
    ///
    /// # Errors
    /// If the run fails.
    pub fn run_watched(
        &self,
        control: Control<'_>,
        reached: Option<Reached<'_>>,
    ) -> Result<Single, RunsError> {
        Ok(self.single(self.run_recorded(control, reached)?))
    }

    /// Like [`Prepared::run_watched`], but returns the full record, including samples.
    ///
    /// # Errors
    /// If the run fails.
    pub fn run_recorded(
        &self,
        control: Control<'_>,
        reached: Option<Reached<'_>>,
    ) -> Result<RunRecord, RunsError> {
        let id = run_id(&self.spec);
        if let Some(record) = control.cached(id) {
            return Ok(record);
        }
        if let Some(wait) = long_wait(Estimate::for_setup(&self.setup).packets) {
            (control.progress)(Progress::LongWait(&wait));
        }
        let outcome = match reached {
            Some(reached) => tacit_sim::run_observed(&self.setup, &mut Clock(reached))
                .map_err(|source| self.failed(source))?,
            None => self.simulate()?,
        };
        let record = self.record(&outcome);
        control.remember(id, &record);
        Ok(record)
    }

    /// Simulates the run, writes all frames to `path` as pcapng, and returns the record. The file is complete or not
    /// created at all. `reached` is called as in [`Prepared::run_watched`].
    ///
    /// # Errors
    /// If the run fails or has no Wi-Fi, or the file cannot be written.
    pub fn run_captured(&self, path: &Path, reached: Option<Reached<'_>>) -> Result<RunRecord, RunsError> {
        if self.setup.bss.is_empty() {
            return Err(InputError::new(
                "--pcap",
                format!("{} has no Wi-Fi to capture", self.label().scenario),
            )
            .allowed("scenarios with [wifi]")
            .into());
        }
        let failed = |error| not_captured(path, &error);
        let file = AtomicFile::create(path).map_err(failed)?;
        let recorder = Recorder::new(file, &self.setup).map_err(failed)?;
        let mut both = Both { recorder, clock: reached.map(Clock) };
        let outcome =
            tacit_sim::run_observed(&self.setup, &mut both).map_err(|source| self.failed(source))?;
        both.recorder.finish().map_err(failed)?;
        Ok(self.record(&outcome))
    }

    /// Simulates the run with an observer. Nothing is cached, because the result is what the observer records.
    ///
    /// # Errors
    /// If the run fails.
    pub fn run_observed(&self, observer: &mut dyn Observer) -> Result<(Single, RunOutcome), RunsError> {
        let outcome = tacit_sim::run_observed(&self.setup, observer).map_err(|source| self.failed(source))?;
        Ok((self.single(self.record(&outcome)), outcome))
    }

    fn failed(&self, source: tacit_sim::RunError) -> RunsError {
        RunsError::Run {
            run: format!("{}, seed {}", self.label().scenario, self.spec.seed),
            command: self.spec.command(),
            source,
        }
    }

    /// Like [`Label::for_run`], but with an empty scheme for a scenario as written.
    fn label(&self) -> Label {
        let scheme = self.spec.subject.scheme().argument().unwrap_or_default().to_owned();
        Label { scheme, ..Label::for_run(&self.spec) }
    }

    fn record(&self, outcome: &RunOutcome) -> RunRecord {
        let record = RunRecord::new(run_id(&self.spec), &self.spec, &self.setup, outcome);
        RunRecord { run: RunSummary { label: self.label(), ..record.run }, ..record }
    }

    /// The results in a record of this run.
    pub fn single(&self, record: RunRecord) -> Single {
        let RunSummary { digest, measured_s, metrics, .. } = record.run;
        let metrics = Metrics(metrics);
        let caveats = caveats::from_metrics(|name| metrics.get(name));
        let Label { scenario, scheme, clients, seed, .. } = self.label();
        let mut single = Single {
            scenario,
            scheme: Some(scheme).filter(|name| !name.is_empty()),
            clients,
            seed,
            digest,
            goodput_bps: metrics.get("goodput_bps").unwrap_or_default(),
            measured_s,
            flows: record.flows,
            applications: record.applications,
            hops: record.hops,
            stations: record.stations,
            airtime: AirtimeShares::from_metrics(|name| metrics.get(name)),
            metrics,
            warnings: self.warnings.iter().cloned().chain(caveats).collect(),
            provenance: RunProvenance {
                version: crate::VERSION.to_owned(),
                command: self.spec.command(),
                scenario_text: self.spec.subject.scenario().text.clone(),
                checksum: String::new(),
            },
        };
        single.provenance.checksum = checksum::compute(&single);
        single
    }
}

/// The error that a capture could not be written to `path`.
fn not_captured(path: &Path, error: &io::Error) -> RunsError {
    InputError::new("--pcap", format!("{}: {}", path.display(), capture::why(error))).into()
}

/// Captures frames and reports their times.
struct Both<'a> {
    recorder: Recorder,
    clock: Option<Clock<'a>>,
}

impl Observer for Both<'_> {
    fn on_air(&mut self, bss: usize, frame: &AirFrame<Packet>) {
        if let Some(clock) = &mut self.clock {
            clock.on_air(bss, frame);
        }
        self.recorder.on_air(bss, frame);
    }
}

/// Reports the times of frames.
struct Clock<'a>(Reached<'a>);

impl Observer for Clock<'_> {
    fn on_air(&mut self, _bss: usize, frame: &AirFrame<Packet>) {
        (self.0)(Duration::from_nanos(frame.at.as_nanos()));
    }
}

impl Metrics {
    /// Every metric with its name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, Option<f64>)> + '_ {
        metric::ALL.iter().map(|metric| metric.name).zip(self.0.iter().copied())
    }

    /// The metric with this name; `None` if it is unknown or does not apply to this run.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(metric::position(name)?).copied().flatten()
    }
}

impl Single {
    fn hop_table(&self) -> TextTable {
        let mut hops = TextTable::new(&[
            ["hop", ""],
            ["from", ""],
            ["to", ""],
            ["packets", "offered"],
            ["", "delivered"],
            ["", "dropped"],
            ["", "lost"],
            ["queueing", "p50, ms"],
            ["", "p95, ms"],
        ])
        .dropping([4, 7, 6]);
        // The access point's is the first of a channel.
        let access_point = self.hops.iter().position(|hop| hop.to.is_none());
        for (number_of_hop, hop) in self.hops.iter().enumerate() {
            let PipeCounters { offered, delivered, dropped, lost, .. } = hop.counters;
            let counts = [offered, delivered, dropped, lost];
            let delays_ms = [hop.queue_delays.p50_us, hop.queue_delays.p95_us].map(|us| us as f64 / 1e3);
            let several = if Some(number_of_hop) == access_point { "clients" } else { "ap, clients" };
            let to = hop.to.clone().unwrap_or_else(|| several.to_owned());
            let mut row = vec![hop.kind.to_owned(), hop.from.clone(), to];
            row.extend(counts.map(|count| count.to_string()));
            row.extend(delays_ms.map(|delay| number(delay, 2)));
            hops.push(row);
        }
        hops
    }

    /// As text: the flows, the hops, then the metrics that mean something here; in lines of at most `width` characters, where
    /// columns are left out that do not fit.
    pub fn to_text(&self, width: Option<usize>) -> String {
        let mut page = Page::new(width);
        page.line(self.headline());
        let scheme = self.scheme.as_deref().unwrap_or("as written");
        page.line(format!(
            "{} ({scheme}), seed {}, {} s measured, digest {}",
            self.scenario,
            self.seed,
            number(self.measured_s, 1),
            self.digest
        ));
        page.gap();
        for warning in &self.warnings {
            page.line(format!("warning: {warning}"));
        }
        page.gap();
        let mut flows = TextTable::new(&[
            ["flow"],
            ["from and to"],
            ["Mb/s"],
            ["start, s"],
            ["took, s"],
            ["segments"],
            ["again"],
            ["timeouts"],
            ["ACKs"],
        ])
        .dropping([3, 7, 5]);
        for flow in &self.flows {
            let whole = |count: Option<u64>| number_or_dash(count.map(|count| count as f64), 0);
            flows.push(vec![
                flow.flow.to_string(),
                flow.name.clone(),
                number(flow.goodput_bps / 1e6, 2),
                number(flow.started_s, 2),
                number_or_dash(flow.duration_s, 3),
                whole(flow.data_segments_sent),
                whole(flow.retransmitted_segments),
                whole(flow.rtos),
                whole(flow.acks_sent),
            ]);
        }
        page.table(&flows);
        page.gap();
        if !self.applications.is_empty() {
            page.line(application::to_text(&self.applications).trim_end());
            page.gap();
        }
        page.table(&self.hop_table());
        page.gap();
        let mut metrics = TextTable::new(&[["metric"], ["value"]]);
        for (metric, value) in metric::ALL.iter().zip(&self.metrics.0) {
            // A metric that does not apply to this run appears only in the JSON form.
            if let Some(value) = value {
                metrics.push(vec![metric.name.to_owned(), significant(*value)]);
            }
        }
        page.table(&metrics);
        page.name_missing();
        page.gap();
        page.line("the same again:");
        page.line(format!("  {}", self.provenance.command));
        page.finish()
    }

    /// The result in a sentence: goodput, by direction where there are two, the client with the least, and what is sent
    /// again.
    fn headline(&self) -> String {
        let megabits = |bps: f64| number(bps / 1e6, 2);
        let mut sentence = format!("{} Mb/s", megabits(self.goodput_bps));
        let metric = |name: &str| self.metrics.get(name);
        if let (Some(down), Some(up)) = (metric("download_goodput_bps"), metric("upload_goodput_bps")) {
            sentence.push_str(&format!(", {} down and {} up", megabits(down), megabits(up)));
        }
        if let Some(least) = metric("least_client_goodput_bps").filter(|_| self.clients > 1) {
            let mean = self.goodput_bps / f64::from(self.clients);
            sentence.push_str(&format!(
                "; a client has {} in the mean, the least {}",
                megabits(mean),
                megabits(least)
            ));
        }
        if let Some(again) = metric("tcp_retransmitted_share") {
            sentence.push_str(&format!("; {} of data packets sent again", percent(Some(again), 1)));
        }
        sentence + "."
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tacit_link::wifi::AirtimeUse;

    use super::*;

    /// The outcome of `scenario` with these assignments and the other options.
    pub(crate) fn simulate(scenario: &str, assignments: &[&str], options: Options) -> Single {
        let assignments = assignments.iter().map(|&text| text.to_owned()).collect();
        let options = Options { scenario: scenario.to_owned(), assignments, seed: 1, ..options };
        prepare(&options).unwrap().run(Control::unattended()).unwrap()
    }

    /// The counters of a run are consistent, flow by flow and station by station.
    #[test]
    fn the_accounts_of_flows_and_stations_agree() {
        let options =
            Options { scheme: Some("hack-more-data".into()), clients: Some(3), ..Options::default() };
        let single = simulate("wlan-11n-150", &["run.measure-from=0s", "run.duration=2s"], options);
        let [access_point, clients @ ..] = &single.stations[..] else { panic!("stations") };
        assert_eq!((clients.len(), single.flows.len()), (3, 3));
        for (client, flow) in clients.iter().zip(&single.flows) {
            let driver = client.hack.as_ref().unwrap();
            let counted = &driver.counters;
            assert_eq!(flow.sink, client.host);
            let of_flow = flow.hack.unwrap();
            assert_eq!(of_flow.native_acks, counted.native_acks);
            assert_eq!(of_flow.compressed_acks, counted.compressed_acks);
            assert_eq!(of_flow.compressed_bytes, counted.compressed_bytes);
            assert_eq!(of_flow.uncompressed_bytes, counted.uncompressed_bytes);
            // Waiting ACKs are in neither counter.
            let sent = counted.native_acks + counted.compressed_acks;
            assert!((0..=126).contains(&(flow.acks_sent.unwrap() - sent)), "{flow:?} {driver:?}");
            assert!(driver.compression_ratio.unwrap() > 5.0);
            assert!(client.counters.augmented_within_aifs <= client.counters.augmented_link_acks);
            assert!(client.counters.augmented_link_acks <= client.counters.link_acks);
        }
        let sent: u64 = access_point.ppdu_sizes.iter().zip(1..).map(|(ppdus, mpdus)| ppdus * mpdus).sum();
        assert_eq!(sent, access_point.counters.data_mpdus);
        assert_eq!(access_point.ppdu_sizes.iter().sum::<u64>(), access_point.counters.data_ppdus);
        assert!(access_point.queue_peak_packets <= 126, "the limit of a queue");
        let mean = access_point.queue_mean_packets;
        assert!((1.0..3.0 * 126.0).contains(&mean), "{mean} in three queues");
    }

    /// Even with data and ACKs from every station, neither mean exceeds the capacity of a PPDU, which is 42 full
    /// packets.
    #[test]
    fn aggregates_of_data_and_of_acks_are_told_apart() {
        let words = ["traffic.kind=both", "run.duration=2s", "run.measure-from=1s"];
        let single = simulate("wlan-11n-150", &words, Options::default());
        let mean = |name: &str| single.metrics.0[metric::position(name).unwrap()].unwrap();
        let (data, acks) = (mean("ampdu_mean"), mean("ack_ampdu_mean"));
        assert!((35.0..=64.0).contains(&data) && (1.0..=64.0).contains(&acks), "{data} and {acks}");
    }

    #[test]
    fn the_result_comes_first_by_direction_and_with_the_client_that_has_least() {
        let words = ["traffic.kind=both", "run.duration=2s", "run.measure-from=1s"];
        let single = simulate("wlan-11n-150", &words, Options { clients: Some(2), ..Options::default() });
        let text = single.to_text(Some(80));
        let metric = |name: &str| single.metrics.get(name).unwrap();
        let [down, up] = ["download_goodput_bps", "upload_goodput_bps"].map(metric);
        assert!((down + up - single.goodput_bps).abs() < 1.0 && down > 0.0 && up > 0.0, "{down} {up}");
        let directions = format!("{} down and {} up", number(down / 1e6, 2), number(up / 1e6, 2));
        let result = text.split("\n\n").next().unwrap().replace("\n  ", " ");
        assert!(result.contains(&directions) && result.contains("in the mean, the least "), "{text}");
        assert!(metric("least_client_goodput_bps") <= single.goodput_bps / 2.0, "{text}");
        let is_long = |line: &&str| line.chars().count() > 80 && !line.trim_start().starts_with("tacit ");
        assert_eq!(text.lines().find(is_long), None, "{text}");
    }

    #[test]
    fn json_has_the_promised_keys() {
        let single = simulate("wlan-11n-150", &[], Options::default());
        let json = serde_json::to_value(&single).unwrap();
        for key in ["digest", "goodput_bps", "flows", "hops", "stations", "airtime"] {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert_eq!(json["airtime"].as_object().unwrap().len(), AirtimeUse::ALL.len());
    }
}
