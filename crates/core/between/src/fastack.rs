//! FastACK: an access point that acknowledges TCP data on behalf of its clients (Bhartia et al., "Measurement-based,
//! Practical Techniques to Improve 802.11ac Performance", IMC 2017).
//!
//! An [`Agent`] sees packets before the Wi-Fi queue, their fates by link-layer ACKs, and packets from clients. It
//! forges the ACKs that a client is about to send, keeps copies until the client's own ACK covers them, and retransmits
//! a copy that the client lacks. It never acknowledges a byte whose MPDU was not acknowledged, never offers more window
//! than the client, and never hides anything else that a client sends.
//!
//! Rules: `docs/design/fastack.md`.

mod agent;
mod cache;
mod counters;
mod flow;
mod uplink;

pub use agent::Agent;
pub use counters::Counters;

use tacit_packet::Packet;
use tacit_packet::units::{Bytes, Duration};

/// Limits and timeouts of an [`Agent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most directions of connections that are handled; others are left alone.
    pub flows: u32,
    /// Most cached payload per flow. The client itself acknowledges data beyond it.
    pub cache: Bytes,
    /// In-order segments per forged ACK. The rest of a link-layer acknowledgment gets a forged ACK, too.
    pub ack_every: u32,
    /// How long the client may take to acknowledge data that was acknowledged for it; doubles with each further copy.
    pub patience: Duration,
    /// Copies in a row that a client may leave unanswered before its flow is abandoned.
    pub tries: u32,
}

impl Config {
    /// An ACK per two segments (RFC 9293 section 3.8.6.3); a time longer than any delayed ACK of the simulator's or
    /// Linux's receivers; a number of copies that fills a minute.
    pub const USUAL: Self = Self {
        flows: 256,
        cache: Bytes(8 << 20),
        ack_every: 2,
        patience: Duration::from_millis(300),
        tries: 10,
    };
}

/// What the access point does with a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward it unchanged.
    Pass,
    /// Do not forward it.
    Drop,
    /// Forward this packet instead.
    Replace(Packet),
}
