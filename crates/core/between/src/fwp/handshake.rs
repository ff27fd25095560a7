//! Handshakes of connections that are not registered yet: a flow can be registered only if its handshake was seen.

use tacit_packet::FlowKey;
use tacit_packet::position::Position;
use tacit_packet::tcp::{Flags, Segment};
use tacit_packet::units::SeqNumber;

/// The SYNs of a connection, and its progress.
#[derive(Clone, Debug)]
pub(super) struct Handshake<P> {
    pub key: FlowKey,
    /// The connection with the largest age is the newest.
    age: u64,
    /// The host has everything before this position. A nearby position is needed to extend 32-bit numbers beyond 2 GiB.
    pub reached: Position,
    /// Sequence number of the first byte towards the host, and the SYN before it.
    pub down: Option<(SeqNumber, P)>,
    /// The host's window shift, if both ends scale windows.
    host_scale: Option<u8>,
    sender_scales: bool,
}

impl<P> Handshake<P> {
    /// For a connection that is no longer registered.
    pub fn known(key: FlowKey, (first, like): (SeqNumber, P), scale: u8, reached: Position) -> Self {
        Self { key, age: 0, reached, down: Some((first, like)), host_scale: Some(scale), sender_scales: true }
    }

    /// Shift of the host's windows; "the maximum scale exponent is limited to 14" (RFC 7323 section 2.3).
    pub fn scale(&self) -> u8 {
        self.host_scale.filter(|_| self.sender_scales).unwrap_or(0).min(14)
    }
}

/// Handshakes of the newest connections that may be registered.
#[derive(Clone, Debug)]
pub(super) struct Handshakes<P> {
    /// Sorted by key.
    known: Vec<Handshake<P>>,
    /// Age of the newest one.
    age: u64,
    most: usize,
}

impl<P> Handshakes<P> {
    /// An empty table for at most `most` connections.
    pub fn new(most: usize) -> Self {
        Self { known: Vec::new(), age: 0, most }
    }

    /// Removes the handshake of `key`, which is about to be registered; `None` unless the sender's SYN was seen.
    pub fn take(&mut self, key: FlowKey) -> Option<Handshake<P>> {
        let place = self.place_of(key).ok().filter(|place| self.known[*place].down.is_some())?;
        Some(self.known.remove(place))
    }

    /// A host's SYN was sent.
    pub fn syn_up(&mut self, key: FlowKey, segment: &Segment) {
        self.newest(key).host_scale = segment.window_scale;
    }

    /// A sender's SYN arrived; `like` is a template for its packets.
    pub fn syn_down(&mut self, key: FlowKey, segment: &Segment, like: P) {
        let first = segment.seq + 1;
        let handshake = self.newest(key);
        // A repeated SYN does not reset the progress of the connection.
        let is_new = handshake.down.as_ref().is_none_or(|(known, _)| *known != first);
        (handshake.down, handshake.sender_scales) = (Some((first, like)), segment.window_scale.is_some());
        if is_new {
            handshake.reached = Position::first(first);
        }
    }

    /// The host of the connection sends `segment`.
    pub fn follow(&mut self, key: FlowKey, segment: &Segment) {
        let Ok(place) = self.place_of(key) else { return };
        let known = &mut self.known[place];
        if segment.flags.contains(Flags::ACK) && known.down.is_some() {
            known.reached = known.reached.max(known.reached.nearest(segment.ack));
        }
    }

    /// The handshake of `key`, which becomes the newest; the oldest one makes room.
    fn newest(&mut self, key: FlowKey) -> &mut Handshake<P> {
        let known = self.place_of(key).map(|place| self.known.remove(place));
        let place = self.remember(known.unwrap_or(Handshake {
            key,
            age: 0,
            reached: Position::default(),
            down: None,
            host_scale: None,
            sender_scales: false,
        }));
        &mut self.known[place]
    }

    /// Stores `handshake` as the newest, and returns its index.
    pub fn remember(&mut self, handshake: Handshake<P>) -> usize {
        if self.known.len() >= self.most {
            let ages = self.known.iter().enumerate().map(|(place, known)| (known.age, place));
            ages.min().map(|(_, oldest)| self.known.remove(oldest));
        }
        self.age += 1;
        let place = match self.place_of(handshake.key) {
            // A registered flow has no handshake here.
            Ok(place) => {
                self.known.remove(place);
                place
            }
            Err(place) => place,
        };
        self.known.insert(place, Handshake { age: self.age, ..handshake });
        place
    }

    fn place_of(&self, key: FlowKey) -> Result<usize, usize> {
        self.known.binary_search_by_key(&key, |known| known.key)
    }
}
