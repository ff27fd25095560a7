//! A finished run as it is kept: flat, and without anything that is not in the files.

use serde::{Deserialize, Serialize};
use tacit_sim::{Outcome, Setup};

use crate::application::{ApplicationRecord, application_records};
use crate::hop_record::{HopRecord, hop_records};
use crate::metric;
use crate::station::{StationRecord, station_records};

/// Which run of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scheme; empty for the scenario as written.
    pub scheme: String,
    /// Clients.
    pub clients: u32,
    /// Place on the sweep's axis, where it has one.
    pub x: Option<f64>,
    /// Value of the key of which a sweep takes the best, where there is one.
    #[serde(default)]
    pub best_of: Option<f64>,
    /// Seed.
    pub seed: u64,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Hash of everything the run depends on; see [`crate::plan`].
    pub id: String,
    /// Which.
    pub label: Label,
    /// The scenario as TOML, before the scheme: with the label all it takes to make the run again.
    #[serde(default)]
    pub scenario_text: String,
    /// Hash of its event trace.
    pub digest: String,
    /// Length of the measured window in seconds.
    pub measured_s: f64,
    /// One per [`metric::ALL`].
    pub metrics: Vec<Option<f64>>,
    /// Its flows.
    pub flows: Vec<FlowRecord>,
    /// The programs that feed some of them.
    #[serde(default)]
    pub applications: Vec<ApplicationRecord>,
    /// The directions of each hop.
    #[serde(default)]
    pub hops: Vec<HopRecord>,
    /// The stations of each channel, the access point first.
    #[serde(default)]
    pub stations: Vec<StationRecord>,
    /// Its samples.
    pub series: Vec<SampleRecord>,
}

/// What became of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Number of the flow.
    pub flow: u32,
    /// Number of the sending host.
    pub source: u32,
    /// Number of the receiving host.
    pub sink: u32,
    /// Payload bits per second in the measured window.
    pub goodput_bps: f64,
    /// Payload bits per second from its start to its last octet, start-up included.
    pub transfer_goodput_bps: f64,
    /// Octets delivered in the whole run.
    pub delivered_bytes: u64,
    /// When the sink had everything, for flows of a fixed size.
    pub completed_s: Option<f64>,
    /// Segments the source sent again, for TCP.
    pub retransmitted_segments: Option<u64>,
    /// Retransmission timeouts of the source, for TCP.
    pub rtos: Option<u64>,
    /// Data segments the source sent, for TCP.
    pub data_segments_sent: Option<u64>,
    /// Pure ACKs the sink sent, for TCP.
    pub acks_sent: Option<u64>,
    /// ACKs that TCP/HACK drivers sent as packets; null where there are none. Like the next three of the
    /// whole run, both directions.
    pub native_acks: Option<u64>,
    /// ACKs that rode on link-layer ACKs, each counted once.
    pub compressed_acks: Option<u64>,
    /// Octets of those.
    pub compressed_octets: Option<u64>,
    /// Octets they would have had as IP packets.
    pub uncompressed_octets: Option<u64>,
}

/// One sample of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleRecord {
    /// When, in seconds.
    pub at_s: f64,
    /// Number of the flow.
    pub flow: u32,
    /// Octets delivered since the start.
    pub delivered_bytes: u64,
    /// Congestion window in octets; 0 for UDP.
    pub congestion_window_bytes: u64,
    /// Smoothed round-trip time in microseconds; 0 for UDP.
    pub smoothed_rtt_us: u64,
}

impl RunRecord {
    /// What is kept of `outcome`, which came of `setup`.
    pub fn new(id: String, label: Label, scenario_text: String, setup: &Setup, outcome: &Outcome) -> Self {
        Self {
            id,
            label,
            scenario_text,
            digest: digest_text(outcome.digest),
            measured_s: outcome.measured.as_secs_f64(),
            metrics: metric::ALL.iter().map(|metric| metric.of(outcome)).collect(),
            flows: flow_records(outcome),
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
        }
    }

    /// The metric called `name`; `None` where there is none or it has no meaning in this run.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.get(metric::position(name)?).copied().flatten()
    }
}

/// A digest as it is shown everywhere.
pub fn digest_text(digest: u64) -> String {
    format!("{digest:016x}")
}

/// The flows of `outcome`.
pub fn flow_records(outcome: &Outcome) -> Vec<FlowRecord> {
    let record = |flow: &tacit_sim::record::FlowOutcome| FlowRecord {
        flow: flow.flow.0,
        source: flow.source.0,
        sink: flow.sink.0,
        goodput_bps: flow.goodput_bps(outcome.measured),
        transfer_goodput_bps: flow.transfer_goodput_bps(),
        delivered_bytes: flow.delivered_total.0,
        completed_s: flow.completed_at.map(|at| at.as_nanos() as f64 / 1e9),
        retransmitted_segments: flow.sender.map(|tcp| tcp.segments_retransmitted),
        rtos: flow.sender.map(|tcp| tcp.timeouts),
        data_segments_sent: flow.sender.map(|tcp| tcp.data_segments_sent),
        acks_sent: flow.receiver.map(|tcp| tcp.acks_sent),
        native_acks: flow.hack.map(|hack| hack.native_acks),
        compressed_acks: flow.hack.map(|hack| hack.compressed_acks),
        compressed_octets: flow.hack.map(|hack| hack.compressed_octets),
        uncompressed_octets: flow.hack.map(|hack| hack.uncompressed_octets),
    };
    outcome.flows.iter().map(record).collect()
}
