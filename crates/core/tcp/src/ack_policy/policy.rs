//! The available ACK policies of a receiver.

use super::external::External;
use tacit_packet::units::Duration;

/// When a receiver acknowledges.
///
/// [`Default`] is the rule of RFC 5681, as in ns-3 and many others. The rest are the rules of today's transports, under
/// their names. QUIC's policies count packets, which are segments with payload here, of any size.
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

/// Options for counting full-sized segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAcks {
    /// One ACK per this number of full-sized segments (`L`); 1 acknowledges each.
    pub every: u32,
    /// Longest delay of an ACK (RFC 9293 section 3.8.6.3: below 500 ms).
    pub delay: Duration,
    /// Number of segments that are acknowledged individually at the start of a connection and after a loss, as in
    /// Linux.
    pub quick_ack_segments: u32,
}

/// Linux's receiver, as of 6.x with the defaults of its `net.ipv4.tcp_*` settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinuxAcks {
    /// In-order segments that arrive within this time of the first become one, of up to 64 KiB, before TCP sees them
    /// (GRO). With zero only segments that arrive at the same instant are joined: those of one PPDU, or of one poll of
    /// the interface.
    pub gro_flush: Duration,
}

/// Options for counting packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketAcks {
    /// Packets at the start of the connection that follow RFC 9000's rule: every second packet, 25 ms.
    pub early_packets: u32,
    /// Most packets per ACK.
    pub packets: PacketLimit,
    /// Longest delay of an ACK.
    pub delay: DelayLimit,
    /// Effect of out-of-order packets.
    pub reordering: Reordering,
    /// When it decides.
    pub reading: Reading,
}

/// How many packets a receiver reads at most, of those that arrive together as those of a PPDU do (`recvmmsg`, or a loop that ends),
/// before it answers once and reads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading(pub u32);

impl Reading {
    /// One, which is answered before the next is read.
    pub const SINGLE: Self = Self(1);
    /// Until the socket is empty.
    pub const ALL: Self = Self(u32::MAX);
}

/// How many packets an ACK may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketLimit {
    /// A fixed number.
    Every(u32),
    /// Any number: only the delay matters.
    Unbounded,
    /// A quarter of the peer's congestion window, within bounds. The window is estimated as the packets that arrived in
    /// the latest round-trip time.
    QuarterWindow {
        /// Least packets.
        least: u32,
        /// Most packets.
        most: u32,
    },
    /// As `QuarterWindow`, and the most depends on the minimum round-trip time.
    QuarterWindowByRttMin {
        /// Below this round-trip time `shorter` applies.
        below: Duration,
        /// Most packets on paths with a short round-trip time.
        shorter: u32,
        /// Most packets on other paths.
        longer: u32,
    },
    /// RFC 9000's number until an ACK is for a burst; then what the sender asks for.
    OnceBursts {
        /// A burst has more packets than this.
        burst: u32,
        /// Packets per ACK that the sender asks for.
        asked: u32,
    },
}

/// How long an ACK may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayLimit {
    /// A fixed time.
    Fixed(Duration),
    /// A quarter of the minimum round-trip time, within bounds.
    QuarterRttMin {
        /// Minimum.
        least: Duration,
        /// Maximum.
        most: Duration,
    },
    /// A quarter of the smoothed round-trip time, within bounds.
    QuarterRtt {
        /// Minimum.
        least: Duration,
        /// Maximum.
        most: Duration,
    },
}

/// Effect of out-of-order packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reordering {
    /// A packet below one that was received before, and one that opens a gap, are acknowledged at once; further packets
    /// above the gap are counted (RFC 9000 section 13.2.1).
    Immediate,
    /// The first packets above a gap are acknowledged at once, as are those that fill a gap which an ACK has already
    /// reported.
    FirstAboveGap(u32),
    /// An ACK is sent at once if a packet is missing that no earlier ACK could have shown to be lost, and a packet this
    /// far above it has arrived; 0 means never, 1 is `Immediate` (draft-ietf-quic-ack-frequency section 6.2).
    Threshold(u32),
}

