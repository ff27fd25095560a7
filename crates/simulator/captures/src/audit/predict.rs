//! Predicts what a capture's acknowledgments cost on a Wi-Fi hop, and what they would cost with each scheme.

use serde::Serialize;
use tacit_packet::units::Duration;

use super::Audit;
use tacit_theory::{AckCoding, Capacity, Feedback, Hop, Traffic, capacity};

/// Source of the ACK ratio in a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RatioSource {
    /// Both ACKs and segments were counted.
    Counted,
    /// Only ACKs were captured: the ratio follows from the bytes that each ACK acknowledges, in full segments.
    AckStride,
}

/// Bounds for traffic like that of the capture, if it saturates a lossless hop without contention.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The standard.
    pub phy: &'static str,
    /// PHY rate in Mb/s, of all links together.
    pub rate_mbps: f64,
    /// Number of links.
    pub links: usize,
    /// PHY rate of link-layer ACKs in Mb/s.
    pub control_rate_mbps: f64,
    /// Minimum round-trip time assumed for TACK, in milliseconds.
    pub rtt_ms: f64,
    /// Mean length of an IP packet with a segment, in bytes.
    pub packet_bytes: u32,
    /// Mean length of its payload, in bytes.
    pub payload_bytes: u32,
    /// Mean length of a pure ACK, in bytes.
    pub ack_bytes: u32,
    /// Pure ACKs per segment.
    pub acks_per_segment: f64,
    /// Source of this ratio.
    pub acks_per_segment_source: RatioSource,
    /// Fraction of airtime used by the capture's ACKs.
    pub ack_airtime_share: f64,
    /// Airtime of all ACKs of the capture, in seconds.
    pub ack_airtime_s: f64,
    /// Goodput of each scheme. The first one is the capture's own behaviour.
    pub schemes: Vec<Scheme>,
}

/// One scheme's row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scheme {
    /// Its name.
    pub scheme: String,
    /// Whether it takes other Wi-Fi chips or firmware; `None` for yardsticks.
    #[serde(skip)]
    pub needs_chips: Option<bool>,
    /// Goodput in Mb/s.
    pub goodput_mbps: f64,
    /// Gain over the capture's own behaviour, in percent.
    pub gain_percent: f64,
    /// ACKs per second.
    pub acks_per_second: f64,
    /// Fraction of airtime used by feedback.
    pub feedback_airtime_share: f64,
}

/// Of all links.
fn goodput_mbps(links: &[Capacity]) -> f64 {
    links.iter().map(|link| link.goodput.as_mbps_f64()).sum()
}

/// Mean share of the airtime of a link.
fn feedback_share(links: &[Capacity]) -> f64 {
    links.iter().map(|link| link.airtime.feedback_share()).sum::<f64>() / links.len().max(1) as f64
}

