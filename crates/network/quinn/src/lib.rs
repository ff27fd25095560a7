#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod controller;
mod delivery;
#[cfg(test)]
mod model;
mod two_windows;
mod windowed;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory};
use quinn::{AckFrequencyConfig, TransportConfig, VarInt};

use socket2::{Domain, Protocol, Socket, Type};
use tacit_ack::{AckClock, Arriving, Bytes, Request};

use crate::two_windows::TwoWindows;

/// A gap that makes the sender declare a loss is acknowledged at once: the sender's packet threshold minus one
/// (draft-ietf-quic-ack-frequency-04 section 4, RFC 9002 section 6.1.1).
const REORDERING_THRESHOLD: VarInt = VarInt::from_u32(2);

/// A congestion controller that is quinn's CUBIC until losses have left the path short of data, and then has as much in flight
/// as is delivered in a round trip and between two ACKs.
///
/// Pass it to [`TransportConfig::congestion_controller_factory`]. Losses below one packet in eight do not reduce its rate below
/// the delivery rate; persistent congestion (RFC 9002 section 7.6) does. On paths shorter than a millisecond it is quinn's
/// CUBIC. It works with any peer and any ACK frequency.
///
/// ```
/// use std::sync::Arc;
///
/// let mut transport = quinn::TransportConfig::default();
/// transport.congestion_controller_factory(Arc::new(tacit_quinn::Tack::default()));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Tack {}

impl ControllerFactory for Tack {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(TwoWindows::new(now, current_mtu))
    }
}

/// What an earlier connection has found out about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Round-trip time, with the queues that usually stand.
    pub rtt: Duration,
    /// Bytes in flight that fill it.
    pub window_bytes: u64,
    /// Bytes of a full-sized packet.
    pub packet_bytes: u16,
}

impl From<&quinn::Connection> for Path {
    fn from(connection: &quinn::Connection) -> Self {
        let path = connection.stats().path;
        Self { rtt: path.rtt, window_bytes: path.cwnd, packet_bytes: path.current_mtu }
    }
}

impl Path {
    /// The law's request for such a path: four ACKs a round trip.
    fn request(&self) -> Request {
        let rtt = u64::try_from(self.rtt.as_nanos()).unwrap_or(u64::MAX);
        let rtt_min = tacit_ack::Duration::from_nanos(rtt);
        let arriving = Arriving { rtt_min, packet: Bytes(self.packet_bytes.into()), ..Arriving::default() };
        AckClock::USUAL.request(&arriving, Bytes(self.window_bytes))
    }
}

/// The ACK frequency to request for a path that is known, or `None` where nothing is worth a request: where round trips are
/// shorter than 4 ms, or 32 packets or fewer fill it.
///
/// quinn sends this request once, when a connection begins (the ACK_FREQUENCY frame of draft-ietf-quic-ack-frequency-04), if the
/// peer has announced the extension (`min_ack_delay`). It holds for slow start as well, whose small windows then wait for
/// their ACKs: for connections that carry tens of megabytes this is little, for shorter ones it is up to a third of their
/// time. Hence [`configure`] requests nothing.
pub fn ack_frequency(path: &Path) -> Option<AckFrequencyConfig> {
    let request = path.request();
    if request == Request::PLAIN {
        return None;
    }
    let mut config = AckFrequencyConfig::default();
    config
        .max_ack_delay(Some(Duration::from_nanos(request.delay.as_nanos())))
        .ack_eliciting_threshold(VarInt::from_u32(request.packets - 1))
        .reordering_threshold(REORDERING_THRESHOLD);
    Some(config)
}

/// Room for what arrives while the program does not read: an A-MPDU of 802.11be, which has 1,024 packets, takes 2.4 MB of a Linux
/// socket's buffer.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A socket for [`quinn::Endpoint::new`] that has room for what an access point sends at once.
///
/// quinn's own have the system's default, and what does not fit is lost: of an A-MPDU of 802.11ax, up to 256 packets, Linux's 212,992
/// bytes hold 92. The end that receives needs the room.
///
/// Systems limit it, and this takes what they allow: Linux since 6.17 all of its 4 MiB, earlier versions 425,984 bytes unless
/// `net.core.rmem_max` is larger.
///
/// ```no_run
/// use std::sync::Arc;
///
/// let socket = tacit_quinn::bind((std::net::Ipv4Addr::UNSPECIFIED, 0).into())?;
/// let runtime = Arc::new(quinn::TokioRuntime);
/// let client = quinn::Endpoint::new(quinn::EndpointConfig::default(), None, socket, runtime)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        // As quinn's own client: some systems have it off by default, and others allow no change.
        let _ = socket.set_only_v6(false);
    }
    // Linux takes the most that it allows. Others refuse what is more.
    let mut room = RECEIVE_BUFFER;
    while socket.set_recv_buffer_size(room).is_err() && room > 1 {
        room /= 2;
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Sets [`Tack`] and nothing else: peers acknowledge as they do for quinn, and no transfer is slower than quinn's own,
/// unless queues on the way are very short.
///
/// Each end must configure the data that it sends.
pub fn configure(transport: &mut TransportConfig) {
    transport.congestion_controller_factory(Arc::new(Tack::default()));
}

/// Sets [`Tack`], and the [`ack_frequency`] of a path that is known, for connections that carry tens of megabytes.
///
/// A client knows its path by an earlier connection, and connects with [`quinn::Endpoint::connect_with`]; a server knows that of an
/// address, and accepts with [`quinn::Incoming::accept_with`].
pub fn configure_for(transport: &mut TransportConfig, path: &Path) {
    configure(transport);
    transport.ack_frequency_config(ack_frequency(path));
}
