//! FWP: a receiver that acknowledges TCP segments which a Wi-Fi link without retransmissions lost, and fetches them over
//! HTTP (Havey and Almeroth, "Fast Wireless Protocol: A Network Stack Design for Wireless Transmission").
//!
//! A [`Shim`] below the receiver's TCP (the paper's compatible TCP, section V-C) replaces missing segments of a registered
//! flow by *placeholders*, so that no duplicate ACK leaves. It tells the flow's reader first ([`control`]). Losses beyond the
//! link's error rate are congestion, and TCP sees those holes. The shim never touches an unregistered flow, passes a
//! placeholder that its reader was not told of, or acknowledges data that the reader did not
//! [allow](control::ToShim::Allow).
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

use crate::units::{Bytes, Duration};

/// How the shim recognises holes of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placeholders {
    /// By TCP's sequence numbers: losses above the link's expected rate count as congestion (the paper).
    #[default]
    Tcp,
    /// The link's driver, which counts the frames that did not come ([`Shim::link_lost`]): section VII of the paper.
    Driver,
}

/// Limits of a [`Shim`], and how patient it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Time that reordering may explain a hole: later data waits this long before the hole is filled.
    pub settle: Duration,
    /// Margin, in tenths of a standard deviation, by which losses may exceed the link's expected losses before they count as
    /// congestion; 0 is the paper's comparison.
    pub margin_tenths: u32,
    /// Percent of a smoothed round trip after which a hole that was left to TCP is filled, if its retransmission seems lost; 0
    /// leaves it to TCP for ever.
    pub overdue_percent: u32,
    /// Most unrepaired holes of a flow.
    pub most_holes: u32,
    /// Most bytes in those.
    pub most_hole_bytes: Bytes,
    /// Time after which a hole counts as repaired or given up.
    pub patience: Duration,
    /// Flows looked after at once.
    pub flows: u32,
    /// The round trip of a flow that has not shown one.
    pub round_trip: Duration,
    /// How the shim recognises holes of the link.
    pub placeholders: Placeholders,
}

impl Config {
    /// No wait: the link does not reorder. A margin of three standard deviations, without which a link that loses just
    /// its expected share would be off half of the time. One and a half round trips for a retransmission: fast
    /// retransmit takes one, and half of one is the jitter of its queues. Holes of 64 MiB: 10 s of a tenth of 50 Mb/s, or of half
    /// a second's repair at 1 Gb/s. 40 ms are the paper's round trip (Table I).
    pub const USUAL: Self = Self {
        settle: Duration::ZERO,
        margin_tenths: 30,
        overdue_percent: 150,
        most_holes: 1 << 16,
        most_hole_bytes: Bytes(64 << 20),
        patience: Duration::from_secs(10),
        flows: 256,
        round_trip: Duration::from_millis(40),
        placeholders: Placeholders::Tcp,
    };
}
