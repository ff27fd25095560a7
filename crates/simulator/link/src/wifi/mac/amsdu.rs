//! Contents of an MPDU: one packet, or several in an A-MSDU (802.11-2020 clauses 9.3.2.2 and 10.11).

use crate::packet::{Holders, PacketRef, PayloadClass};

/// The packets of one MPDU, in order; usually one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Msdus {
    first: PacketRef,
    /// This keeps its capacity for the next MPDU. Without A-MSDU it is empty and never allocated.
    rest: Vec<PacketRef>,
}

impl Msdus {
    pub fn new(first: PacketRef, empty: Vec<PacketRef>) -> Self {
        debug_assert!(empty.is_empty(), "a used buffer was cleared");
        Self { first, rest: empty }
    }

    pub fn push(&mut self, next: PacketRef) {
        self.rest.push(next);
    }

    pub fn count(&self) -> u32 {
        1 + self.rest.len() as u32
    }

    pub fn iter(&self) -> impl Iterator<Item = &PacketRef> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// The first packet and the others.
    pub fn parts(&self) -> (&PacketRef, &[PacketRef]) {
        (&self.first, &self.rest)
    }

    /// Passes every packet on; returns the buffer, empty.
    pub fn into_each(self, mut each: impl FnMut(PacketRef)) -> Vec<PacketRef> {
        let Self { first, mut rest } = self;
        each(first);
        // More than one packet is rare.
        if !rest.is_empty() {
            rest.drain(..).for_each(each);
        }
        rest
    }

    /// Passes on every packet, which has one more holder now.
    pub fn share(&self, holders: &mut Holders, each: &mut impl FnMut(PacketRef)) {
        for packet in self.iter().copied() {
            holders.hold(packet);
            each(packet);
        }
    }

    /// The same packets, which have one more holder now.
    pub fn held_twice(&self, holders: &mut Holders) -> Self {
        self.iter().for_each(|packet| holders.hold(*packet));
        self.clone()
    }

    /// Holds its packets no longer; returns the buffer, empty.
    pub fn release(self, holders: &mut Holders) -> Vec<PacketRef> {
        self.into_each(|packet| holders.release(packet))
    }

    /// Number of pure acknowledgments among the packets.
    pub fn acks(&self) -> u32 {
        let first = u32::from(self.first.class == PayloadClass::Ack);
        if self.rest.is_empty() { first } else { first + self.acks_of_rest() }
    }

    fn acks_of_rest(&self) -> u32 {
        self.rest.iter().map(|payload| u32::from(payload.class == PayloadClass::Ack)).sum()
    }
}
