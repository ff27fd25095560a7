//! The packets of a world. Links move their handles.

use tacit_link::{Holders, PacketRef};
use tacit_packet::{Ecn, Packet};

use crate::Carried;

/// Contents of the packets in a world, by the place of their handles.
#[derive(Debug)]
pub(crate) struct Packets<P> {
    /// A free place keeps its last content.
    contents: Vec<P>,
    pub holders: Holders,
    /// Some queue decides by the content of TCP segments.
    inspects_segments: bool,
}

impl<P: Carried> Packets<P> {
    /// An empty store.
    pub fn new(inspects_segments: bool) -> Self {
        Self { contents: Vec::new(), holders: Holders::default(), inspects_segments }
    }

    /// Stores `packet` for the holder of the handle that it returns.
    pub fn insert(&mut self, packet: P) -> PacketRef {
        let id = self.holders.insert();
        if self.inspects_segments {
            self.holders.set_segment(id, packet.segment());
        }
        let handle = PacketRef {
            id,
            len: packet.len().0 as u32,
            flow: packet.flow_key(),
            class: packet.class(),
            ecn: packet.ecn(),
        };
        match self.contents.get_mut(id as usize) {
            Some(place) => *place = packet,
            None => self.contents.push(packet),
        }
        handle
    }

    /// The content, with the ECN field that the packet was stored with.
    pub fn content(&self, packet: PacketRef) -> &P {
        &self.contents[packet.id as usize]
    }

    /// A copy of the packet, with its present ECN field.
    pub fn copy(&self, packet: PacketRef) -> P {
        let mut copy = self.content(packet).clone();
        if packet.ecn == Ecn::Ce {
            copy.mark_congestion();
        }
        copy
    }

    /// Releases a hold and returns the packet.
    pub fn take(&mut self, packet: PacketRef) -> P {
        self.holders.release(packet);
        self.copy(packet)
    }

    /// Calls `with` with the packets to read, and their holders to change.
    pub fn with_holders(&mut self, with: impl FnOnce(&Self, &mut Holders)) {
        let mut holders = std::mem::take(&mut self.holders);
        with(self, &mut holders);
        self.holders = holders;
    }

    /// A copy of a simulated packet; `None` for another kind.
    pub fn simulated(&self, packet: PacketRef) -> Option<Packet> {
        let mut copy = self.content(packet).simulated()?.clone();
        if packet.ecn == Ecn::Ce {
            copy.ip.ecn = Ecn::Ce;
        }
        Some(copy)
    }
}
