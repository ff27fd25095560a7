//! Airtime of both ways of an ACK, riding and as a packet, and which is shorter.

use std::fmt::Debug;

use crate::units::Duration;

/// Airtime of ACKs to one peer. Code that knows the physical layer gives it to the driver.
pub trait AckAirtime: Debug + Send {
    /// By how much `bytes` behind it lengthen a link-layer ACK to the peer, which goes at the control response rate.
    fn appended(&self, bytes: u32) -> Duration;

    /// Of `acks` packets of `bytes` bytes each that are sent together, in as many PPDUs as they need: for each PPDU the
    /// access as it is to be expected without others, the PPDU, SIFS, and the link-layer ACK that answers it.
    fn packets(&self, acks: u32, bytes: u32) -> Duration;
}

/// ACKs that wait for a link-layer ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// Those in frames, and bytes of the frames.
    pub framed: u32,
    pub frame_bytes: u32,
    /// Bytes that those have as IP packets.
    pub packet_bytes: u32,
    /// All that wait, those in frames among them.
    pub all: u32,
}

impl Load {
    /// True where packets take less airtime than riding does. ACKs in no frame yet count as much as those in one, on an average.
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

    /// A byte that rides takes 1 us; packets take 100 us, and 1 us for each 10 bytes.
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
        // 20 bytes each ride 200 us for 150 of packets, and 4 ACKs ride 80 us for 120.
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
