//! Compares the airtime of ACKs appended to a link-layer ACK with their airtime as packets.

use std::fmt::Debug;

use tacit_packet::units::Duration;

/// Airtime of ACKs to one peer, supplied to the driver by code that knows the physical layer.
pub trait AckAirtime: Debug + Send {
    /// By how much `bytes` appended to a link-layer ACK to the peer lengthen it, at the control response rate.
    fn appended(&self, bytes: u32) -> Duration;

    /// Airtime of `acks` packets of `bytes` bytes each that are sent together, in as many PPDUs as they need: for each
    /// PPDU the expected channel access time without contention, the PPDU itself, SIFS, and the link-layer ACK.
    fn packets(&self, acks: u32, bytes: u32) -> Duration;
}

/// ACKs that wait for a link-layer ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// ACKs in frames, and bytes of these frames.
    pub framed: u32,
    pub frame_bytes: u32,
    /// Bytes of those ACKs as IP packets.
    pub packet_bytes: u32,
    /// All waiting ACKs, including those in frames.
    pub all: u32,
}

impl Load {
    /// True if packets take less airtime than appending. ACKs that are not in a frame yet count with the average size
    /// of those in one.
    pub fn goes_cheaper_as_packets(&self, airtime: &dyn AckAirtime) -> bool {
        let Some(mean_bytes) = self.packet_bytes.checked_div(self.framed) else { return false };
        let bytes = u64::from(self.frame_bytes) * u64::from(self.all) / u64::from(self.framed);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        airtime.packets(self.all, mean_bytes) < airtime.appended(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An appended byte takes 1 us; packets take 100 us, plus 1 us per 10 bytes.
    #[derive(Debug)]
    struct Prices;

    impl AckAirtime for Prices {
        fn appended(&self, bytes: u32) -> Duration {
            Duration::from_micros(bytes.into())
        }

        fn packets(&self, acks: u32, bytes: u32) -> Duration {
            Duration::from_micros(100 + u64::from(acks * bytes / 10))
        }
    }

    fn cheaper(framed: u32, frame_bytes: u32, packet_bytes: u32, all: u32) -> bool {
        Load { framed, frame_bytes, packet_bytes, all }.goes_cheaper_as_packets(&Prices)
    }

    #[test]
    fn packets_win_only_where_they_take_less() {
        // 10 packets of 50 bytes: 150 us.
        assert!(!cheaper(10, 149, 500, 10));
        assert!(!cheaper(10, 150, 500, 10), "of equals an ACK rides");
        assert!(cheaper(10, 151, 500, 10));
    }

    #[test]
    fn acks_waiting_for_a_frame_count_like_those_in_frames() {
        // With 20 bytes each, appending takes 200 us and packets 150 us; for 4 ACKs it is 80 us and 120 us.
        assert!(cheaper(2, 40, 100, 10));
        assert!(!cheaper(2, 40, 100, 4));
    }

    #[test]
    fn nothing_in_frames_costs_nothing() {
        assert!(!cheaper(0, 0, 0, 5));
    }

    #[test]
    fn the_longest_feedback_overflows_nothing() {
        assert!(cheaper(1, u32::MAX / 2, 100, 1_151));
    }
}