/// aioquic's `_ack_delay` is `K_GRANULARITY`, 1 ms. asyncio waits in whole milliseconds, rounded up, once it has handled the packet that
/// began the time (`EpollSelector.select`), so that the ACK comes 1.3 to 1.5 ms after that packet in captures.
const AIOQUIC_DELAY: Duration = Duration::from_micros(1_400);

/// Timer granularity of QUIC stacks.
const ALARM: Duration = Duration::from_millis(1);
/// "a default of 25 milliseconds is assumed" for max_ack_delay (RFC 9000 section 18.2).
pub(super) const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// "an endpoint sends an ACK frame after receiving at least two ack-eliciting packets" (RFC 9000
/// section 13.2.2).
pub(super) const QUIC_PACKETS: u32 = 2;

impl AckPolicy {
    /// Defaults of [`AckPolicy::quic_ackfreq`]: Chrome's number of packets per ACK, RFC 9000's delay, and RFC 9002's
    /// packet threshold.
    pub const ACK_FREQUENCY: (u32, Duration, u32) = (10, MAX_ACK_DELAY, 3);

    /// Delayed ACKs, one per `segments`, with Linux's times.
    #[must_use]
    pub fn every(segments: u32) -> Self {
        Self::Delayed(DelayedAcks { every: segments, ..DelayedAcks::default() })
    }

    /// Linux, with aggregates of segments that arrive at the same instant.
    pub const fn linux() -> Self {
        Self::Linux(LinuxAcks { gro_flush: Duration::ZERO })
    }

    /// QUIC without extensions: every second packet, or after 25 ms (RFC 9000 section 13.2).
    pub const fn quic_ack2() -> Self {
        Self::every_second(Reading::ALL)
    }

    /// RFC 9000's rule by quinn and noq: a connection takes 128 packets from its channel, the budget that tokio gives a task
    /// (`Budget::initial` in `task/coop`), before it sends.
    pub const fn quinn() -> Self {
        Self::every_second(Reading(128))
    }

    /// RFC 9000's rule by quic-go, which handles 32 packets at most before it sends (`maxPacketsToProcess` in `connection.go`).
    pub const fn quic_go() -> Self {
        Self::every_second(Reading(32))
    }

