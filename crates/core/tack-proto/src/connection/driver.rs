//! The face of a connection for a driver that has sockets, keys and bytes: numbers and places in 64 bits, datagrams, paths.

use super::{Accepted, Body, Connection, Ecn, State};
use tacit_packet::tack::packet::{self, CloseCode, ConnectionId, Token, padding_for};
use tacit_packet::units::{Instant, SeqNumber};

/// Bytes of UDP payload that every path is to take (RFC 9000 section 14).
const SMALLEST_PAYLOAD: u32 = 1200;

/// A packet that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The packet.
    pub packet: packet::Packet,
    /// How the IP packet is marked.
    pub ecn: Ecn,
    /// Its whole number: the nonce.
    pub number: u64,
    /// Which bytes it carries: place of the first in the stream of [`Body::Data`], number of a [`Body::Datagram`] as
    /// [`Connection::send_datagram`] gave it; 0 for others.
    pub start: u64,
}

/// Content of an arrived packet for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Bytes of a stream.
    Bytes(Accepted),
    /// A datagram, all that the packet carries: its length in bytes.
    Datagram(u16),
    /// The peer wants to hear this token, along the path on which it came: [`Connection::path_response`].
    PathChallenge([u8; 8]),
    /// The peer has heard this token.
    PathResponse([u8; 8]),
}

/// A datagram does not fit a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a datagram of {0} bytes where {1} fit")]
pub struct TooLong(pub u32, pub u32);

impl Connection {
    /// Sets the number by which the peer addresses this end, which must not be 0. The default follows from the seed. A driver
    /// with several connections keeps their numbers distinct, and the peer should not learn the seed. Where the number is
    /// [implied](ConnectionId::is_implied), short data comes without it, so a driver gives such a number to one connection of a
    /// socket at a time.
    pub fn set_connection_id(&mut self, id: ConnectionId) {
        debug_assert!(id.0 != 0 && self.packets_sent == 0, "the number is 0, or known to the peer");
        self.local = id;
    }

    /// Says whether this end has a socket for itself, so that short data to it goes without the number of the connection. The
    /// default is that the end that opens the connection has.
    pub fn set_connection_id_implied(&mut self, implied: bool) {
        debug_assert!(self.packets_sent == 0, "the number is known to the peer");
        self.local = self.local.implied_or_not(implied);
    }

    /// Packets begin at [`min_mtu`](crate::Config::min_mtu): the path may carry none of
    /// [`mtu`](crate::Config::mtu). To be called before the peer's hello arrives.
    pub fn begin_at_min_mtu(&mut self) {
        self.sender.begin_at_min_mtu();
    }

    /// Mixes the secret `fresh` into the generator of skipped packet numbers. A peer that has seen three skipped numbers could
    /// compute the 32-bit seed; fresh values between them prevent that.
    pub fn add_entropy(&mut self, fresh: u32) {
        self.sender.add_entropy(fresh);
    }

    /// Handles a packet that arrived at `now`, and returns its part for the driver;
    /// [`handle_packet`](tacit_packet::Endpoint::handle_packet) returns nothing.
    pub fn receive(&mut self, now: Instant, packet: &packet::Packet, ecn: Ecn) -> Option<Received> {
        self.handle(now, packet, ecn)
    }

    /// The next packet to send at `now`; as [`poll_transmit`](tacit_packet::Endpoint::poll_transmit).
    pub fn poll_packet(&mut self, now: Instant) -> Option<Transmit> {
        let packet = self.next_packet(now)?;
        Some(self.transmit(packet))
    }

    fn transmit(&self, packet: packet::Packet) -> Transmit {
        let start = match packet.body {
            Body::Data(_) => self.sender.latest_start().unwrap_or(0),
            Body::Datagram(_) => self.sender.controls.latest(),
            _ => 0,
        };
        Transmit { ecn: self.ecn(&packet), number: self.sender.latest_number(), start, packet }
    }

    /// The full 64-bit number of a packet that carries the lower bits `number`, for opening its seal: 16 bits of
    /// [short](packet::Packet::is_short) data, 32 of others.
    pub fn whole_number(&self, number: SeqNumber, short: bool) -> u64 {
        self.receiver.whole(number, short)
    }

    /// Queues a datagram of `len` bytes, which is sent once, and returns its number, counted by one. If too many wait, the
    /// oldest is dropped: those below [`oldest_datagram`](Self::oldest_datagram).
    ///
    /// # Errors
    /// Where it is longer than [`max_datagram`](Self::max_datagram).
    pub fn send_datagram(&mut self, len: u32) -> Result<u64, TooLong> {
        let most = self.max_datagram();
        if len > most {
            return Err(TooLong(len, most));
        }
        Ok(self.sender.controls.queue(len))
    }

