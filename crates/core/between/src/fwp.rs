//! FWP: a receiver that acknowledges TCP segments lost on a Wi-Fi link without retransmissions, and fetches them over
//! HTTP (Havey and Almeroth, "Fast Wireless Protocol: A Network Stack Design for Wireless Transmission").
//!
//! A [`Shim`] below the receiver's TCP (the paper's compatible TCP, section V-C) replaces missing segments of a
//! registered flow by *placeholders*, so that no duplicate ACK is sent. It first informs the flow's reader
//! ([`control`]). Losses beyond the link's error rate are congestion, and TCP sees those holes. The shim never touches
//! an unregistered flow, never delivers a placeholder that was not announced to the reader, and never acknowledges data
//! that the reader did not [allow](control::ToShim::Allow).
//!
//! Rules: `docs/design/fwp.md`.

pub mod control;
mod counters;
mod flow;
mod handshake;
mod marker;
mod packet;
mod readers;
pub mod repair;
mod shim;
mod switch;

pub use counters::Counters;
pub use marker::Marker;
pub use packet::SegmentPacket;
pub use readers::Readers;
pub use shim::Shim;

use tacit_packet::units::{Bytes, Duration};

/// How the shim detects holes that the link caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placeholders {
    /// By TCP's sequence numbers; losses above the link's expected rate count as congestion (the paper).
    Tcp,
    /// By the link's driver, which counts lost frames ([`Shim::link_lost`]): section VII of the paper. The default here, because
    /// it needs no expected rate, and losses in bursts do not exceed it.
    #[default]
    Driver,
}

/// Limits and timeouts of a [`Shim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long reordering may explain a hole: later data waits this long before the hole is filled.
    pub settle: Duration,
    /// Margin, in tenths of a standard deviation, by which losses may exceed the link's expected losses before they count as
    /// congestion; 0 is the paper's comparison.
    pub margin_tenths: u32,
    /// Percentage of a smoothed round-trip time after which a hole that was left to TCP is filled, if its
    /// retransmission seems lost; 0 leaves it to TCP forever.
    pub overdue_percent: u32,
    /// Most unrepaired holes of a flow.
    pub most_holes: u32,
    /// Most bytes in those.
    pub most_hole_bytes: Bytes,
    /// Time after which a hole counts as repaired or given up.
    pub patience: Duration,
    /// Most registered flows.
    pub flows: u32,
    /// Round-trip time of a flow before its first measurement.
    pub round_trip: Duration,
    /// How the shim detects holes that the link caused.
    pub placeholders: Placeholders,
    /// The link's expected losses, in frames per million, which [`Placeholders::Tcp`] compares with. `None`: what the driver counted
    /// in the same round trip, because a receiver does not know the channel's error rate. The paper takes the rate of the MCS.
    pub expected_ppm: Option<u32>,
}

impl Config {
    /// No wait, because the link does not reorder. A margin of three standard deviations; without it, a link with
    /// exactly its expected loss would be switched off half of the time. One and a half round trips for a
    /// retransmission: fast retransmit takes one, and half of one covers the jitter of its queues. Holes of 64 MiB: 10
    /// s of a tenth of 50 Mb/s, or half a second of repair at 1 Gb/s. 40 ms is the paper's round-trip time (Table I).
    pub const USUAL: Self = Self {
        settle: Duration::ZERO,
        margin_tenths: 30,
        overdue_percent: 150,
        most_holes: 1 << 16,
        most_hole_bytes: Bytes(64 << 20),
        patience: Duration::from_secs(10),
        flows: 256,
        round_trip: Duration::from_millis(40),
        placeholders: Placeholders::Driver,
        expected_ppm: None,
    };
}
