//! The contract between a protocol core and its driver, and the types that all protocols share.

use crate::units::{FlowId, HostId, Instant};

/// A sans-IO protocol endpoint.
///
/// # The drain-before-wait law
///
/// After **any** call that takes `&mut self` and time or a packet, the driver
///
/// 1. calls [`poll_transmit`](Endpoint::poll_transmit) until it returns `None`,
/// 2. calls [`poll_event`](Endpoint::poll_event) until it returns `None`,
/// 3. reads [`poll_timeout`](Endpoint::poll_timeout) and arranges to call
///    [`handle_timeout`](Endpoint::handle_timeout) then.
///
/// Calling `handle_timeout` early, late or twice is harmless: an endpoint compares its own
/// deadlines with `now` and does only the work that is due. Time never runs backwards between calls.
pub trait Endpoint {
    /// Packets between endpoints.
    type Packet;
    /// Events that the endpoint reports to its user.
    type Event;

    /// Handles a packet that arrived at `now`.
    fn handle_packet(&mut self, now: Instant, packet: Self::Packet);

    /// Does everything that is due at `now`; has no effect if nothing is.
    fn handle_timeout(&mut self, now: Instant);

    /// The next packet to send at `now`, or `None` until the next `handle_*` or user call.
    fn poll_transmit(&mut self, now: Instant) -> Option<Self::Packet>;

    /// The next event for the user, or `None` until the next `handle_*` or user call.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// The time for the next `handle_timeout`; it may change after any `&mut` call.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// The flow of a connection and its two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Identifier of the connection, the same at both ends.
    pub flow: FlowId,
    /// This end.
    pub local: HostId,
    /// The other end.
    pub remote: HostId,
}

/// An event of a connection. Delivered bytes are read from counters, not from events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is done.
    Connected,
    /// Everything written so far is acknowledged.
    SendDone,
    /// The peer closed its direction; all it sent has arrived.
    PeerClosed,
    /// The connection ended in order, or its own user aborted it. If the end that closed first waits for late packets,
    /// as in TCP's TIME-WAIT, this comes after the wait.
    Closed,
    /// The peer reset or refused the connection.
    Reset,
    /// The peer stopped answering.
    TimedOut,
}
