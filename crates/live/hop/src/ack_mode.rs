//! The number of TCP ACKs that a receiving kernel sends. It is set explicitly, because a gain is meaningless without
//! its ACK ratio.
//!
//! By default, a kernel that receives an aggregate as a burst acknowledges about once per burst, and the exact number
//! depends on thread scheduling. `quickack` on the routes of a hop results in one ACK per packet under any load. The
//! hop can then thin these ACKs as a receiver with delayed ACKs would.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use tacit_between::ack_hold::{AckHoldConfig, HoldLaw};
use tacit_packet::units::Duration;

use crate::merge::Merge;

/// Maximum time that a thinned ACK is held: Linux's minimum delayed-ACK timeout.
const DELAY: Duration = Duration::from_millis(40);
/// How many ACKs the receiving kernels of a hop send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckMode {
    /// The kernel's default.
    #[default]
    Kernel,
    /// One per packet: `quickack` on the hop's routes.
    PerPacket,
    /// One per this number of packets: one per packet, thinned where they enter the hop.
    OneIn(NonZeroU32),
}

impl AckMode {
    /// True if the hop's routes use `quickack`.
    pub fn quick(self) -> bool {
        self != Self::Kernel
    }

    /// Kinds of packets that may be merged before they are passed to a kernel. A kernel that is to acknowledge each
    /// segment must receive each separately.
    pub(crate) fn merge(self) -> Merge {
        match self {
            Self::Kernel => Merge::All,
            Self::PerPacket | Self::OneIn(_) => Merge::Udp,
        }
    }

    /// Thinning of ACKs at the entry of the hop, which imitates a receiver with delayed ACKs; `None` for no thinning.
    pub fn hold(self) -> Option<HoldLaw> {
        match self {
            Self::OneIn(packets) => {
                Some(HoldLaw::Fixed(AckHoldConfig { ratio: packets.get(), delay: DELAY }))
            }
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
    use tacit_between::ack_hold::{AckHold, Offered};
    use tacit_packet::units::{HostId, Instant};

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

    /// Passes packets with these numbers and payloads through thinning of one in `packets`. Returns the numbers that
    /// pass.
    fn offer(packets: u32, segments: &[(u32, &[u8])]) -> Vec<u32> {
        let mode = AckMode::OneIn(NonZeroU32::new(packets).unwrap());
        let mut hold = AckHold::new(mode.hold().unwrap());
        let mut passed = Vec::new();
        for (ack, payload) in segments {
            let frame = segment(*ack, payload);
            hold.offer(Instant::ZERO, Offered::from_packet(&frame, 52), frame, &mut |frame| {
                passed.push(ack_of(&frame));
            });
        }
        passed
    }

    #[test]
    fn one_in_two_passes_and_says_it_all() {
        // The first ACK initialises the state of the flow.
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
