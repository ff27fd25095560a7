//! The ACK policies a receiver can be told to keep.

use super::external::External;
use crate::units::Duration;

/// When a receiver acknowledges.
///
/// [`Default`] is the rule of RFC 5681, as ns-3 and many others have it. The rest are the rules of today's transports, under
/// their names. Those of QUIC count packets, which here are segments with payload, and the numbers of bytes in them do not
/// matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPolicy {
    /// One ACK for a number of full-sized segments, or after a delay. Out-of-order data, and data that
    /// fills a gap, are acknowledged at once (RFC 5681 section 4.2).
    Delayed(DelayedAcks),
    /// As in Linux: aggregates, an adaptive delay, compressed SACKs.
    Linux(LinuxAcks),
    /// One ACK for a number of packets, or after a delay, as QUIC does.
    Packets(PacketAcks),
    /// A user's own.
    External(External),
}

/// Counting bytes, by full-sized segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAcks {
    /// One ACK per this many full-sized segments (`L`); 1 acknowledges each.
    pub every: u32,
    /// An ACK is never held longer than this (RFC 9293 section 3.8.6.3: below 500 ms).
    pub delay: Duration,
    /// Acknowledge each segment while the connection is young, and after a loss, as Linux does.
    pub quick_ack_segments: u32,
}

/// Linux's receiver, as of 6.x with the defaults of its `net.ipv4.tcp_*` settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinuxAcks {
    /// In-order segments that arrive within this of the first become one, of up to 64 KiB, before TCP sees them (GRO). Zero
    /// joins segments that arrive at the same instant: those of one PPDU, or of one poll of the interface.
    pub gro_flush: Duration,
}

/// Counting packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketAcks {
    /// Packets at the start of the connection for which RFC 9000's rule holds: every second, 25 ms.
    pub early_packets: u32,
    /// An ACK at the latest with this many packets.
    pub packets: PacketLimit,
    /// An ACK at the latest after this.
    pub delay: DelayLimit,
    /// Effect of out-of-order packets.
    pub reordering: Reordering,
}

/// How many packets an ACK may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketLimit {
    /// A fixed number.
    Every(u32),
    /// Any number: only the delay counts.
    Unbounded,
    /// A quarter of the peer's congestion window, within bounds. The window is taken to be the packets that arrived in the
    /// latest round-trip time.
    QuarterWindow {
        /// Least packets.
        least: u32,
        /// Most packets.
        most: u32,
    },
    /// By the smallest round-trip time.
    ByRttMin {
        /// Below this it is `shorter`.
        below: Duration,
        /// Packets on short paths.
        shorter: u32,
        /// Packets on the others.
        longer: u32,
    },
}

/// How long an ACK may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayLimit {
    /// So long.
    Fixed(Duration),
    /// A quarter of the smallest round-trip time, within bounds.
    QuarterRttMin {
        /// At least.
        least: Duration,
        /// At most.
        most: Duration,
    },
    /// A quarter of the smoothed round-trip time, within bounds.
    QuarterRtt {
        /// At least.
        least: Duration,
        /// At most.
        most: Duration,
    },
}

/// Effect of out-of-order packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reordering {
    /// A packet below one that was received before, and one that opens a gap, are acknowledged at once; those that follow above
    /// the gap are counted (RFC 9000 section 13.2.1).
    Immediate,
    /// The first packets above a gap are acknowledged at once, and those below one that an ACK has already reported.
    FirstAboveGap(u32),
    /// An ACK is due at once when a packet that no ACK could have shown to be lost is missing and one
    /// this far above it has arrived; 0 never, 1 is `Immediate` (draft-ietf-quic-ack-frequency section
    /// 6.2).
    Threshold(u32),
}

/// Granularity of the alarms of the QUIC stacks.
const ALARM: Duration = Duration::from_millis(1);
/// "a default of 25 milliseconds is assumed" for max_ack_delay (RFC 9000 section 18.2).
pub(super) const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// "an endpoint sends an ACK frame after receiving at least two ack-eliciting packets" (RFC 9000
/// section 13.2.2).
pub(super) const QUIC_PACKETS: u32 = 2;

