//! The fields of an audit's report.

use serde::Serialize;

use super::segment::Counters;

/// Counts and shares of one connection, or of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// TCP packets.
    pub packets: u64,
    /// Total length of these as IP packets, in bytes.
    pub ip_bytes: u64,
    /// Packets with payload.
    pub data_packets: u64,
    /// The same in segments as sent: a captured super-segment (GRO, TSO) counts as several.
    pub data_segments: u64,
    /// Payload bytes, including retransmissions.
    pub payload_bytes: u64,
    /// Both directions were captured; in a total, those of at least one connection.
    pub both_directions: bool,
    /// Pure ACKs: no payload, none of SYN, FIN, RST, URG, and not of a kind that is counted separately below.
    pub ack_packets: u64,
    /// Pure ACKs per data packet of the opposite direction; `None` if the capture contains only one direction. A total
    /// includes only connections captured in both directions.
    pub ack_ratio: Option<f64>,
    /// Pure ACKs per segment of the opposite direction; `None` if [`ack_ratio`](Self::ack_ratio) is.
    pub ack_ratio_per_segment: Option<f64>,
    /// Total length of pure ACKs as IP packets, in bytes.
    pub ack_bytes: u64,
    /// Mean number of bytes that a pure ACK newly acknowledges.
    pub mean_ack_stride_bytes: Option<f64>,
    /// Share of pure ACKs with SACK blocks.
    pub sack_share: Option<f64>,
    /// Share of pure ACKs that repeat number and window, or carry SACK without advancing.
    pub duplicate_ack_share: Option<f64>,
    /// Segments without payload that only change the window.
    pub window_updates: u64,
    /// Keep-alives: at most one byte, just below the bytes already sent.
    pub keep_alives: u64,
    /// Responses to keep-alives.
    pub keep_alive_acks: u64,
    /// Single bytes sent while the window is zero.
    pub zero_window_probes: u64,
    /// Responses to these, with the window still zero.
    pub zero_window_probe_acks: u64,
    /// Share of pure ACKs with timestamps.
    pub timestamps_share: Option<f64>,
    /// Time from the first to the last packet, in seconds.
    pub duration_s: Option<f64>,
    /// Total length of IP packets with data, in bytes, counting headers for every segment.
    #[serde(skip)]
    pub(super) data_ip_bytes: u64,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Address and port of the end that sends more payload.
    pub source: String,
    /// The other end.
    pub destination: String,
    /// 4 or 6.
    pub ip_version: u8,
    /// Time from SYN to the ACK that completes the handshake, in milliseconds, if captured.
    pub handshake_rtt_ms: Option<f64>,
    /// The sum of both directions.
    #[serde(flatten)]
    pub summary: Summary,
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Summary {
    /// Creates a summary with the counts of `all` and the ratios of `paired`, which contains the connections captured
    /// in both directions.
    pub(super) fn new(all: &Counters, paired: Option<&Counters>, nanos: Option<i128>) -> Self {
        let ratio =
            |data: fn(&Counters) -> u64| paired.and_then(|paired| share(paired.ack_packets, data(paired)));
        Self {
            packets: all.packets,
            ip_bytes: all.ip_bytes,
            data_packets: all.data_packets,
            data_segments: all.data_segments,
            payload_bytes: all.payload_bytes,
            both_directions: paired.is_some(),
            ack_packets: all.ack_packets,
            ack_ratio: ratio(|counters| counters.data_packets),
            ack_ratio_per_segment: ratio(|counters| counters.data_segments),
            ack_bytes: all.ack_bytes,
            mean_ack_stride_bytes: share(all.acked_bytes, all.ack_packets),
            sack_share: share(all.sack_acks, all.ack_packets),
            duplicate_ack_share: share(all.duplicate_acks, all.ack_packets),
            window_updates: all.window_updates,
            keep_alives: all.keep_alives,
            keep_alive_acks: all.keep_alive_acks,
            zero_window_probes: all.zero_window_probes,
            zero_window_probe_acks: all.zero_window_probe_acks,
            timestamps_share: share(all.timestamp_acks, all.ack_packets),
            duration_s: nanos.map(|nanos| nanos as f64 / 1e9),
            data_ip_bytes: all.data_ip_bytes,
        }
    }
}
