//! Errors.

use std::io;

use crate::identity::PublicKey;

/// Why a connection failed or ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// No packet from the peer for too long. A server does not answer invalid handshakes either.
    #[error("the peer does not answer")]
    TimedOut,
    /// The peer's application closed the connection.
    #[error("the peer ended the connection: {text} (code {code})")]
    Closed {
        /// Error code.
        code: u32,
        /// Reason, may be empty.
        text: String,
    },
    /// The network reports that nobody listens on the port, and no server answered.
    #[error("nobody listens there: the network refuses the packets, and no server answers")]
    Unreachable,
    /// The server has no room for another connection.
    #[error("the server has no room: {0}")]
    Busy(Busy),
    /// The server was restarted and has lost the connection.
    #[error("the server has forgotten the connection: it was started again")]
    Forgotten,
    /// The connection ended without an application's reason: a protocol violation, or a peer that was not ready.
    #[error("the connection was reset")]
    Reset,
    /// This end closed the connection.
    #[error("the connection was closed here")]
    ClosedHere,
    /// The peer has another key than expected.
    #[error("the peer has the key {found}, not {expected}")]
    WrongPeer {
        /// The expected key.
        expected: PublicKey,
        /// The peer's key.
        found: PublicKey,
    },
    /// A name has no address.
    #[error("no address: {0}")]
    NoAddress(String),
    /// The endpoint is gone: its socket failed, or its runtime ended.
    #[error("the endpoint is gone: {0}")]
    Endpoint(String),
}

/// The limit that a server has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[repr(u8)]
pub enum Busy {
    /// Half-open handshakes.
    #[error("too many connections are being opened")]
    Handshakes = 1,
    /// Open connections.
    #[error("too many connections are open")]
    Connections = 2,
}

impl Busy {
    /// Decodes the byte of a datagram.
    pub(crate) fn of_octet(octet: u8) -> Option<Self> {
        [Self::Handshakes, Self::Connections].into_iter().find(|busy| *busy as u8 == octet)
    }
}

/// The code of a reset for lack of memory.
pub const NO_MEMORY: u32 = u32::MAX;

/// Why a stream ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer aborted its direction.
    #[error("the peer reset the stream ({})", reason(*.0))]
    Reset(u32),
    /// The peer reads no more.
    #[error("the peer stopped the stream ({})", reason(*.0))]
    Stopped(u32),
    /// This end reset it: all connections of this endpoint hold as much as [`max_memory`](crate::Config::max_memory) allows, and this
    /// was the fullest stream of the peer that holds most.
    #[error("reset for lack of memory: its peer held more than any other")]
    NoMemory,
    /// This end has ended it.
    #[error("the stream was ended here")]
    Ended,
    /// The connection ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

fn reason(code: u32) -> String {
    match code {
        NO_MEMORY => "it has no memory for what waits".to_owned(),
        code => format!("code {code}"),
    }
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match &error {
            StreamError::Reset(_) => io::ErrorKind::ConnectionReset,
            StreamError::Stopped(_) | StreamError::Ended => io::ErrorKind::BrokenPipe,
            StreamError::NoMemory => io::ErrorKind::OutOfMemory,
            StreamError::Connection(ConnectionError::TimedOut) => io::ErrorKind::TimedOut,
            StreamError::Connection(ConnectionError::Unreachable) => io::ErrorKind::ConnectionRefused,
            StreamError::Connection(ConnectionError::Forgotten) => io::ErrorKind::ConnectionReset,
            StreamError::Connection(_) => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, error)
    }
}

/// Why a datagram was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatagramError {
    /// It does not fit a packet.
    #[error("a datagram of {0} octets, where {1} fit a packet")]
    TooLong(usize, usize),
    /// The connection ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}