    /// Bytes of the longest datagram that fits a packet now.
    pub fn max_datagram(&self) -> u32 {
        self.sender.max_datagram()
    }

    /// Datagrams that [`send_datagram`](Self::send_datagram) takes before it drops one.
    pub fn datagram_room(&self) -> usize {
        self.sender.datagram_room()
    }

    /// The number of the oldest datagram that waits, or of the next.
    pub fn oldest_datagram(&self) -> u64 {
        self.sender.controls.oldest()
    }

    /// A path challenge to send at once along a new path (RFC 9000 section 8.2.1), of at most `room` bytes of UDP payload. The peer
    /// does not acknowledge it: without a response, send another. `None` before the connection is established.
    pub fn path_challenge(&mut self, now: Instant, token: [u8; 8], room: u32) -> Option<Transmit> {
        self.path_packet(now, token, room, Body::PathChallenge)
    }

    /// The answer to a path challenge, to be sent along the path on which that came; otherwise as
    /// [`path_challenge`](Self::path_challenge).
    pub fn path_response(&mut self, now: Instant, token: [u8; 8], room: u32) -> Option<Transmit> {
        self.path_packet(now, token, room, Body::PathResponse)
    }

    fn path_packet(
        &mut self,
        now: Instant,
        token: [u8; 8],
        room: u32,
        body: impl FnOnce(Token) -> Body,
    ) -> Option<Transmit> {
        if self.state != State::Established {
            return None;
        }
        let padding = padding_for(SMALLEST_PAYLOAD.min(room)).saturating_sub(token.len() as u16);
        let packet = self.numbered(now, body(Token { token, padding }));
        Some(self.transmit(packet))
    }

    /// Packets take another path: round-trip time, rate, packet length and congestion state are reset (RFC 9000 section 9.4).
    /// Nothing is declared lost. The driver validates the path.
    pub fn on_path_changed(&mut self, now: Instant) {
        self.sender.on_path_changed(now, self.seed);
    }

    /// Probes the peer with a packet that it must acknowledge.
    pub fn ping(&mut self) {
        self.confirm_due = true;
    }

    /// Packets go to another port of the peer's host. The path is the same (RFC 9000 section 9.4), and packets in flight to the
    /// old port are lost. The peer is asked at once for its state.
    pub fn on_port_changed(&mut self) {
        self.sender.restart_probes();
    }

    /// Bytes of UDP payload of the longest packets that the path is known to take (RFC 8899).
    pub fn path_payload(&self) -> u32 {
        self.sender.path_payload()
    }

    /// True when the peer acknowledges short packets, and no data for the [idle timeout](crate::Config::idle_timeout):
    /// the path carries no packets of [`min_mtu`](crate::Config::min_mtu).
    pub fn is_path_too_narrow(&self, now: Instant) -> bool {
        self.state == State::Established && self.sender.is_path_too_narrow(now)
    }

    /// Aborts the connection because [the path is too narrow](Self::is_path_too_narrow), which the peer learns.
    pub fn abort_too_narrow(&mut self) {
        self.abort_for(CloseCode::PathTooNarrow);
    }

    /// Why the peer ended the connection, if it did.
    pub fn peer_gave_up(&self) -> Option<CloseCode> {
        self.peer_gave_up
    }

    /// The connection number by which the peer is addressed; 0 before it is known.
    pub fn peer_id(&self) -> ConnectionId {
        self.peer
    }

    /// Packets that were held lost so far.
    pub fn packets_lost(&self) -> u64 {
        self.sender.counters.packets_lost
    }

    /// Times that the retransmission timeout passed so far.
    pub fn timeouts(&self) -> u64 {
        self.sender.counters.timeouts
    }

    /// Keeps the numbers of packets that are held lost from now on, until [`take_losses`](Self::take_losses) has them.
    pub fn watch_losses(&mut self) {
        self.sender.losses.get_or_insert_default();
    }

    /// Whole numbers of the packets that were held lost since this was asked last; none unless they are watched.
    pub fn take_losses(&mut self) -> Vec<u64> {
        self.sender.losses.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// The system sends no datagram of more than `bytes` of UDP payload.
    pub fn set_max_payload(&mut self, bytes: u32) {
        self.sender.set_max_payload(bytes);
        self.receiver.set_max_payload(bytes);
    }
}
