//! Traits and settings that all transports share.

use std::net::{SocketAddr, UdpSocket};

use anyhow::Result;
use clap::ValueEnum;
use socket2::{Domain, Protocol, Socket, Type};
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

/// Windows on the bytes in flight, and buffers of the sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Windows {
    /// The stack's own
    Own,
    /// The stack's own, and the receive buffer of `tacit_quinn::bind`
    Socket,
    /// 64 MiB, and TACK's buffers
    Large,
}

/// Settings of a job.
#[derive(Clone, Debug)]
pub struct Settings {
    pub congestion: Congestion,
    pub windows: Windows,
    pub seconds: Option<u64>,
    pub bytes: Option<u64>,
    pub requests: u32,
    pub connections: usize,
    pub objects: u32,
    pub times: u32,
}

/// The name of a value on the command line.
pub fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
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
    /// Whether each object can have a stream of its own.
    const MULTIPLEXED: bool = true;

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

/// A socket at `address`.
pub fn socket(address: SocketAddr, windows: Windows) -> Result<UdpSocket> {
    if windows == Windows::Socket {
        return Ok(tacit_quinn::bind(address)?);
    }
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if windows == Windows::Large {
        // The system caps them, as it caps those of TACK's sockets.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}
