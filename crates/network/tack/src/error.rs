//! Errors.

use std::io;

use crate::config::NARROW_MTU;
use crate::identity::PublicKey;

/// Why a connection failed or ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// No packet from the peer within the idle timeout. A server does not answer invalid handshakes either.
    #[error("the peer does not answer")]
    TimedOut,
    /// The peer's application closed the connection.
    #[error("the peer closed the connection: {reason} (code {code})")]
    ApplicationClosed {
        /// Error code.
        code: u32,
        /// Reason, may be empty.
        reason: String,
    },
    /// The network reports that no program listens on the port, and no server has answered.
    #[error("no server at this address: the network reports it unreachable")]
    Unreachable,
    /// The server has no room for another connection.
    #[error("the server has no room: {0}")]
    Busy(Busy),
    /// The server speaks another version of the protocol.
    #[error(
        "the server speaks another version of the protocol: run the same version of the program at both ends"
    )]
    OtherVersion,
    /// The server no longer knows the connection: it was restarted, or it has heard nothing from this end within its idle
    /// timeout, as after an outage.
    #[error("the server no longer knows the connection: it was restarted, or heard nothing for too long")]
    ServerRestarted,
    /// The connection ended without a reason from the application: after a protocol violation, or because the peer was
    /// not ready.
    #[error("the connection was reset")]
    Reset,
    /// This end closed the connection or its endpoint.
    #[error("the connection was closed here")]
    LocallyClosed,
    /// The path carries short packets, and none of 576 bytes: no data of this end or of the peer was acknowledged for the idle timeout.
    #[error("the path carries no packets of {NARROW_MTU} bytes: its MTU is smaller")]
    PathTooNarrow,
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
    /// The socket failed, or its runtime ended.
    #[error("the endpoint failed: {0}")]
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
    /// Open connections ([`max_connections`](crate::Config::max_connections)).
    #[error("too many connections are open")]
    Connections = 2,
}

impl Busy {
    /// Decodes the byte of a datagram.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Handshakes, Self::Connections].into_iter().find(|busy| *busy as u8 == byte)
    }
}

/// Why a stream ended early.
///
/// [`AsyncRead`](tokio::io::AsyncRead) and [`AsyncWrite`](tokio::io::AsyncWrite) return it inside an [`io::Error`];
/// [`get_ref`](io::Error::get_ref) returns it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer aborted its direction, with this code.
    #[error("the peer reset the stream ({})", reason(*.0))]
    Reset(u32),
    /// The peer stopped reading, with this code.
    #[error("the peer stopped the stream ({})", reason(*.0))]
    Stopped(u32),
    /// This end reset the stream because all connections of the endpoint together used up
    /// [`max_memory`](crate::Config::max_memory), and this was the largest stream of the peer that uses most.
    #[error("the stream was reset for lack of memory: its peer used more than any other")]
    OutOfMemory,
    /// This end has finished or reset the stream.
    #[error("the stream was closed here")]
    Closed,
    /// The connection ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl StreamError {
    /// The code of [`Reset`](Self::Reset) and [`Stopped`](Self::Stopped) from a peer that is out of memory.
    pub const OUT_OF_MEMORY_CODE: u32 = u32::MAX;
}

fn reason(code: u32) -> String {
    match code {
        StreamError::OUT_OF_MEMORY_CODE => "it is out of memory".to_owned(),
        code => format!("code {code}"),
    }
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match &error {
            StreamError::Reset(_) => io::ErrorKind::ConnectionReset,
            StreamError::Stopped(_) | StreamError::Closed => io::ErrorKind::BrokenPipe,
            StreamError::OutOfMemory => io::ErrorKind::OutOfMemory,
            StreamError::Connection(ConnectionError::TimedOut) => io::ErrorKind::TimedOut,
            StreamError::Connection(ConnectionError::Unreachable) => io::ErrorKind::ConnectionRefused,
            StreamError::Connection(ConnectionError::ServerRestarted) => io::ErrorKind::ConnectionReset,
            StreamError::Connection(_) => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, error)
    }
}

/// Why [`RecvStream::read_exact`](crate::RecvStream::read_exact) failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadExactError {
    /// The stream finished after this number of bytes.
    #[error("the stream finished {0} bytes into the read")]
    FinishedEarly(usize),
    /// The stream ended early.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// Why [`RecvStream::read_to_end`](crate::RecvStream::read_to_end) failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadToEndError {
    /// The stream is longer than the limit, in bytes.
    #[error("the stream is longer than {0} bytes")]
    TooLong(usize),
    /// The stream ended early.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

impl From<ReadExactError> for io::Error {
    fn from(error: ReadExactError) -> Self {
        match error {
            ReadExactError::Stream(error) => error.into(),
            error @ ReadExactError::FinishedEarly(_) => Self::new(io::ErrorKind::UnexpectedEof, error),
        }
    }
}

impl From<ReadToEndError> for io::Error {
    fn from(error: ReadToEndError) -> Self {
        match error {
            ReadToEndError::Stream(error) => error.into(),
            error @ ReadToEndError::TooLong(_) => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

/// Why a datagram could not be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// It does not fit a packet.
    #[error("a datagram of {len} bytes, where {max} fit a packet")]
    TooLarge {
        /// Its length in bytes.
        len: usize,
        /// Length of the longest that fits, in bytes.
        max: usize,
    },
    /// The connection ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}
