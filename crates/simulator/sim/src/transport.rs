//! All connection-oriented transports behind one type.
//!
//! Users choose a transport by a [`Config`] and name none after that. Another transport is a variant here and a module with
//! the methods that the arms below call. Datagrams have no connection: see [`udp`](tacit_packet::udp).

use tacit_congestion::rre::SharedClient;
use tacit_packet::Packet;
use tacit_packet::endpoint::{Endpoint, Ends, Event};
use tacit_packet::units::{Bytes, Instant, SeqNumber};
use tacit_tack_proto as tack;
use tacit_tcp as tcp;

pub use tacit_packet::Stats;

/// Which transport, and how it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Config {
    /// TCP.
    Tcp(tcp::Config),
    /// TACK.
    Tack(tack::Config),
}

impl Config {
    /// Bytes of data in a full-sized packet.
    pub fn mss(&self) -> u32 {
        match self {
            Self::Tcp(tcp) => u32::from(tcp.mss()),
            Self::Tack(tack) => tack.mss(),
        }
    }
}

impl From<tack::Config> for Config {
    fn from(config: tack::Config) -> Self {
        Self::Tack(config)
    }
}

impl From<tcp::Config> for Config {
    fn from(config: tcp::Config) -> Self {
        Self::Tcp(config)
    }
}

/// One end of a connection.
///
/// A sans-IO [`Endpoint`]: see there for how it is driven. [`write`](Self::write) and [`close`](Self::close) take no
/// time; their effects appear on the next [`poll_transmit`](Endpoint::poll_transmit), so drain after them as after
/// any other call.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a connection is made once and then stays in its box")]
pub enum Connection {
    /// TCP.
    Tcp(tcp::Connection),
    /// TACK. Boxed, because most connections are TCP and stay inline.
    Tack(Box<tack::Connection>),
}

impl Connection {
    /// Opens a connection. All that the transport leaves to chance, such as the first sequence number, is `seed` or follows
    /// from it.
    pub fn connect(config: &Config, ends: Ends, seed: u32, now: Instant) -> Self {
        match config {
            Config::Tcp(config) => Self::Tcp(tcp::Connection::connect(*config, ends, SeqNumber(seed), now)),
            Config::Tack(config) => Self::Tack(Box::new(tack::Connection::connect(*config, ends, seed, now))),
        }
    }

    /// Waits for the peer to open the connection; `seed` as in [`connect`](Self::connect).
    pub fn listen(config: &Config, ends: Ends, seed: u32) -> Self {
        match config {
            Config::Tcp(config) => Self::Tcp(tcp::Connection::listen(*config, ends, SeqNumber(seed))),
            Config::Tack(config) => Self::Tack(Box::new(tack::Connection::listen(*config, ends, seed))),
        }
    }

    /// Says whether the end has a socket for itself, as clients have, before it sends anything: packets of TACK to it are shorter
    /// ([there](tack::Connection::set_connection_id_implied)). Of no effect on TCP, which has addresses for that.
    pub fn set_connection_id_implied(&mut self, implied: bool) {
        if let Self::Tack(tack) = self {
            tack.set_connection_id_implied(implied);
        }
    }

    /// Shares what TCP-RRE knows of the peer with other connections to it, before the connection is established. Of no
    /// effect without TCP-RRE.
    pub fn share_client(&mut self, client: &SharedClient) {
        if let Self::Tcp(tcp) = self {
            tcp.share_client(client.clone());
        }
    }

    /// Adds `bytes` to the data to send. The supply saturates: `write(u64::MAX)` is a source that never ends. Before the
    /// connection is established the data waits; after [`close`](Self::close) it is ignored.
    #[inline]
    pub fn write(&mut self, bytes: u64) {
        match self {
            Self::Tcp(tcp) => tcp.write(bytes),
            Self::Tack(tack) => tack.write(bytes),
        }
    }

    /// Ends the sending direction after everything written. Data of the peer is still received.
    pub fn close(&mut self) {
        match self {
            Self::Tcp(tcp) => tcp.close(),
            Self::Tack(tack) => tack.close(),
        }
    }

    /// Bytes handed to the application, in order and once.
    #[inline]
    pub fn delivered_bytes(&self) -> u64 {
        match self {
            Self::Tcp(tcp) => tcp.delivered_bytes(),
            Self::Tack(tack) => tack.delivered_bytes(),
        }
    }

    /// Bytes that arrived and wait for others before them.
    pub fn blocked_bytes(&self) -> u64 {
        match self {
            Self::Tcp(tcp) => tcp.blocked_bytes(),
            Self::Tack(tack) => tack.blocked_bytes(),
        }
    }

    /// Bytes written and not yet sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        match self {
            Self::Tcp(tcp) => tcp.unsent(),
            Self::Tack(tack) => tack.unsent(),
        }
    }

    /// Bytes of the connection that may wait in the queue of its own host, if that is limited
    /// ([`tcp::Connection::small_queue`], [`tack::Connection::small_queue`]).
    pub fn small_queue(&self) -> Option<Bytes> {
        match self {
            Self::Tcp(tcp) => tcp.small_queue(),
            Self::Tack(tack) => tack.small_queue(),
        }
    }

    /// Counts so far, and readings as of now.
    pub fn stats(&self) -> Stats {
        match self {
            Self::Tcp(tcp) => tcp.stats(),
            Self::Tack(tack) => tack.stats(),
        }
    }

    /// Verifies the invariants that hold after all packets to send were taken.
    ///
    /// # Errors
    /// A wait that would never end if the peer said nothing more.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Tcp(tcp) => tcp.check(),
            Self::Tack(tack) => tack.check(),
        }
    }
}

impl Endpoint for Connection {
    type Packet = Packet;
    type Event = Event;

    #[inline]
    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        match self {
            Self::Tcp(tcp) => tcp.handle_packet(now, packet),
            Self::Tack(tack) => tack.handle_packet(now, packet),
        }
    }

    #[inline]
    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Tcp(tcp) => tcp.handle_timeout(now),
            Self::Tack(tack) => tack.handle_timeout(now),
        }
    }

    // Always: a call here moves each packet once more.
    #[inline(always)]
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        match self {
            Self::Tcp(tcp) => tcp.poll_transmit(now),
            Self::Tack(tack) => tack.poll_transmit(now),
        }
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Tcp(tcp) => tcp.poll_event(),
            Self::Tack(tack) => tack.poll_event(),
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Tcp(tcp) => tcp.poll_timeout(),
            Self::Tack(tack) => tack.poll_timeout(),
        }
    }
}
