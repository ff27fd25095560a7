//! The record of a finished run: flat, with only what the result files contain.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use tacit_between::hack;
use tacit_packet::units::{Duration, HostId};
use tacit_scenario::RunSpec;
use tacit_sim::{RunOutcome, Setup};

use crate::air::Ppdu;
use crate::application::{ApplicationRecord, application_records};
use crate::hop_record::{HopRecord, hop_records};
use crate::identity::RunId;
use crate::metric;
use crate::station::{StationRecord, station_records};
use crate::track::TrackRecord;

/// Identifies a run within a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scheme; empty for the scenario as written.
    pub scheme: String,
    /// Number of clients.
    pub clients: u32,
    /// Position on the sweep's axis, if any.
    pub x: Option<f64>,
    /// Value of the key that the sweep optimises, if any.
    #[serde(default)]
    pub best_of: Option<f64>,
    /// Seed.
    pub seed: u64,
}

impl Label {
    /// The label of the run of `spec`.
    pub fn for_run(spec: &RunSpec) -> Self {
        Self {
            scenario: spec.subject.scenario().name.clone(),
            scheme: spec.subject.scheme().name.to_owned(),
            clients: spec.clients,
            x: spec.x,
            best_of: spec.best_of,
            seed: spec.seed,
        }
    }
}

/// A finished run without its parts. This is all that comparisons, figures and reports need, and small enough to have
/// many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Hash of everything the run depends on; see [`crate::identity`].
    pub id: String,
    /// Its label.
    pub label: Label,
    /// The scenario as TOML, before applying the scheme. Together with the label it suffices to repeat the run. Runs
    /// share it.
    #[serde(default)]
    pub scenario_text: Arc<str>,
    /// Version and commit of the program that simulated it.
    #[serde(default)]
    pub version: Arc<str>,
    /// Hash of its event trace.
    pub digest: String,
    /// Length of the measured window in seconds.
    pub measured_s: f64,
    /// One value per [`metric::ALL`]; those that apply are stored by name.
    #[serde(
        serialize_with = "metric::by_name::serialize_present",
        deserialize_with = "metric::by_name::deserialize"
    )]
    pub metrics: Vec<Option<f64>>,
}

/// A finished run with its parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run itself.
    #[serde(flatten)]
    pub run: RunSummary,
    /// Its flows.
    pub flows: Vec<FlowRecord>,
    /// The programs that feed some of the flows.
    #[serde(default)]
    pub applications: Vec<ApplicationRecord>,
    /// The hops, one record per direction.
    #[serde(default)]
    pub hops: Vec<HopRecord>,
    /// The stations of each channel, access point first.
    #[serde(default)]
    pub stations: Vec<StationRecord>,
    /// Its samples.
    pub series: Vec<SampleRecord>,
    /// The frames on the air, for runs that are inspected frame by frame.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ppdus: Vec<Ppdu>,
    /// The state of a flow over time, for runs that are inspected in detail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub track: Vec<TrackRecord>,
}

/// Results of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Number of the flow.
    pub flow: u32,
    /// Source and destination, and the number of the flow between them if there are several.
    #[serde(default)]
    pub name: String,
    /// Number of the sending host.
    pub source: u32,
    /// Number of the receiving host.
    pub sink: u32,
    /// Payload bits per second in the measured window.
    pub goodput_bps: f64,
    /// Payload bits per second from its start to its last byte, including start-up.
    pub transfer_goodput_bps: f64,
    /// Bytes delivered in the whole run.
    pub delivered_bytes: u64,
    /// When its source starts.
    #[serde(default)]
    pub started_s: f64,
    /// Time at which the sink had received everything, for flows of a fixed size.
    pub completed_s: Option<f64>,
    /// Flow completion time: from its start to `completed_s`.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Data packets that the source retransmitted, for connections.
    pub retransmitted_segments: Option<u64>,
    /// Retransmission timeouts of the source, for connections.
    pub rtos: Option<u64>,
    /// Data packets that the source sent, for connections.
    pub data_segments_sent: Option<u64>,
    /// Packets with only an acknowledgment that the sink sent, for connections.
    pub acks_sent: Option<u64>,
    /// Counters of the TCP/HACK drivers about this flow, in both directions and over the whole run; null if there are
    /// no drivers.
    #[serde(flatten, serialize_with = "or_nulls")]
    pub hack: Option<hack::FlowCounters>,
}

/// Serialises the fields of `value`, or nulls if it is `None`.
fn or_nulls<T: Serialize + Default, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if let Some(value) = value {
        return value.serialize(serializer);
    }
    let mut fields = serde_json::to_value(T::default()).map_err(S::Error::custom)?;
    fields.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(|field| *field = Value::Null);
    fields.serialize(serializer)
}

