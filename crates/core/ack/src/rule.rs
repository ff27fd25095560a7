//! The rules among which a receiver chooses.

use crate::Duration;

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckClock {
    /// The TACK rule for today's networks. The interval between ACKs is the longest of three: the time in which `every`
    /// full-sized packets, or two bursts of packets that arrive at once, come in; `beta`-th of the present round-trip time,
    /// queueing included; and `min_interval`. Packets that arrive at once are acknowledged at once. docs/design/tack.md
    /// has the equation and the reasons.
    Tack {
        /// ACKs per round-trip time, at least 2.
        beta: u8,
        /// Full-sized packets per ACK, at least 1: L.
        every: u8,
        /// Least time between ACKs of a sender that paces by the rate that they report. Zero for others, whose ACKs follow the
        /// round-trip time alone, once `every` packets or a tail wait for one.
        min_interval: Duration,
    },
    /// The TACK rule by the paper's letter: no more often than both every `every` full-sized packets and `beta` times per
    /// smallest round-trip time (TACK paper equation 3).
    Paper {
        /// ACKs per smallest round-trip time, at least 2 (appendix B.1).
        beta: u8,
        /// Full-sized packets per ACK, at least 1: L.
        every: u8,
    },
    /// One per `every` packets, or after `delay`: TCP's delayed ACK (equation 5).
    Delayed {
        /// Packets per ACK.
        every: u8,
        /// Longest wait.
        delay: Duration,
    },
}

impl AckClock {
    /// beta = 4 as in the paper (section 4.3). L = 16: Ethernet cards and Wi-Fi drivers hand up about this number of packets at
    /// once. 25 ms: QUIC's default `max_ack_delay` (RFC 9000 section 18.2), which senders bear on any path.
    pub const USUAL: Self = Self::Tack { beta: 4, every: 16, min_interval: Duration::from_millis(25) };
    /// beta = 4, L = 2 (TACK paper section 4.3).
    pub const PAPER: Self = Self::Paper { beta: 4, every: 2 };

    /// Full-sized packets per ACK: L.
    pub const fn every(self) -> u8 {
        match self {
            Self::Tack { every, .. } | Self::Paper { every, .. } | Self::Delayed { every, .. } => every,
        }
    }
}

/// When ACKs are sent while a connection starts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartUp {
    /// Sixteen in a round trip, of as few packets as arrive, until the sender has found the rate.
    Often,
    /// One per packet until then (successor paper section VI-D).
    PerPacket,
    /// As always.
    AsAlways,
}
