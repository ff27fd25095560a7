//! FastACK: an access point that acknowledges TCP data on behalf of its clients (Bhartia et al., "Measurement-based,
//! Practical Techniques to Improve 802.11ac Performance", IMC 2017).
//!
//! An [`Agent`] sees packets before the Wi-Fi queue, their fates by link-layer ACKs, and packets from clients. It forges the
//! ACKs that a client is about to send, keeps copies until the client's own ACK covers them, and sends a copy again where the
//! client lacks it. It never acknowledges a byte whose MPDU was not acknowledged, offers more window than the client, or
//! hides anything else that a client says.
//!
//! Rules: `docs/design/fastack.md`.

mod agent;
mod cache;
mod counters;
mod flow;
mod uplink;

pub use agent::Agent;
pub use counters::Counters;

use crate::packet::Packet;
use crate::units::{Bytes, Duration};

/// Limits of an [`Agent`], and how patient it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Directions of connections looked after at once; others are left alone.
    pub flows: u32,
    /// Limit of the cached payload of a flow. The client acknowledges data beyond it.
    pub cache: Bytes,
    /// In-order segments per forged ACK. The remainder of a link-layer acknowledgment gets one too.
    pub ack_every: u32,
    /// Time for the client to acknowledge data that was acknowledged for it; doubles with each repeated copy.
    pub patience: Duration,
    /// Copies in a row that a client may leave unanswered before its flow is given up.
    pub tries: u32,
}

impl Config {
    /// An ACK for two segments (RFC 9293 section 3.8.6.3); longer than any delayed ACK of the simulator's or Linux's
    /// receivers; as many copies as fill a minute.
    pub const USUAL: Self = Self {
        flows: 256,
        cache: Bytes(8 << 20),
        ack_every: 2,
        patience: Duration::from_millis(300),
        tries: 10,
    };
}

/// Fate of a packet at the access point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward it unchanged.
    Pass,
    /// It goes no further.
    Drop,
    /// Forward this packet instead.
    Replace(Packet),
}