impl AckPolicy {
    /// Defaults of [`AckPolicy::quic_ackfreq`]: as few ACKs as Chrome sends, RFC 9000's delay, and RFC 9002's packet threshold.
    pub const ACK_FREQUENCY: (u32, Duration, u32) = (10, MAX_ACK_DELAY, 3);

    /// Delayed ACKs, one for `segments`, with Linux' times.
    #[must_use]
    pub fn every(segments: u32) -> Self {
        Self::Delayed(DelayedAcks { every: segments, ..DelayedAcks::default() })
    }

    /// This policy with one ACK for `segments` where it is [`AckPolicy::Delayed`], else [`AckPolicy::every`].
    #[must_use]
    pub fn with_every(self, segments: u32) -> Self {
        match self {
            Self::Delayed(delayed) => Self::Delayed(DelayedAcks { every: segments, ..delayed }),
            Self::Linux(_) | Self::Packets(_) | Self::External(_) => Self::every(segments),
        }
    }

    /// Linux, with aggregates of segments that arrive at once.
    pub const fn linux() -> Self {
        Self::Linux(LinuxAcks { gro_flush: Duration::ZERO })
    }

    /// QUIC without extensions: every second packet, or 25 ms (RFC 9000 section 13.2).
    pub const fn quic_ack2() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::Every(QUIC_PACKETS),
            delay: DelayLimit::Fixed(MAX_ACK_DELAY),
            reordering: Reordering::Immediate,
        })
    }

    /// As a sender asks for in an ACK_FREQUENCY frame: an ACK with `packets` packets, after `max_ack_delay`, or when one is
    /// missing that lies `reordering_threshold` below another (draft-ietf-quic-ack-frequency).
    pub const fn quic_ackfreq(packets: u32, max_ack_delay: Duration, reordering_threshold: u32) -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::Every(packets),
            delay: DelayLimit::Fixed(max_ack_delay),
            reordering: Reordering::Threshold(reordering_threshold),
        })
    }

    /// Chrome: after 100 packets an ACK every 10, or after a quarter of RTT_min, 1 to 25 ms; the first
    /// four packets above a gap at once (`QuicReceivedPacketManager` of quiche).
    pub const fn chrome() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 100,
            packets: PacketLimit::Every(10),
            delay: DelayLimit::QuarterRttMin { least: ALARM, most: MAX_ACK_DELAY },
            reordering: Reordering::FirstAboveGap(4),
        })
    }

    /// neqo (Firefox): four ACKs a round trip, of 2 to 256 packets and at most 50 ms; packets out of order at once.
    pub const fn neqo() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::QuarterWindow { least: 2, most: 256 },
            delay: DelayLimit::QuarterRtt { least: ALARM, most: Duration::from_millis(50) },
            reordering: Reordering::Threshold(1),
        })
    }

    /// picoquic: an ACK every 32 packets, 64 where RTT_min is 40 ms or more, or after a quarter of RTT_min, 1 to 10 ms; packets
    /// out of order at once.
    pub const fn picoquic() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::ByRttMin { below: Duration::from_millis(40), shorter: 32, longer: 64 },
            delay: DelayLimit::QuarterRttMin { least: ALARM, most: Duration::from_millis(10) },
            reordering: Reordering::Threshold(1),
        })
    }

    /// As near to TACK as QUIC's extension comes: four ACKs per RTT_min however many packets there are,
    /// and a reordering threshold of 3.
    pub const fn tack_lite() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::Unbounded,
            delay: DelayLimit::QuarterRttMin { least: Duration::ZERO, most: Duration::MAX },
            reordering: Reordering::Threshold(3),
        })
    }
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self::Delayed(DelayedAcks::default())
    }
}

impl From<DelayedAcks> for AckPolicy {
    fn from(delayed: DelayedAcks) -> Self {
        Self::Delayed(delayed)
    }
}

impl Default for DelayedAcks {
    fn default() -> Self {
        Self {
            every: 2,
            // Linux TCP_DELACK_MIN.
            delay: Duration::from_millis(40),
            // Linux TCP_MAX_QUICKACKS.
            quick_ack_segments: 16,
        }
    }
}
