//! Handshakes of connections that are not registered: a flow begins with its handshake.

use crate::FlowKey;
use crate::congestion::position::Position;
use crate::tcp::{Flags, Segment};
use crate::units::SeqNumber;

/// Content of a connection's SYNs, and how far it is.
#[derive(Clone, Debug)]
pub(super) struct Handshake<P> {
    pub key: FlowKey,
    /// The greatest is the newest.
    age: u64,
    /// The host has everything before. To extend a number of 32 bits beyond 2 GiB one must know a place nearby.
    pub reached: Position,
    /// The number of the first byte that comes down, and the SYN before it.
    pub down: Option<(SeqNumber, P)>,
    /// Both ends scale windows, and the host by this.
    host_scale: Option<u8>,
    sender_scales: bool,
}

impl<P> Handshake<P> {
    /// Of a connection that is no longer looked after.
    pub fn known(key: FlowKey, (first, like): (SeqNumber, P), scale: u8, reached: Position) -> Self {
        Self { key, age: 0, reached, down: Some((first, like)), host_scale: Some(scale), sender_scales: true }
    }

    /// By how much windows of the host are shifted; "the maximum scale exponent is limited to 14" (RFC 7323 section 2.3).
    pub fn scale(&self) -> u8 {
        self.host_scale.filter(|_| self.sender_scales).unwrap_or(0).min(14)
    }
}

/// Connections that may be registered, the newest of them.
#[derive(Clone, Debug)]
pub(super) struct Handshakes<P> {
    /// By key.
    known: Vec<Handshake<P>>,
    /// Of the newest of them.
    age: u64,
    most: usize,
}

impl<P> Handshakes<P> {
    /// None yet, and never more than `most`.
    pub fn new(most: usize) -> Self {
        Self { known: Vec::new(), age: 0, most }
    }

    /// Takes out that of `key`, which is about to be registered; none unless the sender's SYN went by.
    pub fn take(&mut self, key: FlowKey) -> Option<Handshake<P>> {
        let place = self.place_of(key).ok().filter(|place| self.known[*place].down.is_some())?;
        Some(self.known.remove(place))
    }

    /// The SYN of a host goes by.
    pub fn syn_up(&mut self, key: FlowKey, segment: &Segment) {
        self.newest(key).host_scale = segment.window_scale;
    }

    /// The SYN of a sender goes by, whose packets are `like` this one.
    pub fn syn_down(&mut self, key: FlowKey, segment: &Segment, like: P) {
        let first = segment.seq + 1;
        let handshake = self.newest(key);
        // One that is sent again says nothing of how far the connection is.
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

    /// The known handshake of `key`, which is the newest now; the oldest makes room.
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

    /// Keeps `handshake` as the newest, and says where.
    pub fn remember(&mut self, handshake: Handshake<P>) -> usize {
        if self.known.len() >= self.most {
            let ages = self.known.iter().enumerate().map(|(place, known)| (known.age, place));
            ages.min().map(|(_, oldest)| self.known.remove(oldest));
        }
        self.age += 1;
        let place = match self.place_of(handshake.key) {
            // A flow that is registered has no handshake here.
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