impl Audit {
    /// Bounds for this capture's packet sizes and ACK ratio on `hop`, or on the links of a multi-link device whose Block Ack
    /// window never binds. `rtt_min` only affects TACK. `None` if the capture does not reveal the ACK ratio.
    pub fn predict(&self, links: &[Hop], rtt_min: Duration) -> Option<Prediction> {
        let hop = links.first()?;
        let traffic = self.traffic();
        let (ratio, source) = self.acks_per_segment(&traffic)?;
        let captured_feedback = Feedback::Packets { acks_per_segment: ratio };
        // A receiver that already acknowledges less often would not start to acknowledge more often.
        let thinned =
            |segments: u32| Feedback::Packets { acks_per_segment: ratio.min(1.0 / f64::from(segments)) };
        let tack = Traffic { ack: Traffic::TACK.ack.max(traffic.ack), ..traffic };
        let rows = [
            ("as captured", None, traffic, captured_feedback),
            ("stock: 1 ACK per 2", None, traffic, Feedback::every(2)),
            ("thinned to 1 ACK per 4", Some(false), traffic, thinned(4)),
            ("thinned to 1 ACK per 8", Some(false), traffic, thinned(8)),
            ("thinned to 1 ACK per 16", Some(false), traffic, thinned(16)),
            // The ACKs of a connection take turns at the links.
            ("TACK", Some(false), tack, Feedback::Tack { rtt_min: rtt_min * links.len() as u64 }),
            (
                "HACK",
                Some(true),
                traffic,
                Feedback::OnLinkAcks { acks_per_segment: ratio, coding: AckCoding::CODEC },
            ),
            ("no ACKs (UDP bound)", None, traffic, Feedback::None),
        ];
        let captured: Vec<Capacity> =
            links.iter().map(|hop| capacity(hop, &traffic, captured_feedback)).collect();
        let stock_mbps = goodput_mbps(&captured);
        let scheme = |(name, needs_chips, traffic, feedback): (&str, Option<bool>, Traffic, Feedback)| {
            let results: Vec<Capacity> = links.iter().map(|hop| capacity(hop, &traffic, feedback)).collect();
            let goodput_mbps = goodput_mbps(&results);
            Scheme {
                scheme: name.to_owned(),
                needs_chips,
                goodput_mbps,
                gain_percent: (goodput_mbps / stock_mbps - 1.0) * 100.0,
                acks_per_second: results.iter().map(|result| result.acks_per_second).sum(),
                feedback_airtime_share: feedback_share(&results),
            }
        };
        // Of a second of each link.
        let acks_airtime_s: f64 = captured.iter().map(|link| link.airtime.feedback_share()).sum();
        let acks_per_second: f64 = captured.iter().map(|link| link.acks_per_second).sum();
        let airtime_per_ack_s = if acks_per_second > 0.0 { acks_airtime_s / acks_per_second } else { 0.0 };
        Some(Prediction {
            phy: hop.phy.standard.name(),
            rate_mbps: links.iter().map(|hop| hop.data.rate().as_mbps_f64()).sum(),
            links: links.len(),
            control_rate_mbps: hop.control.rate().as_mbps_f64(),
            rtt_ms: rtt_min.as_secs_f64() * 1e3,
            packet_bytes: traffic.packet,
            payload_bytes: traffic.payload,
            ack_bytes: traffic.ack,
            acks_per_segment: ratio,
            acks_per_segment_source: source,
            ack_airtime_share: feedback_share(&captured),
            ack_airtime_s: airtime_per_ack_s * self.total.ack_packets as f64,
            schemes: rows.map(scheme).into(),
        })
    }

    /// Mean packet sizes, or those of full segments if the capture lacks them. Sizes are limited to what one MPDU can
    /// carry (802.11-2020 clause 9.2.4.7.1), so that untrusted values cannot cause overflows.
    fn traffic(&self) -> Traffic {
        const LONGEST_MSDU: u64 = 2_304;
        let mean = |sum: u64, count: u64| {
            let rounded = (sum + count / 2).checked_div(count)?;
            Some(rounded.clamp(1, LONGEST_MSDU) as u32)
        };
        let total = &self.total;
        let ack = mean(total.ack_bytes, total.ack_packets).unwrap_or(Traffic::TCP.ack);
        // The IPv6 header is 20 bytes longer.
        let is_v6 = self.flows.first().is_some_and(|flow| flow.ip_version == 6);
        let full_payload = Traffic::TCP.payload - if is_v6 { 20 } else { 0 };
        let full = Traffic { ack, payload: full_payload, ..Traffic::TCP };
        let packet = mean(total.data_ip_bytes, total.data_segments);
        let payload = mean(total.payload_bytes, total.data_segments);
        match packet.zip(payload) {
            Some((packet, payload)) => Traffic { packet, payload: payload.min(packet), ack },
            None => full,
        }
    }

    fn acks_per_segment(&self, traffic: &Traffic) -> Option<(f64, RatioSource)> {
        if self.total.ack_packets == 0 {
            return None;
        }
        if let Some(ratio) = self.total.ack_ratio_per_segment {
            return Some((ratio, RatioSource::Counted));
        }
        match self.total.mean_ack_stride_bytes {
            Some(stride) if stride > 0.0 => {
                Some((f64::from(traffic.payload) / stride, RatioSource::AckStride))
            }
            _ => None,
        }
    }
}
