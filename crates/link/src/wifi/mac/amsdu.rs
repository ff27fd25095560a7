//! Contents of an MPDU: one packet, or several in an A-MSDU (802.11-2020 clauses 9.3.2.2 and 10.11).

use crate::payload::{Payload, PayloadClass};

/// The packets of one MPDU, in order; usually one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Msdus<P> {
    first: P,
    /// This keeps its capacity for the next MPDU. Without A-MSDU it is empty and never allocated.
    rest: Vec<P>,
}

impl<P> Msdus<P> {
    #[inline]
    pub fn new(first: P, empty: Vec<P>) -> Self {
        debug_assert!(empty.is_empty(), "a used buffer was cleared");
        Self { first, rest: empty }
    }

    pub fn push(&mut self, next: P) {
        self.rest.push(next);
    }

    #[inline]
    pub fn count(&self) -> u32 {
        1 + self.rest.len() as u32
    }

    pub fn iter(&self) -> impl Iterator<Item = &P> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// The first packet and the others.
    pub fn parts(&self) -> (&P, &[P]) {
        (&self.first, &self.rest)
    }

    /// Passes every packet on; returns the buffer, empty.
    #[inline]
    pub fn into_each(self, mut each: impl FnMut(P)) -> Vec<P> {
        let Self { first, mut rest } = self;
        each(first);
        // More than one packet is rare.
        if !rest.is_empty() {
            rest.drain(..).for_each(each);
        }
        rest
    }

    /// Drops every packet; returns the buffer, empty.
    #[inline]
    pub fn into_buffer(mut self) -> Vec<P> {
        self.rest.clear();
        self.rest
    }
}

impl<P: Clone> Msdus<P> {
    /// Passes on a copy of every packet.
    #[inline]
    pub fn copy_each(&self, each: &mut impl FnMut(P)) {
        each(self.first.clone());
        if self.rest.is_empty() {
            return;
        }
        self.rest.iter().for_each(|payload| each(payload.clone()));
    }
}

impl<P: Payload> Msdus<P> {
    /// Number of pure acknowledgments among the packets.
    #[inline]
    pub fn acks(&self) -> u32 {
        let first = u32::from(self.first.class() == PayloadClass::Ack);
        if self.rest.is_empty() { first } else { first + self.acks_of_rest() }
    }

    #[inline(never)]
    fn acks_of_rest(&self) -> u32 {
        self.rest.iter().map(|payload| u32::from(payload.class() == PayloadClass::Ack)).sum()
    }
}