    const fn every_second(reading: Reading) -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::Every(QUIC_PACKETS),
            delay: DelayLimit::Fixed(MAX_ACK_DELAY),
            reordering: Reordering::Immediate,
            reading,
        })
    }

    /// aioquic: some time after the first packet that is not acknowledged. The number and order of later ones do not matter.
    pub const fn aioquic() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::Every(u32::MAX),
            delay: DelayLimit::Fixed(AIOQUIC_DELAY),
            reordering: Reordering::Threshold(0),
            reading: Reading::SINGLE,
        })
    }

    /// As requested by an ACK_FREQUENCY frame: an ACK for `packets` packets, after `max_ack_delay`, or when a packet is
    /// missing that is `reordering_threshold` below another (draft-ietf-quic-ack-frequency).
    pub const fn quic_ackfreq(
        packets: u32,
        max_ack_delay: Duration,
        reordering_threshold: u32,
        reading: Reading,
    ) -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::Every(packets),
            delay: DelayLimit::Fixed(max_ack_delay),
            reordering: Reordering::Threshold(reordering_threshold),
            reading,
        })
    }

    /// Chrome: after 100 packets one ACK per 10 packets, or after a quarter of RTT_min, limited to 1 to 25 ms; the
    /// first four packets above a gap are acknowledged at once (`QuicReceivedPacketManager` of quiche).
    pub const fn chrome() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 100,
            packets: PacketLimit::Every(10),
            delay: DelayLimit::QuarterRttMin { least: ALARM, most: MAX_ACK_DELAY },
            reordering: Reordering::FirstAboveGap(4),
            reading: Reading::SINGLE,
        })
    }

    /// neqo (Firefox): four ACKs per round trip, for 2 to 256 packets and after at most 50 ms; out-of-order packets are
    /// acknowledged at once. It reads until the socket would block (`neqo_http3conn_process_input`).
    pub const fn neqo() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::QuarterWindow { least: 2, most: 256 },
            delay: DelayLimit::QuarterRtt { least: ALARM, most: Duration::from_millis(50) },
            reordering: Reordering::Threshold(1),
            reading: Reading::ALL,
        })
    }

    /// picoquic: an ACK per quarter of the packets of a round trip, 2 to 32 (64 if RTT_min is 40 ms or more), or after a
    /// quarter of RTT_min, limited to 1 to 10 ms; out-of-order packets are acknowledged at once
    /// (`picoquic_compute_ack_gap_and_delay`).
    pub const fn picoquic() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::QuarterWindowByRttMin {
                below: Duration::from_millis(40),
                shorter: 32,
                longer: 64,
            },
            delay: DelayLimit::QuarterRttMin { least: ALARM, most: Duration::from_millis(10) },
            reordering: Reordering::Threshold(1),
            // `PICOQUIC_PACKET_LOOP_RECV_MAX`: packets that its loop reads before it sends.
            reading: Reading(10),
        })
    }

    /// Cloudflare's quiche: every packet, without a delayed ACK (cloudflare/quiche#1538).
    pub const fn quiche() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::Every(1),
            delay: DelayLimit::Fixed(MAX_ACK_DELAY),
            reordering: Reordering::Immediate,
            reading: Reading::ALL,
        })
    }

    /// mvfst: an ACK per 10 packets from the start (`kDefaultRxPacketsBeforeAck…Init`), or after a quarter of the round-trip
    /// time, up to 25 ms (`kAckTimerFactor`, `kMaxAckTimeout`); out-of-order packets are acknowledged at once. Its client reads 5 in a
    /// turn of its loop (`maxRecvBatchSize`).
    pub const fn mvfst() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::Every(10),
            delay: DelayLimit::QuarterRtt { least: ALARM, most: MAX_ACK_DELAY },
            reordering: Reordering::Immediate,
            reading: Reading(5),
        })
    }

    /// s2n-quic: an ACK per 10 packets (`packet_tolerance` in `ack_manager.rs`), or after 25 ms; out-of-order packets are acknowledged at
    /// once. It reads until the socket is empty.
    pub const fn s2n_quic() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::Every(10),
            delay: DelayLimit::Fixed(MAX_ACK_DELAY),
            reordering: Reordering::Immediate,
            reading: Reading::ALL,
        })
    }

    /// msquic: every second packet, or after 25 ms, until its sender asks for an ACK per 45 packets (`QuicSendFlush`). It does where its
    /// window would take more than a call sends: 40 packets (`QUIC_MAX_DATAGRAMS_PER_SEND`), and the rest of 64 kB, which have 44. In slow
    /// start an ACK makes room for twice its packets. One thread acknowledges all that another has read.
    pub const fn msquic() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::OnceBursts { burst: 20, asked: 45 },
            delay: DelayLimit::Fixed(MAX_ACK_DELAY),
            reordering: Reordering::Immediate,
            reading: Reading::ALL,
        })
    }

    /// The closest approximation of TACK with QUIC's extension: four ACKs per RTT_min for any number of packets, and a
    /// reordering threshold of 3.
    pub const fn tack_lite() -> Self {
        Self::Packets(PacketAcks {
            early_packets: 0,
            packets: PacketLimit::Unbounded,
            delay: DelayLimit::QuarterRttMin { least: Duration::ZERO, most: Duration::MAX },
            reordering: Reordering::Threshold(3),
            reading: Reading::ALL,
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
