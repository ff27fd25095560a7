//! Traits and settings that all transports share.

use anyhow::Result;
use clap::ValueEnum;
use tokio::io::{AsyncRead, AsyncWrite};

/// Limit of the windows on the bytes in flight: that of TACK.
pub const WINDOW: u32 = 64 << 20;
/// Buffers of the sockets: those of TACK.
pub const SOCKET_BUFFER: usize = 4 << 20;

/// Congestion control of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Congestion {
    /// The stack's own choice
    Default,
    Cubic,
    Bbr,
}

/// Settings of a job.
#[derive(Clone, Debug)]
pub struct Settings {
    pub congestion: Congestion,
    pub seconds: Option<u64>,
    pub bytes: Option<u64>,
    pub requests: u32,
    pub connections: usize,
}

/// Packets as a stack counts them.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Packets {
    pub sent: Option<u64>,
    pub received: Option<u64>,
    pub acks_sent: Option<u64>,
    pub acks_received: Option<u64>,
}

impl std::ops::Add for Packets {
    type Output = Self;

    /// What is known of both.
    fn add(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        Self {
            sent: sum(self.sent, other.sent),
            received: sum(self.received, other.received),
            acks_sent: sum(self.acks_sent, other.acks_sent),
            acks_received: sum(self.acks_received, other.acks_received),
        }
    }
}

/// Both directions of a stream.
pub type Pair = (Box<dyn AsyncWrite + Unpin>, Box<dyn AsyncRead + Unpin>);

/// A connection.
pub trait Link {
    /// Opens a stream.
    async fn open(&mut self) -> Result<Pair>;
    /// Takes the next that the peer opens; none where the connection has ended.
    async fn accept(&mut self) -> Option<Pair>;
    /// Counts of packets.
    fn packets(&self) -> Packets;
    /// Tells the peer that this is the end.
    fn close(&mut self);
}

/// A server.
pub trait Listen {
    type Link: Link;
    /// The next client.
    async fn accept(&mut self) -> Result<Self::Link>;
}

/// A client.
pub trait Dial {
    type Link: Link;
    /// A connection to the server.
    async fn connect(&mut self) -> Result<Self::Link>;
    /// Lets the last packets leave.
    async fn drain(&mut self);
}
