//! Link and traffic of a capture, for runs of the like.

use std::collections::HashSet;

use serde::Serialize;
use tacit_proto::units::Duration;

use super::{Audit, FlowSummary};

/// Parameters that a simulation takes from a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Observed {
    /// Median round-trip time of handshakes, in microseconds. At a client it is that of the whole path, at an access point that
    /// of its wireless or of its wired side alone.
    #[serde(rename = "rtt_us", serialize_with = "micros")]
    pub rtt: Option<Duration>,
    /// Handshakes it is the median of.
    pub handshakes: usize,
    /// Hosts that data is sent to, of connections with a tenth of the largest's payload and more.
    pub receivers: usize,
    /// Segments per ACK of connections seen both ways, rounded; 1 to 64.
    pub segments_per_ack: Option<u32>,
}

fn micros<S: serde::Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(Duration::as_micros).serialize(serializer)
}

impl Audit {
    /// Its link and traffic.
    pub fn observed(&self) -> Observed {
        let mut round_trips: Vec<f64> =
            self.flows.iter().filter_map(|flow| flow.handshake_rtt_ms).filter(|ms| *ms > 0.0).collect();
        round_trips.sort_unstable_by(f64::total_cmp);
        let median = round_trips.get(round_trips.len() / 2);
        // Flows stand most bytes first. Flows that are small beside the largest did not fill the channel.
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

/// Of an address and port the address.
fn host(end: &str) -> &str {
    end.rsplit_once(':').map_or(end, |(host, _)| host)
}
