//! How a flow fared over time, as it is kept for runs that are looked at moment by moment.

use serde::{Deserialize, Serialize};
use tacit_proto::units::Instant;
use tacit_scenario::Scenario;
use tacit_sim::record::SeriesPoint;
use tacit_sim::{RunOutcome, Setup};

/// One moment of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrackRecord {
    /// When, in nanoseconds of the run.
    pub at_ns: u64,
    /// Bytes delivered since its start.
    pub delivered_bytes: u64,
    /// For how long packets have waited that are first in the queues of wired and cellular links on its way.
    pub queueing_ns: u64,
    /// Rate of the slowest of those links now, headers included; null where there is none.
    pub link_bps: Option<u64>,
    /// Rate at which the sender may send; null where it does not pace.
    pub pacing_bps: Option<u64>,
    /// Its congestion window; 0 where it has none.
    pub window_bytes: u64,
    /// Its smoothed round-trip time; 0 where it has none.
    pub smoothed_rtt_ns: u64,
    /// State of its congestion control; null where it reports none.
    pub state: Option<String>,
}

/// The samples of the flow with this place among those of `setup`, which `outcome` came of.
pub fn track(setup: &Setup, outcome: &RunOutcome, flow: usize) -> Vec<TrackRecord> {
    let Some(flow) = outcome.flows.get(flow) else { return Vec::new() };
    // From the server, or back to it; data from client to client stays behind the access point.
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
