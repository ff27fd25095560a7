//! Link and traffic parameters of a capture, for similar simulations.

use std::collections::HashSet;

use serde::Serialize;
use tacit_packet::units::Duration;

use super::{Audit, FlowSummary};

/// Parameters that a simulation can take from a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Observed {
    /// Median round-trip time of handshakes, in microseconds. In a capture at a client it covers the whole path; at an
    /// access point, only its wireless or its wired side.
    #[serde(rename = "rtt_us", serialize_with = "micros")]
    pub rtt: Option<Duration>,
    /// Number of handshakes in the median.
    pub handshakes: usize,
    /// Number of hosts that receive data, counting connections with at least a tenth of the largest payload.
    pub receivers: usize,
    /// Segments per ACK, rounded, over connections captured in both directions; 1 to 64.
    pub segments_per_ack: Option<u32>,
}

fn micros<S: serde::Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(Duration::as_micros).serialize(serializer)
}

impl Audit {
    /// Derives the parameters.
    pub fn observed(&self) -> Observed {
        let mut round_trips: Vec<f64> =
            self.flows.iter().filter_map(|flow| flow.handshake_rtt_ms).filter(|ms| *ms > 0.0).collect();
        round_trips.sort_unstable_by(f64::total_cmp);
        let median = round_trips.get(round_trips.len() / 2);
        // Flows are in descending order of bytes. Flows much smaller than the largest did not fill the channel.
        let most = self.flows.iter().map(|flow| flow.summary.payload_bytes).max().unwrap_or(0);
        let counts =
            |flow: &&FlowSummary| flow.summary.payload_bytes > 0 && flow.summary.payload_bytes >= most / 10;
        let receivers: HashSet<&str> =
            self.flows.iter().filter(counts).map(|flow| host(&flow.destination)).collect();
        let per_ack = self.total.ack_ratio_per_segment.filter(|ratio| *ratio > 0.0);
        Observed {
            rtt: median.map(|ms| Duration::from_micros((ms * 1e3) as u64)),
            handshakes: round_trips.len(),
            receivers: receivers.len(),
            segments_per_ack: per_ack.map(|ratio| (1.0 / ratio).round().clamp(1.0, 64.0) as u32),
        }
    }
}

/// The address in an address and port.
fn host(end: &str) -> &str {
    end.rsplit_once(':').map_or(end, |(host, _)| host)
}
