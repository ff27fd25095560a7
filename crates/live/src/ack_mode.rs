//! How many TCP ACKs a receiving kernel sends: declared, since a gain without its ACK ratio means
//! nothing.
//!
//! Left alone, a kernel that gets an aggregate as one burst acknowledges once per burst or so, and how
//! often depends on which thread gets the processor. `quickack` on the routes of a hop makes it one ACK
//! per packet, at any load; the hop can then thin them as a delaying receiver would.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use tacit_link::queue::AckHoldConfig;
use tacit_proto::units::Duration;

use crate::merge::Merge;

/// Longest that a thinned ACK waits for its fellows: the least delayed-ACK timeout of Linux.
const DELAY: Duration = Duration::from_millis(40);
/// How many ACKs the receiving kernels of a hop send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckMode {
    /// As many as they like.
    #[default]
    Kernel,
    /// One per packet: `quickack` on the hop's routes.
    PerPacket,
    /// One per this number of packets: one per packet, thinned where they enter the hop.
    OneIn(NonZeroU32),
}

impl AckMode {
    /// True when the hop's routes say `quickack`.
    pub fn quick(self) -> bool {
        self != Self::Kernel
    }

    /// Packets that are handed to a kernel together: one that acknowledges each segment has to see each.
    pub(crate) fn merge(self) -> Merge {
        match self {
            Self::Kernel => Merge::All,
            Self::PerPacket | Self::OneIn(_) => Merge::Udp,
        }
    }

    /// How ACKs are thinned where they enter the hop, as a receiver that delays them would; `None` for not.
    pub fn hold(self) -> Option<AckHoldConfig> {
        match self {
            Self::OneIn(packets) => Some(AckHoldConfig { ratio: packets.get(), delay: DELAY }),
            Self::Kernel | Self::PerPacket => None,
        }
    }
}

impl fmt::Display for AckMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel => f.write_str("kernel"),
            Self::PerPacket => f.write_str("packet"),
            Self::OneIn(packets) => write!(f, "{packets}"),
        }
    }
}

impl FromStr for AckMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "kernel" => Ok(Self::Kernel),
            "packet" | "1" => Ok(Self::PerPacket),
            _ => match text.parse::<NonZeroU32>() {
                Ok(packets) if packets.get() <= 64 => Ok(Self::OneIn(packets)),
                _ => Err("kernel, packet, or a number from 1 to 64".to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use tacit_link::queue::AckHold;
    use tacit_proto::units::{HostId, Instant};

    use super::*;
    use crate::datagram::{Content, Datagram, Frame};

    fn segment(ack: u32, payload: &[u8]) -> Frame {
        let builder = PacketBuilder::ipv4([198, 18, 0, 2], [198, 18, 0, 1], 64);
        let mut bytes = Vec::new();
        builder.tcp(40_000, 80, 7, 500).ack(ack).write(&mut bytes, payload).unwrap();
        Frame::Live(Datagram::new(&bytes, HostId(0)))
    }

    fn ack_of(frame: &Frame) -> u32 {
        let Frame::Live(datagram) = frame else { panic!("a packet of a real host") };
        let Content::Tcp(tcp) = datagram.summary().content else { panic!("TCP") };
        tcp.ack.unwrap()
    }

    /// Offers packets with these numbers and payloads to one in `packets`; returns the numbers that pass.
    fn offer(packets: u32, segments: &[(u32, &[u8])]) -> Vec<u32> {
        let mode = AckMode::OneIn(NonZeroU32::new(packets).unwrap());
        let mut hold = AckHold::new(mode.hold().unwrap());
        let mut passed = Vec::new();
        for (ack, payload) in segments {
            hold.offer(Instant::ZERO, segment(*ack, payload), &mut |frame| passed.push(ack_of(&frame)));
        }
        passed
    }

    #[test]
    fn one_in_two_passes_and_says_it_all() {
        // The first tells where the flow stands.
        assert_eq!(offer(2, &[(100, b""), (200, b""), (300, b""), (400, b""), (500, b"")]), [100, 300, 500]);
    }

    #[test]
    fn duplicates_and_data_pass_at_once_behind_held_acks() {
        assert_eq!(offer(4, &[(100, b""), (200, b""), (200, b""), (200, b"")]), [100, 200, 200, 200]);
        assert_eq!(offer(4, &[(100, b""), (200, b""), (200, b"data")]), [100, 200, 200]);
    }

    #[test]
    fn modes_are_read_and_written() {
        for (text, mode) in [("kernel", AckMode::Kernel), ("packet", AckMode::PerPacket)] {
            assert_eq!(text.parse(), Ok(mode));
            assert_eq!(mode.to_string(), text);
        }
        assert_eq!("2".parse(), Ok(AckMode::OneIn(NonZeroU32::new(2).unwrap())));
        for wrong in ["0", "65", "", "none"] {
            assert!(wrong.parse::<AckMode>().is_err(), "{wrong}");
        }
    }
}
