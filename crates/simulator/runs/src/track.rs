//! The state of a flow over time, stored for runs that are inspected in detail.

use serde::{Deserialize, Serialize};
use tacit_packet::units::Instant;
use tacit_scenario::Scenario;
use tacit_sim::record::SeriesPoint;
use tacit_sim::{RunOutcome, Setup};

/// The state of a flow at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrackRecord {
    /// Simulated time in nanoseconds.
    pub at_ns: u64,
    /// Bytes delivered since its start.
    pub delivered_bytes: u64,
    /// Waiting time of the packets at the head of the queues on its path, summed over wired and cellular links.
    pub queueing_ns: u64,
    /// Current rate of the slowest of these links, headers included; null if there is none.
    pub link_bps: Option<u64>,
    /// Pacing rate of the sender; null if it does not pace.
    pub pacing_bps: Option<u64>,
    /// Congestion window; 0 if there is none.
    pub window_bytes: u64,
    /// Smoothed round-trip time; 0 if there is none.
    pub smoothed_rtt_ns: u64,
    /// State of its congestion control; null if not reported.
    pub state: Option<String>,
}

/// The samples of the flow with this index in `setup`. `outcome` must be the result of `setup`.
pub fn track(setup: &Setup, outcome: &RunOutcome, flow: usize) -> Vec<TrackRecord> {
    let Some(flow) = outcome.flows.get(flow) else { return Vec::new() };
    // From the server or to it. Data between clients does not pass beyond the access point.
    let is_on_the_way = [flow.source, flow.sink].contains(&Scenario::SERVER);
    let down = setup.wired.first().is_some_and(|link| link.a == flow.source);
    let link_at = |at: Instant| {
        let links = setup.wired.iter().filter(|_| is_on_the_way);
        let ways = links.map(|link| if down { &link.forward } else { &link.backward });
        ways.map(|way| way.service.rate_at(at).as_bps()).min()
    };
    let record = |point: &SeriesPoint| TrackRecord {
        at_ns: point.at.as_nanos(),
        delivered_bytes: point.delivered_total.0,
        queueing_ns: point.queueing.as_nanos(),
        link_bps: link_at(point.at),
        pacing_bps: point.pacing_rate.map(|rate| rate.as_bps()),
        window_bytes: point.congestion_window.0,
        smoothed_rtt_ns: point.smoothed_rtt.as_nanos(),
        state: point.congestion_state.map(str::to_owned),
    };
    outcome.series.iter().filter(|point| point.flow == flow.flow).map(record).collect()
}
