//! Datagrams that wait to be sent beside the packets of a connection's core.

use std::collections::VecDeque;

use crate::datagram::Route;

/// Datagrams with their destinations, first in, first out.
pub(crate) struct Outbox {
    waiting: VecDeque<(Route, Vec<u8>)>,
    /// Most datagrams that may wait when an answer joins them.
    max_waiting: usize,
}

impl Outbox {
    pub fn new(max_waiting: usize) -> Self {
        Self { waiting: VecDeque::new(), max_waiting }
    }

    pub fn push(&mut self, to: Route, bytes: Vec<u8>) {
        self.waiting.push_back((to, bytes));
    }

    /// Whether an answer may wait: a peer, or anybody, may ask faster than answers leave.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < self.max_waiting
    }

    /// Appends the next datagram to `into`, and returns its destination.
    pub fn pop_into(&mut self, into: &mut Vec<u8>) -> Option<Route> {
        let (to, bytes) = self.waiting.pop_front()?;
        into.extend_from_slice(&bytes);
        Some(to)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The datagrams that wait.
    #[cfg(test)]
    pub fn waiting(&self) -> impl Iterator<Item = &[u8]> {
        self.waiting.iter().map(|(_, bytes)| &bytes[..])
    }
}
