//! Parses the first bytes of a UDP datagram: its kind and its connection.

use std::net::{IpAddr, SocketAddr};

use tacit_packet::Ecn;
use tacit_packet::tack::packet::ConnectionId;
use tacit_packet::tack::wire::Prefix;

/// First bytes of datagrams that are not packets of the core: type 15 and flags.
pub(crate) mod kind {
    pub const INITIATION: u8 = 0xf1;
    pub const RESPONSE: u8 = 0xf2;
    pub const FINISH: u8 = 0xf3;
    pub const RETRY: u8 = 0xf4;
    pub const RESET: u8 = 0xf5;
    pub const BUSY: u8 = 0xf6;
    /// The upper four bits of all these bytes; no packet of the core has them.
    pub const MASK: u8 = 0xf0;
}

/// The addresses of a datagram: the peer's, and this host's if the socket is bound to all of them. An answer leaves from the one to
/// which the question came, or its peer does not take it for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub peer: SocketAddr,
    pub host: Option<IpAddr>,
}

impl From<SocketAddr> for Route {
    fn from(peer: SocketAddr) -> Self {
        Self { peer, host: None }
    }
}

/// A received datagram.
pub(crate) struct Datagram<'a> {
    pub from: Route,
    pub ecn: Ecn,
    pub bytes: &'a mut [u8],
}

/// Builds the datagram of `kind` for `connection` with `body`.
pub(crate) fn datagram(kind: u8, connection: ConnectionId, body: &[u8]) -> Vec<u8> {
    [&[kind], connection.0.to_be_bytes().as_slice(), body].concat()
}

/// Kind, the receiver's connection ID, and the rest of a datagram that is not an initiation.
pub(crate) fn addressed(datagram: &[u8]) -> Option<(u8, ConnectionId, &[u8])> {
    let mut rest = datagram;
    let [kind] = take(&mut rest)?;
    Some((kind, ConnectionId(u32::from_be_bytes(take(&mut rest)?)), rest))
}

/// The connection number in a sealed `datagram`; `implied` if the datagram has none.
pub(crate) fn sealed_for(datagram: &[u8], implied: Option<u32>) -> Option<u32> {
    if is_handshake(datagram) {
        return None;
    }
    let prefix = Prefix::parse(datagram).ok()?;
    let leaves_out = prefix.short && prefix.connection == ConnectionId(0);
    Some(implied.filter(|_| leaves_out).unwrap_or(prefix.connection.0))
}

/// True for a handshake datagram or a reset.
pub(crate) fn is_handshake(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & kind::MASK == kind::MASK)
}

/// Splits the next bytes off `rest`.
pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*first)
}
