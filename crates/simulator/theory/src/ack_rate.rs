//! The ACK frequency of each acknowledgment policy in a steady flow of full-sized packets.

use tacit_ack::{AckClock, Arriving};
use tacit_packet::units::{BitRate, Bytes, Duration};

/// Length of the full-sized packets in which ACK frequencies are expressed (TACK paper section 6.2).
const PACKET: Bytes = Bytes(1500);

/// A receiver's acknowledgment policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPolicy {
    /// One ACK per this number of packets; 2 for TCP's delayed ACKs.
    Every(u32),
    /// The clock of TACK's receiver, as in equation 3 of its paper.
    Tack(AckClock),
    /// Chrome's QUIC after its first hundred packets: one ACK per 10 packets, or four per round trip if that is more
    /// frequent.
    Chrome,
    /// Neqo: one ACK per quarter of the window, limited to 2 to 256 packets, or four per round trip and at least 20 Hz,
    /// if that is more frequent.
    Neqo,
    /// Picoquic: one ACK per 32 packets below a round trip of 40 ms, and per 64 above it, or four per round trip and at
    /// least 100 Hz, if that is more frequent.
    Picoquic,
}

/// ACKs per second that `policy` sends after start-up in a flow of 1500-byte packets at `rate` over a path with
/// `rtt_min`.
///
/// The result is at most one per packet. With a round-trip time of zero, only the packet count of TACK applies.
pub fn ack_frequency_hz(policy: AckPolicy, rate: BitRate, rtt_min: Duration) -> f64 {
    let packets_hz = rate.as_bps() as f64 / (8.0 * PACKET.0 as f64);
    let rtt = rtt_min.as_secs_f64();
    let four_per_rtt = if rtt > 0.0 { 4.0 / rtt } else { f64::INFINITY };
    let hz = match policy {
        AckPolicy::Every(packets) => packets_hz / f64::from(packets.max(1)),
        AckPolicy::Tack(clock) => {
            1.0 / clock
                .interval(&Arriving { rate, rtt_min, packet: PACKET, ..Arriving::default() })
                .as_secs_f64()
        }
        AckPolicy::Chrome => (packets_hz / 10.0).max(four_per_rtt),
        AckPolicy::Neqo => {
            let window = packets_hz * rtt;
            let gap = (window / 4.0).clamp(2.0, 256.0);
            // The maximum delay is a quarter of a round trip, limited to 50 ms.
            (packets_hz / gap).max(four_per_rtt.max(20.0))
        }
        AckPolicy::Picoquic => {
            let gap = if rtt_min < Duration::from_millis(40) { 32.0 } else { 64.0 };
            // Limited to 10 ms.
            (packets_hz / gap).max(four_per_rtt.max(100.0))
        }
    };
    hz.min(packets_hz)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTTS_MS: [u64; 3] = [10, 80, 200];

    #[track_caller]
    fn frequencies(policy: AckPolicy, rate: BitRate, expected: [f64; 3]) {
        for (rtt_ms, expected) in RTTS_MS.into_iter().zip(expected) {
            let hz = ack_frequency_hz(policy, rate, Duration::from_millis(rtt_ms));
            assert!((hz / expected - 1.0).abs() < 0.01, "{policy:?} at {rtt_ms} ms: {hz}, not {expected}");
        }
    }

    /// TACK paper figure 8(b), with its UDP baselines before rounding.
    #[test]
    fn tack_figure_8() {
        let b = BitRate::from_kbps(7_056);
        frequencies(AckPolicy::Every(2), b, [294.0; 3]);
        frequencies(AckPolicy::Tack(AckClock::PAPER), b, [294.0, 50.0, 20.0]);
        let ac = BitRate::from_kbps(594_650);
        frequencies(AckPolicy::Every(2), ac, [24_777.0; 3]);
        frequencies(AckPolicy::Tack(AckClock::PAPER), ac, [400.0, 50.0, 20.0]);
    }

    #[test]
    fn quic_stacks_at_802_11ac() {
        let ac = BitRate::from_kbps(594_650);
        frequencies(AckPolicy::Chrome, ac, [4_955.0; 3]);
        frequencies(AckPolicy::Picoquic, ac, [1_549.0, 774.0, 774.0]);
        frequencies(AckPolicy::Neqo, ac, [400.0, 194.0, 194.0]);
    }

    #[test]
    fn never_more_than_one_per_packet() {
        let slow = BitRate::from_kbps(12);
        for policy in [AckPolicy::Every(0), AckPolicy::Chrome, AckPolicy::Neqo, AckPolicy::Picoquic] {
            for rtt in [Duration::ZERO, Duration::from_millis(1)] {
                assert!(ack_frequency_hz(policy, slow, rtt) <= 1.0, "{policy:?}");
            }
        }
    }
}