/// One sample of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleRecord {
    /// Time in seconds.
    pub at_s: f64,
    /// Number of the flow.
    pub flow: u32,
    /// Bytes delivered since the start.
    pub delivered_bytes: u64,
    /// Congestion window in bytes; 0 for UDP.
    pub congestion_window_bytes: u64,
    /// Smoothed round-trip time in microseconds; 0 for UDP.
    pub smoothed_rtt_us: u64,
}

impl RunRecord {
    /// Creates the record of `outcome`, which results from `setup`, of the run `id` of `spec`.
    pub fn new(id: RunId, spec: &RunSpec, setup: &Setup, outcome: &RunOutcome) -> Self {
        let run = RunSummary {
            id: id.to_string(),
            label: Label::for_run(spec),
            scenario_text: spec.subject.scenario().text.clone(),
            version: crate::VERSION.into(),
            digest: digest_text(outcome.digest),
            measured_s: outcome.measured.as_secs_f64(),
            metrics: metric::all_of(outcome),
        };
        Self {
            run,
            flows: flow_records(setup, outcome),
            applications: application_records(outcome),
            hops: hop_records(setup, outcome),
            stations: station_records(outcome),
            series: outcome
                .series
                .iter()
                .map(|point| SampleRecord {
                    at_s: point.at.as_nanos() as f64 / 1e9,
                    flow: point.flow.0,
                    delivered_bytes: point.delivered_total.0,
                    congestion_window_bytes: point.congestion_window.0,
                    smoothed_rtt_us: point.smoothed_rtt.as_micros(),
                })
                .collect(),
            ppdus: Vec::new(),
            track: Vec::new(),
        }
    }
}

/// Maximum length of a scheme's name that is accepted, in characters.
const MAX_SCHEME_CHARACTERS: usize = 64;
/// Largest number that is accepted as a metric or axis position. Charts rely on it.
pub(crate) const MAX_VALUE: f64 = 1e18;

impl RunSummary {
    /// True if names and numbers are within the limits of real runs.
    pub(crate) fn is_plausible(&self) -> bool {
        let places = [Some(self.measured_s), self.label.x, self.label.best_of];
        self.label.scheme.chars().count() <= MAX_SCHEME_CHARACTERS
            && places.iter().chain(&self.metrics).flatten().all(|value| value.abs() <= MAX_VALUE)
    }

    /// The run with the label and the scenario of `spec`: sweeps that share a run may label it differently.
    #[must_use]
    pub(crate) fn labelled(self, spec: &RunSpec) -> Self {
        Self { label: Label::for_run(spec), scenario_text: spec.subject.scenario().text.clone(), ..self }
    }

    /// The metric with this name; `None` if it is unknown or does not apply to this run.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.get(metric::position(name)?).copied().flatten()
    }
}

/// A digest in its standard text form.
pub fn digest_text(digest: u64) -> String {
    format!("{digest:016x}")
}

/// The flows of `outcome`, which results from `setup`.
fn flow_records(setup: &Setup, outcome: &RunOutcome) -> Vec<FlowRecord> {
    // Per pair of hosts: the number of flows, and the number already named.
    let mut counts: BTreeMap<(HostId, HostId), [usize; 2]> = BTreeMap::new();
    for flow in &outcome.flows {
        counts.entry((flow.source, flow.sink)).or_default()[0] += 1;
    }
    let mut name = |source: HostId, sink: HostId| {
        let [all, named] = counts.entry((source, sink)).or_default();
        *named += 1;
        let host = |host: HostId| setup.hosts.get(host.0 as usize).map_or("?", String::as_str);
        let number = if *all > 1 { format!(" #{named}") } else { String::new() };
        format!("{} to {}{number}", host(source), host(sink))
    };
    let mut record = |flow: &tacit_sim::record::FlowOutcome| FlowRecord {
        flow: flow.flow.0,
        name: name(flow.source, flow.sink),
        source: flow.source.0,
        sink: flow.sink.0,
        goodput_bps: flow.goodput_bps(outcome.measured),
        transfer_goodput_bps: flow.transfer_goodput_bps(),
        delivered_bytes: flow.delivered_total.0,
        started_s: flow.started_at.as_nanos() as f64 / 1e9,
        completed_s: flow.completed_at.map(|at| at.as_nanos() as f64 / 1e9),
        duration_s: flow.completion_time().map(Duration::as_secs_f64),
        retransmitted_segments: flow.sender.map(|end| end.packets_retransmitted),
        rtos: flow.sender.and_then(|end| end.timeouts),
        data_segments_sent: flow.sender.map(|end| end.data_packets_sent),
        acks_sent: flow.receiver.map(|end| end.acks_sent),
        hack: flow.hack,
    };
    outcome.flows.iter().map(&mut record).collect()
}
