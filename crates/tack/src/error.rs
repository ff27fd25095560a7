//! What may go wrong.

use std::io;

use crate::identity::PublicKey;

/// Why there is no connection, or none any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// Nothing came from the peer for too long. Who is not allowed, or has the wrong keys, hears nothing either.
    #[error("the peer does not answer")]
    TimedOut,
    /// The peer ended the connection, for reasons of the application.
    #[error("the peer ended the connection: {text} (code {code})")]
    Closed {
        /// In numbers.
        code: u32,
        /// In words; empty where there are none.
        text: String,
    },
    /// The network says that nobody listens there, and nobody answered: no server runs, or at another port.
    #[error("nobody listens there: the network refuses what is sent, and no server answers")]
    Unreachable,
    /// The server has no room for another connection.
    #[error("the server has no room: {0}")]
    Busy(Busy),
    /// The server knows nothing of the connection any more: it was started again.
    #[error("the server has forgotten the connection: it was started again")]
    Forgotten,
    /// The connection ended without a reason of the application: one end broke a rule of the protocol, or was not ready to talk.
    #[error("the connection was reset")]
    Reset,
    /// This end closed the connection.
    #[error("the connection was closed here")]
    ClosedHere,
    /// The peer is not the one that was expected.
    #[error("the peer has the key {found}, not {expected}")]
    WrongPeer {
        /// The key that was expected.
        expected: PublicKey,
        /// The key that it has.
        found: PublicKey,
    },
    /// A name stands for no address.
    #[error("no address: {0}")]
    NoAddress(String),
    /// The endpoint is gone: its socket failed, or its runtime ended.
    #[error("the endpoint is gone: {0}")]
    Endpoint(String),
}

/// What a server has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[repr(u8)]
pub enum Busy {
    /// As many are being opened as it remembers.
    #[error("too many connections are being opened")]
    Handshakes = 1,
    /// As many are open as it takes.
    #[error("as many connections are open as it takes")]
    Connections = 2,
}

impl Busy {
    /// What the octet of a datagram stands for.
    pub(crate) fn of_octet(octet: u8) -> Option<Self> {
        [Self::Handshakes, Self::Connections].into_iter().find(|busy| *busy as u8 == octet)
    }
}

/// The code with which a peer hears that a stream was given up for want of memory: the words "no memory" have none of their own.
pub const NO_MEMORY: u32 = u32::MAX;

/// Why a stream gives or takes no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer gave up what it sends.
    #[error("the peer reset the stream ({})", reason(*.0))]
    Reset(u32),
    /// The peer wants no more.
    #[error("the peer stopped the stream ({})", reason(*.0))]
    Stopped(u32),
    /// It was given up here: all connections of this endpoint hold as much as [`max_memory`](crate::Config::max_memory) says, and this
    /// was the fullest stream of the peer that holds most.
    #[error("given up for want of memory: it held more than others of this end")]
    NoMemory,
    /// It was ended here before.
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

/// Why a datagram was not taken.
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
